// One feed: its verdict first, then what it is founded on.

const kSlotStates = ["held", "ready", "filling", "free"];
const kSlotWords = {held: "held by clients", ready: "ready", filling: "being filled", free: "free"};
const kStageWords = {readahead: "read ahead", assemble: "assemble", wait_for_slot: "wait for a slot",
                     deliver: "deliver"};
const kVerdictWords = {
  "trainer-bound": "the daemon waits for the trainer",
  "storage-bound": "the trainer waits for the daemon, and that for the disk",
  "assembly-bound": "the trainer waits for the daemon, and that for its assembly threads",
  "idle": "nobody waits",
  "failed": "nothing is served"};

function makeFeed(feed) {
  const section = make("article", "feed");
  section.setAttribute("aria-label", "feed " + feed.name);
  const top = card(section, "", "top");
  const verdict = put(top, make("div", "verdict"));
  verdict.append(make("h2", "", feed.name), make("strong"), make("span", "words"), make("p"));
  put(top, make("dl", "figures"));
  clientsCard(section);
  card(section, "Throughput", "half throughput");
  const plan = card(section, "Plan: the batches of an epoch, as delivered", "half plan");
  put(plan, make("p", "note", "The plan is being asked for."));
  const slots = card(section, "Slots", "half slots");
  slots.append(make("div", "bar"), make("ul", "key"));
  for (const state of kSlotStates) {
    put(slots.querySelector(".bar"), make("span", state));
    const line = put(slots.querySelector(".key"), make("li", state));
    line.append(make("b"), " " + kSlotWords[state]);
  }
  const track = card(section, "Positions in the epoch", "half positions");
  put(track, make("p", "note", "No client has subscribed."));
  put(track, make("div", "track"));
  const ends = put(track, make("div", "ends"));
  ends.append(make("span", "", "begin"), make("span", "spread"), make("span", "", "end"));
  makeStages(section);
  return section;
}

function makeStages(section) {
  const box = card(section, "Times of a batch", "stages");
  const table = put(box, make("table"));
  const head = put(put(table, make("thead")), make("tr"));
  for (const title of ["stage", "batches", "median", "99 % below"]) {
    put(head, make("th", "", title)).scope = "col";
  }
  const body = put(table, make("tbody"));
  for (const stage of Object.keys(kStageWords)) {
    const row = put(body, make("tr"));
    row.dataset.stage = stage;
    row.append(make("td", "", kStageWords[stage]), make("td"), make("td"), make("td"));
  }
}

function setVerdict(section, feed, path) {
  const box = section.querySelector(".verdict");
  box.dataset.verdict = feed.verdict.text;
  setFigure(box.querySelector("strong"), path + ".verdict.text", feed.verdict.text, show.text);
  const serving = feed.state === "serving" ? "" : "; the feed is " + feed.state;
  setText(box.querySelector(".words"), (kVerdictWords[feed.verdict.text] || "") + serving);
  const why = feed.reason && !feed.verdict.why.includes(feed.reason)
    ? feed.verdict.why + " " + feed.reason : feed.verdict.why;
  setText(box.querySelector("p"), why);
}

// What the plan of the earliest epoch that is served promises.
function promisedPadding(feed) {
  return feed.plans.length ? feed.plans[0].padded_share : null;
}

function setSlots(section, feed, path) {
  const all = kSlotStates.reduce((sum, state) => sum + feed.slots[state], 0);
  const box = section.querySelector(".slots");
  for (const state of kSlotStates) {
    const part = box.querySelector(".bar ." + state);
    part.style.width = percent(all ? feed.slots[state] / all : 0);
    setFigure(box.querySelector(".key ." + state + " b"), path + ".slots." + state,
              feed.slots[state], show.whole);
  }
}

function setStages(section, feed, path) {
  for (const row of section.querySelectorAll("[data-stage]")) {
    const stage = row.dataset.stage;
    const times = feed.stages[stage];
    const [, count, median, most] = row.children;
    setFigure(count, path + ".stages." + stage + ".count", times.count, show.whole);
    setFigure(median, path + ".stages." + stage + ".p50_seconds", times.p50_seconds, show.time);
    setFigure(most, path + ".stages." + stage + ".p99_seconds", times.p99_seconds, show.time);
  }
}

// Charts measure where they are, so they are made once the feed is on the page; and anew when the
// colours change.
function makeCharts(section) {
  if (section.plan) [section.throughput, section.plan].forEach(drop);
  section.throughput = throughputChart(section.querySelector(".throughput"));
  section.plan = planChart(section.querySelector(".plan"));
  if (section.shown) drawPlan(section.plan, section.shown);
}

function forgetFeed(section) {
  if (section.plan) [section.throughput, section.plan].forEach(drop);
  memories.delete(section.dataset.id);
}

function setFeed(section, feed, path, memory) {
  if (!section.plan) makeCharts(section);
  setVerdict(section, feed, path);
  const rate = (name, key, write) => [name, path + ".rates." + key, feed.rates[key], write];
  setFigures(section.querySelector(".top .figures"), [
    rate("batches", "batches_per_second", show.rate),
    rate("throughput", "bytes_per_second", show.byteRate),
    rate("frames", "frames_per_second", show.rate),
    rate("sequences", "sequences_per_second", show.rate),
    rate("padding now", "padded_share", show.share),
    ["padding planned", path + ".plans.0.padded_share", promisedPadding(feed), show.share],
    ["last plan took", path + ".plan_seconds", feed.plan_seconds, show.time],
    ["arena", path + ".arena_bytes", feed.arena_bytes, show.bytes],
    ["pinned", path + ".pinned", feed.pinned, show.text]]);
  setSlots(section, feed, path);
  setTrack(section.querySelector(".positions"), feed);
  setClients(section.querySelector(".clients"), feed, path, key => memory.samplesOf(key));
  setStages(section, feed, path);
  drawThroughput(section.throughput, memory.history);
  askForPlan(section, feed);
}

const kPlanPause = 10000;  // ms between two plans that are asked for, where epochs are short

// The plan is asked for once an epoch, for it is always the same.
function askForPlan(section, feed) {
  const epoch = feed.plans.length ? feed.plans[0].epoch : 0;
  const wanted = feed.fingerprint + " " + epoch;
  if (section.dataset.plan === wanted || Date.now() - (section.asked || 0) < kPlanPause) return;
  section.dataset.plan = wanted;
  section.asked = Date.now();
  const note = section.querySelector(".plan .note");
  fetch("/feeds/" + encodeURIComponent(feed.name) + "/plan?epoch=" + epoch)
    .then(answer => answer.ok ? answer.json() : answer.text().then(text => Promise.reject(text)))
    .then(plan => {
      section.shown = plan;
      drawPlan(section.plan, plan);
      setText(note, "epoch " + plan.epoch + ": " + show.whole(plan.batches) + " batches in " +
              show.whole(plan.steps) + " steps, " + show.share(plan.padded_share) + " padding");
    })
    .catch(reason => {
      setText(note, "The plan cannot be shown: " + reason);
      section.dataset.plan = "";
    });
}
