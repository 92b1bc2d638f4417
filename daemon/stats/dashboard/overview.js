// All feeds in one table, the worst first: what an operator looks at before anything else.

// How bad a verdict is; those in between are ordered by the longest wait.
const kSeverity = {"failed": 4, "blocked": 3, "slot-bound": 3, "storage-bound": 3, "processor-bound": 3,
                   "assembly-bound": 3, "feature-bound": 3, "producer-bound": 3, "pool-bound": 3,
                   "staleness-bound": 3,
                   "mixed": 2, "trainer-bound": 1, "idle": 0};
const kCompactFrom = 16;  // feeds, from which on the rows are low

const overviewColumns = [
  ["feed", "name", "A feed is a stream of batches that trainers subscribe to by name."],
  ["state", "state", "starting: no batch is there yet; serving; failed: nothing is delivered."],
  ["verdict", "bound", "What the feed's throughput depends on, in the last 10 s."],
  ["batches/s", "batches", "Delivered to all clients together, in the last 10 s."],
  ["bytes/s", "bytes", "Delivered to all clients together, in the last 10 s."],
  ["clients", "clients", "Subscriptions: one for each rank of a job."],
  ["worst wait", "worst", "Share of the last 10 s for which the client that waits most waited for " +
                         "the daemon."],
  ["corrupt", "corrupt", "Different records that failed verification since the daemon started."],
  ["skipped", "skipped", "Sequences left out of batches since the daemon started."]];

let sortedBy = null;  // [column, descending]; null: the worst first

// What the row of a feed shows, and is ordered by.
function overviewOf(feed, memory) {
  const waits = feed.subscribers.map(
    client => recentShare(memory.samplesOf(clientKey(client)), "daemon")).filter(share => share !== null);
  return {
    feed, name: feed.name, state: feed.state, bound: feed.verdict.text,
    batches: feed.rates.batches_per_second, bytes: feed.rates.bytes_per_second,
    clients: feed.subscribers.length, worst: waits.length ? Math.max(...waits) : null,
    corrupt: feed.counters.corrupt_records, skipped: feed.counters.sequences_skipped};
}

function severityOf(row) {
  const starts = row.state === "starting" ? 2 : 0;
  return Math.max(starts, row.state === "failed" ? 4 : kSeverity[row.bound] || 0);
}

function compareRows(a, b) {
  if (sortedBy) {
    const [column, descending] = sortedBy;
    const [x, y] = descending ? [b[column], a[column]] : [a[column], b[column]];
    const order = typeof x === "string" ? x.localeCompare(y) : (x || 0) - (y || 0);
    if (order !== 0) return order;
  }
  return severityOf(b) - severityOf(a) || (b.worst || 0) - (a.worst || 0) ||
         b.clients - a.clients || a.name.localeCompare(b.name);
}

function sortBy(column) {
  const numeric = !["name", "state", "bound"].includes(column);
  if (!sortedBy || sortedBy[0] !== column) sortedBy = [column, numeric];
  else if (sortedBy[1] === numeric) sortedBy = [column, !numeric];
  else sortedBy = null;
  if (latest) render(latest);
}

function makeOverview(box) {
  const table = put(box, make("table"));
  const head = put(put(table, make("thead")), make("tr"));
  for (const [title, name, words] of overviewColumns) {
    const cell = put(head, make("th", name));
    cell.scope = "col";
    const button = put(cell, make("button", "", title));
    button.title = words + " Click to sort by it, and again to reverse the order.";
    button.addEventListener("click", () => sortBy(name));
  }
  put(table, make("tbody"));
}

function overviewRow() {
  const row = makeRow(overviewColumns);
  put(row.querySelector("td.name"), make("a"));
  return row;
}

function setOverviewRow(row, of, path) {
  const cell = name => row.querySelector("td." + name);
  row.dataset.severity = severityOf(of);
  const link = cell("name").firstChild;
  setText(link, of.name);
  link.href = "#feed-" + encodeURIComponent(of.name);
  setFigure(cell("state"), path + ".state", of.state, show.text);
  setFigure(cell("bound"), path + ".verdict.text", of.bound, show.text);
  cell("bound").title = of.feed.reason || of.feed.verdict.why;
  setFigure(cell("batches"), path + ".rates.batches_per_second", of.batches, show.rate);
  setFigure(cell("bytes"), path + ".rates.bytes_per_second", of.bytes, show.byteRate);
  setText(cell("clients"), show.whole(of.clients));
  setText(cell("worst"), show.share(of.worst));
  cell("worst").classList.toggle("unknown", of.worst === null);
  setFigure(cell("corrupt"), path + ".counters.corrupt_records", of.corrupt, show.whole);
  setFigure(cell("skipped"), path + ".counters.sequences_skipped", of.skipped, show.whole);
}

// The feeds in the order of the table.
function setOverview(box, feeds) {
  if (!box.firstChild) makeOverview(box);
  const places = new Map(feeds.map((feed, i) => [feed.name, i]));
  const rows = feeds.map(feed => overviewOf(feed, memories.get(feed.name))).sort(compareRows);
  box.classList.toggle("compact", rows.length >= kCompactFrom);
  setChildren(box.querySelector("tbody"), rows, row => row.name, overviewRow,
              (row, of) => setOverviewRow(row, of, "feeds." + places.get(of.name)));
  for (const cell of box.querySelectorAll("th")) {
    const sorted = sortedBy && sortedBy[0] === cell.className;
    cell.setAttribute("aria-sort", !sorted ? "none" : sortedBy[1] ? "descending" : "ascending");
  }
  return rows.map(row => row.feed);
}

// "2 of 50 feeds failed", or nothing.
function failedText(feeds) {
  const failed = feeds.filter(feed => feed.state === "failed").length;
  if (failed === 0) return "";
  return failed + " of " + feeds.length + (feeds.length === 1 ? " feed" : " feeds") + " failed";
}
