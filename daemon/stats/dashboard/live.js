// What a live feed has beside others: its pool, its versions, and its producers.

const kPoolStates = ["waiting", "kept", "claimed", "free"];
const kPoolWords = {waiting: "waiting for a step", kept: "delivered, to be delivered again",
                    claimed: "to come: claimed, or missing from groups", free: "free",
                    in_steps: "in steps that are kept, beside the pool"};
const kClaimWords = {trainer: "the first trainer to ask", pool: "room in the pool",
                     staleness: "a newer version"};
const kDropWords = {stale: "too stale", late: "late for their group", incomplete: "of an incomplete group",
                    abandoned: "abandoned by their producer"};

const producerColumns = [
  ["producer", "name", "As it calls itself, and its program."],
  ["accepted", "accepted", "Sequences that the feed has accepted of it."],
  ["bytes", "bytes", "Of them."],
  ["last one", "pushed", "How long ago the last of them was accepted."],
  ["waits for", "waits_for", "Room in the pool for its push, or its claim to be granted."],
  ["claimed", "claimed", "Sequences that it has claimed and not pushed so far."],
  ["in no step", "unused", "Its sequences that wait for a step."],
  ["credit in use", "credit", "Bytes of its sequences that are kept, of those that it may have."],
  ["too stale", "dropped", "Its sequences that were dropped as too stale."],
  ["abandoned", "abandoned", "Its sequences that were abandoned, by it or with their group."]];

function liveCard(section) {
  const box = card(section, "Pool and producers", "live");
  put(box, make("div", "bar"));
  const key = put(box, make("ul", "key"));
  for (const state of kPoolStates) put(box.querySelector(".bar"), make("span", state));
  for (const state of [...kPoolStates, "in_steps"]) {
    const line = put(key, make("li", state));
    line.append(make("b"), " " + kPoolWords[state]);
  }
  put(box, make("dl", "figures"));
  put(box, make("h3", "", "Rows of steps by staleness, in versions"));
  put(box, make("div", "ranges"));
  put(box, make("h3", "producers-title"));
  put(put(box, make("div", "producers")), makeTable(producerColumns));
}

function producerRow() {
  const row = makeRow(producerColumns);
  put(row.querySelector("td.name"), make("bdi"));
  return row;
}

function setProducer(row, producer, path) {
  const cell = name => row.querySelector("td." + name);
  row.classList.toggle("gone", !producer.connected);
  setText(cell("name").firstChild, (producer.name || "unnamed") + ", " + (producer.client || "unnamed") +
          " (process " + producer.pid + ")" + (producer.connected ? "" : ", gone"));
  setFigure(cell("accepted"), path + ".accepted", producer.accepted, show.whole);
  setFigure(cell("bytes"), path + ".accepted_bytes", producer.accepted_bytes, show.bytes);
  setFigure(cell("pushed"), path + ".pushed_seconds_ago", producer.pushed_seconds_ago, show.time);
  setText(cell("waits_for"), producer.waits_for || "–");
  cell("waits_for").classList.toggle("unknown", !producer.waits_for);
  setFigure(cell("claimed"), path + ".claimed", producer.claimed, show.whole);
  setFigure(cell("unused"), path + ".waiting", producer.waiting, show.whole);
  setText(cell("credit"), show.bytes(producer.held_bytes) +
          (producer.area_bytes ? " of " + show.bytes(producer.area_bytes) : ""));
  setFigure(cell("dropped"), path + ".dropped_stale", producer.dropped_stale, show.whole);
  setFigure(cell("abandoned"), path + ".abandoned", producer.abandoned, show.whole);
}

function setPool(box, pool, path) {
  const taken = pool.claimed + pool.waiting + pool.kept;
  const counts = {...pool, free: Math.max(0, pool.limit - taken)};
  for (const state of kPoolStates) {
    box.querySelector(".bar ." + state).style.width = percent(pool.limit ? counts[state] / pool.limit : 0);
  }
  setText(box.querySelector(".key .free b"), show.whole(counts.free));
  for (const state of ["waiting", "kept", "claimed", "in_steps"]) {
    setFigure(box.querySelector(".key ." + state + " b"), path + "." + state, pool[state], show.whole);
  }
}

