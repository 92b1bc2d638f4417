// One feed: its verdict first, then what it is founded on.

const kFewFeeds = 3;
const kFewUndone = 8;
const kSlotStates = ["held", "ahead", "kept", "filling", "free"];
const kSlotWords = {held: "held by clients", ahead: "ready for a client to come", kept: "had by all, kept until needed",
                    filling: "being filled", free: "free"};
const kStageWords = {readahead: "read ahead", fetch: "fetch pages", assemble: "assemble", wait_for_slot: "wait for a slot",
                     deliver: "deliver"};
const kVerdictWords = {
  "trainer-bound": "the daemon waits for the trainer",
  "storage-bound": "the trainer waits for the daemon, which waits for the disk",
  "mixed": "both wait: the trainer for the daemon, and the daemon, longer, for the trainer",
  "blocked": "the trainer waits for the daemon, whose threads work for another feed",
  "producer-bound": "the trainer waits for steps, and the pool has too few sequences for one",
  "pool-bound": "producers wait for room in the pool",
  "staleness-bound": "producers wait for a newer version, or push what is too stale",
  "slot-bound": "the trainer waits for the daemon, whose slots are all with clients",
  "processor-bound": "the trainer waits for the daemon, which waits for a processor",
  "assembly-bound": "the trainer waits for the daemon, whose assembly threads are all busy",
  "feature-bound": "the trainer waits for the daemon, whose threads compute its recipe",
  "idle": "neither waits",
  "failed": "nothing is served"};

// A card that opens on demand: its charts and tables are made and filled only while it is open.
function makeFeed(feed) {
  const fold = make("details", "fold");
  fold.id = "feed-" + encodeURIComponent(feed.name);
  fold.open = opensByItself(feed);
  const line = put(fold, make("summary"));
  line.append(make("b", "", feed.name), make("span"));
  line.addEventListener("click", () => { fold.dataset.chosen = "yes"; });
  fold.addEventListener("toggle", () => {
    if (fold.open && latest) render(latest);
  });
  return fold;
}

// With a few feeds those that do something, or failed, lie open; of many the table says enough.
function opensByItself(feed) {
  if (location.hash === "#feed-" + encodeURIComponent(feed.name)) return true;
  if (location.search === "?once") return true;
  return latest.feeds.length <= kFewFeeds && feed.verdict.text !== "idle";
}

function openFromHash() {
  const fold = location.hash && document.getElementById(location.hash.slice(1));
  if (!fold) return;
  fold.open = true;
  fold.dataset.chosen = "yes";
  if (latest) render(latest);
  fold.scrollIntoView();
}

function makeInside(fold, feed) {
  const section = put(fold, make("article", "feed"));
  section.setAttribute("aria-label", "feed " + feed.name);
  const top = card(section, "", "top");
  const verdict = put(top, make("div", "verdict"));
  verdict.append(make("h2", "", feed.name), make("strong"), make("span", "words"), make("p"));
  put(top, make("p", "next"));
  put(top, make("p", "undone"));
  put(top, make("dl", "figures"));
  put(top, make("p", "place"));
  clientsCard(section);
  if (feed.live) liveCard(section);
  card(section, "Throughput", "half throughput");
  const slots = card(section, "Slots", "half slots");
  slots.append(make("div", "bar"), make("ul", "key"));
  for (const state of kSlotStates) {
    put(slots.querySelector(".bar"), make("span", state));
    const line = put(slots.querySelector(".key"), make("li", state));
    line.append(make("b"), " " + kSlotWords[state]);
  }
  const track = card(section, "Where the clients are", "half positions");
  track.hidden = Boolean(feed.live);  // it has no epochs
  put(track, make("p", "note", "No client has subscribed."));
  put(track, make("div", "track"));
  const ends = put(track, make("div", "ends"));
  ends.append(make("span", "", "begin"), make("span", "spread"), make("span", "", "end"));
  makeStages(section);
  const plan = put(section, make("details", "card plan"));
  plan.hidden = Boolean(feed.live);
  put(plan, make("summary", "", "Plan: the batches of an epoch, as delivered"));
  put(plan, make("p", "note", "The plan is being asked for."));
  plan.open = location.search === "?once" && !feed.live;
  plan.addEventListener("toggle", () => {
    if (plan.open && latest) render(latest);
  });
  return section;
}

function makeStages(section) {
  const box = card(section, "Times of a batch", "stages");
  const table = put(box, makeTable([["stage", "", ""], ["batches", "", "How often it was done."],
                                    ["median", "", "Half of all took this long or less."],
                                    ["99 % took less", "", "One in a hundred took longer."]]));
  const body = table.tBodies[0];
  for (const stage of Object.keys(kStageWords)) {
    const row = put(body, make("tr"));
    row.dataset.stage = stage;
    row.append(make("td", "", kStageWords[stage]), make("td"), make("td"), make("td"));
  }
  put(box, make("p", "making"));
}

// Batches of its queue that workers began and did not do; nothing where there are none.
function undoneText(feed) {
  const aside = feed.counters.queue_set_aside;
  const words = feed.undone.slice(0, kFewUndone).map(batch => "batch " + batch.index + ", begun " +
    batch.times + (batch.times === 1 ? " time" : " times") + " and not done" +
    (batch.set_aside ? " (set aside)" : ""));
  const more = feed.undone.length - words.length;
  if (more > 0) words.push("and " + show.whole(more) + " more");
  return [
    aside ? show.whole(aside) + (aside === 1 ? " batch of the queue was" : " batches of the queue were") +
            " set aside since the daemon started (queue_attempts)." : "",
    words.length ? "Epoch " + feed.undone[0].epoch + " of the queue: " + words.join("; ") + "." : ""]
    .filter(Boolean).join(" ");
}

