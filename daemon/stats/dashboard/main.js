// Where the figures come from, what is remembered of them, and what is said when they stay away.

const kSilence = 5000;  // ms without an event until the connection counts as lost
const memories = new Map();  // feed name -> Memory
let cpuBefore = null;  // processor time of the message before
let lastUptime = -1;
let lastSeen = 0;
let latest = null;  // what came last

// What has been seen of a feed, for the picture of its throughput and the bars of waiting times.
class Memory {
  constructor() {
    this.history = [];
    this.samples = new Map();
  }
  add(feed, uptime) {
    this.history.push([uptime, feed.rates.bytes_per_second]);
    while (uptime - this.history[0][0] > kSecondsShown) this.history.shift();
    const there = new Set();
    for (const client of feed.subscribers) {
      const key = clientKey(client);
      there.add(key);
      const samples = this.samplesOf(key);
      samples.push({uptime, daemon: client.waited_for_daemon_seconds,
                    client: client.waited_for_client_seconds,
                    batches: client.delivered_batches});
      while (uptime - samples[0].uptime > kWaitSeconds + 1) samples.shift();
      this.samples.set(key, samples);
    }
    for (const key of this.samples.keys()) if (!there.has(key)) this.samples.delete(key);
  }
  // What the daemon remembers from before this page was opened, or while it was cut off.
  lookBack(points) {
    const known = points.length ? points[points.length - 1][0] : -1;
    this.history = points.concat(this.history.filter(([at]) => at > known));
  }
  samplesOf(key) {
    return this.samples.get(key) || [];
  }
}

function remember(stats) {
  if (stats.uptime_seconds < lastUptime) {  // the daemon was restarted
    memories.clear();
    lookBack();
  }
  lastUptime = stats.uptime_seconds;
  for (const feed of stats.feeds) memoryOf(feed.name).add(feed, stats.uptime_seconds);
}

function memoryOf(name) {
  if (!memories.has(name)) memories.set(name, new Memory());
  return memories.get(name);
}

// A daemon without this page leaves the curve to begin now.
function lookBack() {
  return fetch("history").then(answer => answer.json()).then(past => {
    for (const [name, points] of Object.entries(past.bytes_per_second)) memoryOf(name).lookBack(points);
  }).catch(() => {});
}

// Cores in use since the message before this one; null until there are two.
function processorShare(stats) {
  const before = cpuBefore;
  if (before === null || stats.uptime_seconds < before.uptime) {
    cpuBefore = {uptime: stats.uptime_seconds, cpu: stats.cpu_seconds};
    return null;
  }
  const seconds = stats.uptime_seconds - before.uptime;
  if (seconds <= 0) return null;
  cpuBefore = {uptime: stats.uptime_seconds, cpu: stats.cpu_seconds};
  return (stats.cpu_seconds - before.cpu) / seconds;
}

function setProcess(stats) {
  setFigures(document.getElementById("process"), [
    ["version", "version", stats.version, show.text],
    ["up for", "uptime_seconds", stats.uptime_seconds, show.time],
    ["clients", "sessions", stats.sessions, show.whole],
    ["clients refused", "clients_refused", stats.clients_refused, show.whole],
    ["processor", null, processorShare(stats), show.cores],
    ["memory in use", "resident_bytes", stats.resident_bytes, show.bytes],
    ["of it the kernel may drop", "mapped_file_bytes", stats.mapped_file_bytes, show.bytes],
    ["batches' memory", "arena_bytes", stats.arena_bytes, show.bytes],
    ["its limit", "memory_ceiling_bytes", stats.memory_ceiling_bytes, show.bytes]]);
}

function render(stats) {
  setProcess(stats);
  setText(document.getElementById("host"), stats.host);
  setReload(document.getElementById("reload"), stats.reload);
  setEvents(document.getElementById("events"), stats.latest_events);
  const places = new Map(stats.feeds.map((feed, i) => [feed.name, i]));
  const feeds = setOverview(document.getElementById("overview"), stats.feeds);
  setChildren(document.getElementById("feeds"), feeds, feed => feed.name, makeFeed,
              (section, feed) => setFeed(section, feed, "feeds." + places.get(feed.name),
                                         memories.get(feed.name)), forgetFeed);
}

function setTitle(stats) {
  const few = stats.feeds.length <= kFewFeeds
    ? stats.feeds.map(feed => feed.name + ": " + feed.verdict.text).join(", ")
    : stats.feeds.length + " feeds";
  document.title = (failedText(stats.feeds) || few) + " – " + stats.host + " – Batchwright";
}

function setConnection(state, text) {
  const line = document.getElementById("connection");
  line.dataset.state = state;
  document.body.classList.toggle("lost", state === "lost");
  setText(line, text);
}

function received(stats) {
  lastSeen = Date.now();
  latest = stats;
  remember(stats);
  setTitle(stats);
  if (!document.hidden) render(stats);  // a page in the background costs nothing
  setConnection(failedText(stats.feeds) ? "failed" : "live", failedText(stats.feeds) || "live");
}

document.addEventListener("visibilitychange", () => {
  if (latest && !document.hidden) render(latest);
});

// Said from outside the stream of events, for a connection can die without a word.
function watch() {
  const silent = Date.now() - lastSeen;
  if (lastSeen === 0 || silent < kSilence) return;
  setConnection("lost", "connection lost: these figures are " + Math.round(silent / 1000) +
                " s old; trying again");
}

function listen() {
  const events = new EventSource("live");
  events.addEventListener("stats", event => received(JSON.parse(event.data)));
  events.addEventListener("open", lookBack);
  events.addEventListener("error", () => {
    if (lastSeen === 0) setConnection("lost", "no connection to the daemon; trying again");
    // The browser connects again by itself, but not after a refusal: too many look on already.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
}

function ask() {
  return lookBack().then(() => fetch("stats")).then(answer => answer.json()).then(received)
    .catch(reason => setConnection("lost", "no connection to the daemon: " + reason.message));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  paintDefaults();
  for (const section of document.querySelectorAll(".feed")) {
    if (section.parentElement.open) makeCharts(section);
    else dropCharts(section);  // made anew when it is opened
  }
  if (latest) render(latest);
});

window.addEventListener("hashchange", openFromHash);

// With /?once the page shows the figures of one moment, for a print.
paintDefaults();
if (location.search === "?once") {
  ask();
} else {
  listen();
  setInterval(watch, 1000);
}