// "3, for a newer version (12 s)".
function claimsText(live) {
  if (live.claims_waiting === 0) return "0";
  return show.whole(live.claims_waiting) + ", for " + (kClaimWords[live.claims_wait_for] || "–") + " (" +
         show.time(live.longest_claim_seconds) + ")";
}

function droppedText(live) {
  const parts = Object.entries(live.dropped).filter(([, count]) => count > 0)
    .map(([reason, count]) => show.whole(count) + " " + (kDropWords[reason] || reason));
  return parts.length ? parts.join(", ") : "0";
}

// Whether long sequences are dropped more often than short ones.
function biasText(live) {
  if (live.mean_dropped_length === null) return "–";
  return show.length(live.mean_dropped_length) + " against " + show.length(live.mean_accepted_length);
}

function setRanges(box, staleness) {
  const most = Math.max(1, ...staleness.ranges.map(range => range.rows));
  let from = 0;
  const ranges = staleness.ranges.map(({up_to: last, rows}) => {
    const name = last === null ? from + " and up" : last === from ? String(last) : from + " to " + last;
    from = last + 1;
    return {name, rows};
  });
  // The first ones, and what has rows.
  const shown = ranges.filter((range, i) => i < 3 || range.rows > 0);
  setChildren(box, shown, range => range.name, range => {
    const row = make("div");
    row.append(make("span", "", range.name), make("div", "wait"), make("b"));
    put(row.querySelector(".wait"), make("span"));
    return row;
  }, (row, range) => {
    row.querySelector(".wait span").style.width = percent(range.rows / most);
    setText(row.querySelector("b"), show.whole(range.rows));
  });
}

function setProducers(box, live, path) {
  const shown = live.producers.length;
  setText(box.querySelector(".producers-title"), "Producers: " + show.whole(live.producers_connected) +
          " connected, " + show.whole(live.producers_known) + " known by name" +
          (shown < live.producers_known ? "; these " + shown + " have been silent for longest" : ""));
  box.querySelector("table").hidden = shown === 0;
  const places = new Map(live.producers.map((producer, i) => [producer, i]));
  // Those without a name are told apart by their sessions.
  const keyOf = producer => producer.name + "\n" + (producer.name ? "" : producer.session + places.get(producer));
  setChildren(box.querySelector("tbody"), live.producers, keyOf, producerRow,
              (row, producer) => setProducer(row, producer, path + ".producers." + places.get(producer)));
}

function setLive(box, live, path) {
  setPool(box, live.pool, path + ".pool");
  const figure = (name, key, write) => [name, path + "." + key, live[key], write];
  setFigures(box.querySelector(".figures"), [
    figure("version", "version", show.whole),
    figure("announced, ago", "version_seconds_ago", show.time),
    figure("steps cut", "steps", show.whole),
    figure("steps kept", "steps_kept", show.whole),
    ["next step", null, live, of => show.whole(of.step_has) + " of " + show.whole(of.step_needs) + " " + of.step_unit],
    ["pool", null, live.pool, pool => show.bytes(pool.waiting_bytes + pool.kept_bytes) + " of " + show.bytes(pool.limit_bytes)],
    ["claims that wait", null, live, claimsText],
    ["pushes that wait", null, live, of => show.whole(of.pushes_waiting) +
      (of.pushes_waiting ? " (" + show.time(of.longest_push_seconds) + ")" : "")],
    ["incomplete groups", null, live, of => show.whole(of.groups) +
      (of.groups ? ", lack " + show.whole(of.groups_missing) + " (" + show.time(of.oldest_group_seconds) + ")" : "")],
    figure("accepted", "accepted", show.whole),
    figure("last accepted, ago", "pushed_seconds_ago", show.time),
    ["dropped", null, live, droppedText],
    ["mean length dropped", null, live, biasText],
    figure("rows zeroed", "rows_zeroed", show.whole)]);
  setRanges(box.querySelector(".ranges"), live.staleness);
  setProducers(box, live, path);
}
