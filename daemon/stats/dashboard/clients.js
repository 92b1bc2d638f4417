// The clients of a feed: how long each side waits, how much credit is left, and where each one is.

const kWaitSeconds = 10;

function clientKey(client) {
  return client.session + "." + client.subscription;
}

function clientName(client) {
  return (client.client || "unnamed") + " (process " + client.pid + ")";
}

const clientColumns = [
  ["client", "name", "As the trainer calls itself, and its process."],
  ["rank", "rank", "Its rank of how many; – for a client that takes every batch."],
  ["batches/s", "rate", "Delivered to it, in the last 10 s."],
  ["step", "step", "Time from batch to batch: the training step, with its waits."],
  ["waits", "waits", "How long the client waited for the daemon, and the daemon for the client."],
  ["holds", "held", "Batches that it has and has not released, of those that it may hold; and " +
                      "for how long it has held the oldest."],
  ["behind", "lag", "Batches behind the client that is furthest."],
  ["position", "position", "Of its next batch."],
  ["delivered", "delivered", "Since it subscribed."]];

function clientsCard(feed) {
  const box = card(feed, "Clients", "clients");
  const key = put(box, make("ul", "key"));
  key.append(make("li", "daemon", "client waits for the daemon"),
             make("li", "client", "daemon waits for the client"),
             make("li", "none", "bars: share of the last " + kWaitSeconds +
                                " s; figures: since the client subscribed"));
  put(box, make("p", "note", "No client has subscribed."));
  put(box, makeTable(clientColumns));
  return box;
}

function clientRow() {
  const row = makeRow(clientColumns);
  put(row.querySelector("td.name"), make("bdi"));  // a name may be written from right to left
  const held = put(row.querySelector("td.held"), make("div"));
  const since = make("span", "since");
  held.append(make("span", "count"), since);
  since.append(" (", make("span"), ")");
  const waits = row.querySelector(".waits");
  for (const side of ["daemon", "client"]) {
    const pair = put(waits, make("div", "pair " + side));
    put(put(pair, make("div", "wait")), make("span"));
    put(pair, make("b"));
  }
  return row;
}

// The share of the last seconds that was spent waiting: the bar. The figure beside it is the sum.
function setWait(row, side, path, seconds, share) {
  const pair = row.querySelector(".waits ." + side);
  const name = side === "daemon" ? "client waited for the daemon" : "daemon waited for the client";
  pair.title = name + ": " + show.share(share) + " of the last " + kWaitSeconds + " s; the figure " +
               "is since it subscribed";
  pair.setAttribute("aria-label", name);
  pair.querySelector("span").style.width = percent(share);
  setFigure(pair.querySelector("b"), path, seconds, show.time);
}

// What `field` grew by within the last seconds, as a share of them; null before there are two.
function recentShare(samples, field) {
  if (samples.length < 2) return null;
  const last = samples[samples.length - 1];
  const first = samples.find(sample => last.uptime - sample.uptime <= kWaitSeconds) || samples[0];
  const seconds = last.uptime - first.uptime;
  return seconds > 0 ? Math.max(0, last[field] - first[field]) / seconds : null;
}

// "3 of 4 (12 s)": how many, and for how long the oldest.
function setHeld(cell, client, path) {
  setFigure(cell.querySelector(".count"), path + ".held_batches", client.held_batches,
            value => show.whole(value) + " of " + client.window_batches);
  const since = cell.querySelector(".since");
  since.hidden = client.held_seconds === null;
  setFigure(since.querySelector("span"), path + ".held_seconds", client.held_seconds, show.time);
}

function setClient(row, client, path, samples, live) {
  const cell = name => row.querySelector("td." + name);
  setText(cell("name").firstChild, clientName(client));
  // Counted from 0, as launchers do.
  setText(cell("rank"), client.mode === "sharded" ? client.rank + " / " + client.ranks
                                                  : client.mode === "queue" ? "queue" : "–");
  const rate = recentShare(samples, "batches");
  setText(cell("rate"), show.rate(rate));
  setText(cell("step"), show.time(rate ? 1 / rate : null));
  setWait(row, "daemon", path + ".waited_for_daemon_seconds", client.waited_for_daemon_seconds,
          recentShare(samples, "daemon"));
  setWait(row, "client", path + ".waited_for_client_seconds", client.waited_for_client_seconds,
          recentShare(samples, "client"));
  setHeld(cell("held"), client, path);
  setFigure(cell("lag"), path + ".lag_batches", client.lag_batches,
            value => show.whole(value) + (value === 1 ? " batch" : " batches"));
  setFigure(cell("position"), path + ".step", client.step,
            value => (live ? "" : "epoch " + client.epoch + ", ") + "step " + show.whole(value));
  setFigure(cell("delivered"), path + ".delivered_bytes", client.delivered_bytes, show.bytes);
}

// The ranks of a job stand together.
function compareClients(a, b) {
  return a.client.localeCompare(b.client) || a.rank - b.rank || a.pid - b.pid;
}

function setClients(box, feed, path, samplesOf) {
  const clients = feed.subscribers;
  box.querySelector(".note").hidden = clients.length > 0;
  box.querySelector("table").hidden = clients.length === 0;
  box.querySelector(".key").hidden = clients.length === 0;
  const places = new Map(clients.map((client, i) => [clientKey(client), i]));
  const ordered = [...clients].sort(compareClients);
  setChildren(box.querySelector("tbody"), ordered, clientKey, clientRow, (row, client) => {
    const key = clientKey(client);
    setClient(row, client, path + ".subscribers." + places.get(key), samplesOf(key),
              Boolean(feed.live));
  });
}

function setTrack(box, feed) {
  const clients = feed.subscribers;
  box.querySelector(".note").hidden = clients.length > 0;
  // From the begin of the earliest epoch that a client is in to the end of the latest.
  const epochs = clients.map(client => client.epoch);
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  const [begin, end] = box.querySelectorAll(".ends span:not(.spread)");
  setText(begin, clients.length ? "epoch " + first : "begin");
  setText(end, clients.length ? "end of epoch " + last : "end");
  setChildren(box.querySelector(".track"), clients, clientKey, () => make("span"),
              (mark, client) => {
    mark.style.left = percent((client.epoch - first + client.position_share) / (last - first + 1));
    mark.title = clientName(client) + ", rank " + client.rank + ": epoch " + client.epoch +
                 ", step " + client.step;
  });
  setText(box.querySelector(".spread"), spread(clients));
}

// How far apart they are, in words.
function spread(clients) {
  if (clients.length === 0) return "";
  const count = clients.length + (clients.length === 1 ? " client" : " clients");
  const epochs = clients.map(client => client.epoch);
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  if (first < last) return count + ", in epochs " + first + " to " + last;
  const shares = clients.map(client => client.position_share || 0);
  const [least, most] = [show.share(Math.min(...shares)), show.share(Math.max(...shares))];
  return count + (least === most ? " at " + least : " between " + least + " and " + most) +
         " of epoch " + first;
}
