"""What must be true after a trial, whatever was killed or stopped in it.

The ledger is the backbone: the daemon's lines in their order, and between them marks of ours: of
each worker's death, before it, and of the daemon's, after it. A check that fails raises Broken.
"""
import json
from collections import Counter, defaultdict


class Broken(Exception):
    """A batch was lost, duplicated, or not explained."""


def expect(condition, what):
    if not condition:
        raise Broken(what)


class Line:
    """One line of a worker's record: what it has trained on."""

    def __init__(self, text):
        process, epoch, index, ordinals, fingerprint, lost, *attempt = text.split()
        self.process = int(process)
        self.batch = (int(epoch), int(index))
        self.ordinals = [int(word) for word in ordinals.split(",")]
        self.fingerprint = fingerprint
        self.lost = int(lost)  # rows that are not there
        self.attempt = int(attempt[0]) if attempt else 0  # 0: not told


class Undone:
    """A line that says that the worker gave a batch back undone."""

    def __init__(self, text):
        _, process, epoch, index, attempt = text.split()
        self.process, self.attempt = int(process), int(attempt)
        self.batch = (int(epoch), int(index))


def is_undone(text):
    return text.startswith("returned ")


def read_record(path):
    """What was trained on."""
    return [Line(text) for text in texts_of(path) if not is_undone(text)]


def read_returned(path):
    """What was given back undone."""
    return [Undone(text) for text in texts_of(path) if is_undone(text)]


def texts_of(path):
    """The whole lines of a record."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


def read_ledger(path):
    """Events in order, and how many lines a daemon's death has cut off."""
    events, torn = [], 0
    for text in path.read_text().splitlines():
        if not text:
            continue
        try:
            events.append(json.loads(text))
        except json.JSONDecodeError:
            torn += 1
    return events, torn


def check_ledger(events, torn, deaths, plan):
    """Each delivery has the contents that the plan gives it."""
    expect(torn <= deaths, f"{torn} torn lines in the ledger after {deaths} deaths of the daemon")
    for event in events:
        if event["event"] != "delivered" or event["epoch"] >= len(plan):
            continue
        rows = plan[event["epoch"]][event["index"]]
        expect(event["ordinals"] == rows, f"delivered, but not as planned: {event}")


def check_explained(records, events):
    """No worker trained on what was not delivered to it, nor more often."""
    given = Counter((event["pid"], event["epoch"], event["index"]) for event in events
                    if event["event"] == "delivered" and not event["rehearsal"])
    seen = Counter((line.process, *line.batch) for record in records for line in record)
    for key, times in seen.items():
        expect(times <= given[key], f"{key} is recorded {times} times, delivered {given[key]}")


def check_contents(records, plan):
    for record in records:
        for line in record:
            epoch, index = line.batch
            expect(line.ordinals == plan[epoch][index] and line.lost == 0,
                   f"recorded, but not as planned: {line.batch}")


def check_in_order(setting, records, plan):
    """Each worker has each batch of its share once, in order."""
    share = setting.world // (setting.workers if setting.mode == "sharded" else 1)
    for rank, record in enumerate(records):
        first = rank * share if setting.mode == "sharded" else 0
        due = [(epoch, index) for epoch, batches in enumerate(plan)
               for index in range(len(batches)) if first <= index % setting.world < first + share]
        got = [line.batch for line in record]
        for place, (want, have) in enumerate(zip(due, got)):
            expect(want == have, f"worker {rank}, line {place + 1}: {have}, but {want} was due")
        expect(len(got) == len(due), f"worker {rank}: {len(got)} batches of {len(due)}")


