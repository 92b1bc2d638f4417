// What happened last: the log's latest lines, and what became of the configuration.

function eventTime(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], {hour12: false});
}

function makeEvents(box) {
  const fold = put(box, make("details", "card"));
  put(fold, make("summary", "", "Latest events"));
  put(fold, make("ol", "events"));
}

function eventRow() {
  const row = make("li");
  row.append(make("time"), make("b"), make("span"));
  return row;
}

function setEvents(box, events) {
  if (!box.firstChild) makeEvents(box);
  const list = box.querySelector("ol");
  const worst = events.filter(event => event.severity === "error" || event.severity === "critical");
  setText(box.querySelector("summary"), "Latest events: " + events.length +
          (worst.length ? ", " + worst.length + " of them errors" : ""));
  // The newest first. Two events of one moment differ in their text, or are one to people.
  const newest = [...events].reverse();
  setChildren(list, newest, event => event.unix_seconds + event.event + event.text, eventRow,
              (row, event) => {
    row.dataset.severity = event.severity;
    const [time, level, text] = row.children;
    setText(time, eventTime(event.unix_seconds));
    time.title = new Date(1000 * event.unix_seconds).toString();
    setText(level, event.severity);
    setText(text, event.text);
  });
}

function setReload(box, reload) {
  box.hidden = reload.last_refusal === null && reload.last_seconds_ago === null;
  box.dataset.state = reload.last_refusal === null ? "taken" : "refused";
  const ago = reload.last_seconds_ago === null ? "" : show.time(reload.last_seconds_ago) + " ago";
  setText(box, reload.last_refusal === null
    ? "The configuration was read again " + ago + ", and taken."
    : "The configuration was refused " + ago + ", the previous one stays in effect; a restart would fail: " +
      reload.last_refusal);
}