function setVerdict(section, feed, path) {
  const box = section.querySelector(".verdict");
  box.dataset.verdict = feed.verdict.text;
  setFigure(box.querySelector("strong"), path + ".verdict.text", feed.verdict.text, show.text);
  setText(box.querySelector(".words"), feed.state === "starting"
    ? "no batch is there yet" : kVerdictWords[feed.verdict.text] || "");
  setText(box.querySelector("p"), feed.reason || feed.verdict.why);
  const next = section.querySelector(".next");
  next.hidden = feed.state !== "failed" && !feed.dataset_stale && !feed.blocked_by;
  setText(next, feed.state !== "failed" && feed.blocked_by
    ? "Remedy: nothing is lost, and the feed goes on once its file system answers. Look at what " +
          "serves that file system."
    : feed.state !== "failed"
    ? "Remedy: `systemctl reload batchwrightd` opens the feed anew, with what the path leads to now."
    : (feed.retried ? "Remedy: mend the cause; the daemon tries the feed again by itself. "
                    : "Remedy: once the cause is mended, `systemctl reload batchwrightd` opens the feed anew. ") +
          (feed.live ? "" : "Damage of the dataset is named by `batchwright verify " + feed.dataset.join(" ") + "`."));
  const undone = undoneText(feed);
  section.querySelector(".undone").hidden = undone === "";
  setText(section.querySelector(".undone"), undone);
  setText(section.querySelector(".place"), feed.live ? "a live feed: its sequences are pushed by producers" : "dataset " + feed.dataset.join(", ") +
          (feed.dataset_lock === "none" ? " (not locked: a writer could harm what is read)" : ""));
}

// The line of a folded card.
function setSummary(fold, feed) {
  const words = feed.verdict.text + ", " + show.rate(feed.rates.batches_per_second).replace("/s",
    " batches/s") + ", " + feed.subscribers.length + (feed.subscribers.length === 1 ? " client" : " clients");
  setText(fold.querySelector("summary span"), words);
  fold.dataset.verdict = feed.verdict.text;
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

// Where the time of a recipe goes; nothing for a feed without one.
function setMaking(section, feed) {
  const steps = Object.entries(feed.making.steps).filter(([, seconds]) => seconds > 0);
  const words = steps.map(([step, seconds]) => step + " " + show.time(seconds));
  const factor = feed.making.real_time_factor;
  if (factor !== null) words.push(Math.round(factor) + " times real time");
  section.querySelector(".making").textContent =
    words.length ? "Making rows: " + words.join(", ") + "." : "";
}

// Charts measure where they are, so they are made once the feed is on the page; and anew when the
// colours change.
function makeCharts(section) {
  dropCharts(section);
  section.throughput = throughputChart(section.querySelector(".throughput"));
  if (!section.querySelector(".plan").open) return;
  section.plan = planChart(section.querySelector(".plan"));
  if (section.shown) drawPlan(section.plan, section.shown);
}

function dropCharts(section) {
  [section.throughput, section.plan].filter(Boolean).forEach(drop);
  section.throughput = section.plan = null;
}

function forgetFeed(fold) {
  const section = fold.querySelector(".feed");
  if (section) dropCharts(section);
  memories.delete(fold.dataset.id);
}

function setFeed(fold, feed, path, memory) {
  setSummary(fold, feed);
  if (!fold.dataset.chosen && opensByItself(feed)) fold.open = true;  // until a reader has chosen
  if (!fold.open) return;
  setInside(fold.querySelector(".feed") || makeInside(fold, feed), feed, path, memory);
}

function setInside(section, feed, path, memory) {
  if (!section.throughput) makeCharts(section);
  const plan = section.querySelector(".plan");
  if (plan.open && !section.plan) makeCharts(section);
  setVerdict(section, feed, path);
  const rate = (name, key, write) => [name, path + ".rates." + key, feed.rates[key], write];
  setFigures(section.querySelector(".top .figures"), [
    rate("batches", "batches_per_second", show.rate),
    rate("bytes", "bytes_per_second", show.byteRate),
    rate("frames", "frames_per_second", show.rate),
    rate("sequences", "sequences_per_second", show.rate),
    rate("padding now", "padded_share", show.share),
    ...(feed.live ? [] : [
      ["padding planned", path + ".plans.0.padded_share", promisedPadding(feed), show.share],
      ["last plan took", path + ".plan_seconds", feed.plan_seconds, show.time]]),
    ["memory of its batches", path + ".arena_bytes", feed.arena_bytes, show.bytes],
    ["page-locked", path + ".pinned", feed.pinned, show.text],
    ["pages", path + ".pages", feed.pages, show.text]]);
  setSlots(section, feed, path);
  setTrack(section.querySelector(".positions"), feed);
  setClients(section.querySelector(".clients"), feed, path, key => memory.samplesOf(key));
  if (feed.live) setLive(section.querySelector(".live"), feed.live, path + ".live");
  setStages(section, feed, path);
  setMaking(section, feed);
  drawThroughput(section.throughput, memory.history);
  if (plan.open) askForPlan(section, feed);
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
  fetch("feeds/" + encodeURIComponent(feed.name) + "/plan?epoch=" + epoch)
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
