"""What must be true after a trial, whatever was killed or stopped in it.

The ledger is the backbone: the daemon's lines in their order, and between them marks of ours: of
each worker's death, before it, and of the daemon's, behind it. A check that fails raises Broken.
"""
import json
from collections import Counter, defaultdict


class Broken(Exception):
    """Something was lost, doubled, or not explained."""


def expect(condition, what):
    if not condition:
        raise Broken(what)


class Line:
    """One line of a worker's record: what it has trained on."""

    def __init__(self, text):
        process, epoch, index, ordinals, fingerprint, lost = text.split()
        self.process = int(process)
        self.batch = (int(epoch), int(index))
        self.ordinals = [int(word) for word in ordinals.split(",")]
        self.fingerprint = fingerprint
        self.lost = int(lost)  # rows that are not there


def read_record(path):
    return [Line(text) for text in texts_of(path)]


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
    """Nobody trained on what was not delivered to him, nor more often."""
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
        self.batch_of = {}  # by lease: the batch, and who got it
        self.last_given_to = {}  # by process: place
        for place, event in enumerate(events):
            if event["event"] == "delivered":
                self._note_delivery(place, event, epochs)
            elif event["event"] == "done":
                self._note_done(place, event)

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

    def _note_done(self, place, event):
        expect(event["lease"] in self.batch_of, f"done, but never delivered: {event}")
        batch, process = self.batch_of[event["lease"]]
        expect(process == event["pid"], f"done by another than had it: {event}")
        if batch is None:
            return
        expect(not self.done[batch], f"done twice: {event}")
        self.done[batch].append(place)

    def explained(self, before, after):
        """Whether whoever had a batch may have lost it between two deliveries."""
        process = self.events[before]["pid"]
        for place, event in enumerate(self.events[:after]):
            if event["event"] != "mark":
                continue
            if event["what"] == "killed" and event["pid"] == process:
                return True
            if event["what"] == "daemon" and place > before:
                return True
        # It may have ended in order while nobody heard its last releases.
        ended = any(event["event"] == "mark" and event["what"] == "ended" and
                    event["pid"] == process for event in self.events)
        return ended and self.last_given_to[process] < after


def check_queue(records, events, deaths, plan):
    """Each batch is delivered, done once, by somebody who has trained on it; again only when who
    had it was lost. A death of the daemon may cost the ledger one line."""
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