class Queue:
    """The life of each batch of a queue, as the ledger tells it."""

    def __init__(self, events, epochs):
        self.events = events
        self.given = defaultdict(list)  # by batch: places in the ledger
        self.done = defaultdict(list)
        self.returned = {}  # by lease: place
        self.batch_of = {}  # by lease: the batch, and the process that got it
        self.last_given_to = {}  # by process: place
        self.times_undone = Counter()  # by batch, so far
        self.attempts = {}  # by place of a delivery: the least and the most that it may be
        for place, event in enumerate(events):
            if event["event"] == "delivered":
                self._note_delivery(place, event, epochs)
            elif event["event"] == "done":
                self._note_done(place, event)
            elif event["event"] == "returned":
                self._note_return(place, event)
            elif event["event"] == "mark" and event["what"] == "forgotten":
                self._forget(event)

    def _note_delivery(self, place, event, epochs):
        expect(event["lease"] not in self.batch_of, f"a lease was given twice: {event}")
        batch = (event["epoch"], event["index"])
        counts = not event["rehearsal"] and event["epoch"] < epochs
        self.batch_of[event["lease"]] = (batch if counts else None, event["pid"])
        self.last_given_to[event["pid"]] = place
        if not counts:
            return
        expect(not self.done[batch], f"delivered after it was done: {event}")
        self.given[batch].append(place)
        self.attempts[place] = (1 + self.times_undone[batch], len(self.given[batch]))

    def _note_done(self, place, event):
        expect(event["lease"] in self.batch_of, f"done, but never delivered: {event}")
        batch, process = self.batch_of[event["lease"]]
        expect(process == event["pid"], f"done by another than had it: {event}")
        expect(event["lease"] not in self.returned, f"done after it was given back undone: {event}")
        if batch is None:
            return
        expect(not self.done[batch], f"done twice: {event}")
        self.done[batch].append(place)

    def _note_return(self, place, event):
        expect(event["lease"] in self.batch_of, f"returned, but never delivered: {event}")
        batch, process = self.batch_of[event["lease"]]
        expect(process == event["pid"], f"returned by another than had it: {event}")
        expect(event["lease"] not in self.returned, f"returned twice: {event}")
        self.returned[event["lease"]] = place
        if batch is None:
            return
        expect(not self.done[batch], f"returned after it was done: {event}")
        self.times_undone[batch] += 1

    def _forget(self, mark):
        """We have damaged the journal: of its epoch it says no more of these batches that they are
        done, and of no batch more than this how often it came back undone."""
        for index in mark["batches"]:
            self.done[(mark["epoch"], index)].clear()
        for batch in [batch for batch in self.times_undone if batch[0] == mark["epoch"]]:
            told = mark["undone"].get(str(batch[1]), 0)
            self.times_undone[batch] = min(self.times_undone[batch], told)

    def explained(self, before, after):
        """Whether the process that had a batch may have lost it between two deliveries, or gave it back."""
        process = self.events[before]["pid"]
        if self.returned.get(self.events[before]["lease"], after) < after:
            return True
        for place, event in enumerate(self.events[:after]):
            if event["event"] != "mark":
                continue
            if event["what"] in ("killed", "troubled") and event["pid"] == process:
                return True
            if event["what"] == "daemon" and place > before:
                return True
        # It may have ended in order while no daemon heard its last releases.
        ended = any(event["event"] == "mark" and event["what"] == "ended" and
                    event["pid"] == process for event in self.events)
        return ended and self.last_given_to[process] < after


def check_queue(records, events, deaths, plan):
    """Each batch is delivered, done once, by a worker that trained on it; again only when the one
    that had it was lost. A death of the daemon may cost the ledger one line."""
    queue = Queue(events, len(plan))
    seen = {(line.process, line.batch) for record in records for line in record}
    untold = 0
    for epoch, batches in enumerate(plan):
        for index in range(len(batches)):
            batch = (epoch, index)
            given, done = queue.given[batch], queue.done[batch]
            expect(given, f"batch {batch} was never delivered")
            untold += not done
            for before, after in zip(given, given[1:]):
                expect(queue.explained(before, after),
                       f"batch {batch} was delivered again, and nobody was lost: "
                       f"{events[before]} and {events[after]}")
            if done:
                process = events[done[0]]["pid"]
                expect((process, batch) in seen, f"batch {batch} is done, but {process} has not "
                                                 "trained on it")
            else:
                expect(any(number == batch for _, number in seen), f"nobody trained on {batch}")
    expect(untold <= deaths, f"{untold} batches are not done after {deaths} deaths of the daemon")
    check_attempts(records, queue, deaths)


def check_attempts(lines_of, queue, deaths):
    """Each batch says how often it was begun: at least as often as the ledger knows of, and at most
    as often as it was delivered. A death of the daemon may cost the ledger one line."""
    bounds = defaultdict(list)
    for batch, places in queue.given.items():
        for place in places:
            bounds[queue.events[place]["pid"], batch].append(queue.attempts[place])
    for line in (line for lines in lines_of for line in lines if line.attempt):
        found = bounds[line.process, line.batch]
        expect(any(least <= line.attempt <= most + deaths for least, most in found),
               f"{line.batch} of process {line.process} is attempt {line.attempt}, which may be "
               f"{found}")


def check_returned(returned, events, epochs, deaths):
    """What the daemon took back undone was given back so by the worker; and what a worker gave back
    is so for the daemon, unless the worker or the daemon died meanwhile. `returned`: of each
    worker, its lines; none of them fails in another way."""
    queue = Queue(events, epochs)
    told = Counter(queue.batch_of[lease] for lease in queue.returned)
    said = Counter((line.batch, line.process) for lines in returned for line in lines)
    for (batch, process), times in told.items():
        expect(batch is None or times <= said[batch, process],
               f"process {process} gave back {batch} {said[batch, process]} times, and the daemon "
               f"took it back {times} times")
    killed = {event["pid"] for event in events
              if event["event"] == "mark" and event["what"] in ("killed", "ended")}
    for (batch, process), times in said.items():
        expect(deaths or process in killed or told[batch, process] == times,
               f"process {process} gave back {batch} {times} times, and the daemon took it back "
               f"{told[batch, process]} times")


def check_one_plan(records):
    """All that is trained on of an epoch is of one plan, whatever died meanwhile."""
    seen = {}
    for record in records:
        for line in record:
            first = seen.setdefault(line.batch[0], line.fingerprint)
            expect(line.fingerprint == first,
                   f"epoch {line.batch[0]} has the plans {first} and {line.fingerprint}")


def check_trial(setting, records, ledger, deaths, plan):
    events, torn = read_ledger(ledger)
    check_contents(records, plan)
    check_one_plan(records)
    check_ledger(events, torn, deaths, plan)
    if torn == 0:
        check_explained(records, events)
    if setting.mode == "queue":
        check_queue(records, events, deaths, plan)
    else:
        check_in_order(setting, records, plan)
