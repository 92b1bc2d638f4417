"""What must hold once a live feed has ended. Producers' records say what was offered and accepted,
trainers' what they got. A check that fails raises Broken."""
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from checks import expect, texts_of

# What a daemon promises of what it accepted before it died: with a pool in memory, and with a spool.
AT_MOST_ONCE, EXACTLY_ONCE = "at_most_once", "exactly_once"

UNKNOWN, DONE, DROPPED, ABANDONED = "0", "3", "4", "5"
NO_GROUP = 2**64 - 1


@dataclass
class Item:
    length: int
    version: int
    group: int  # None: in none
    group_size: int


@dataclass
class Made:
    """A producer's record."""
    items: dict = field(default_factory=dict)  # by their number in the record
    took: dict = field(default_factory=dict)  # by incarnation and number: the item
    gone: set = field(default_factory=set)  # items that were given up, accepted or not
    abandoned: set = field(default_factory=set)  # groups of which it gave up some
    back: set = field(default_factory=set)  # incarnation and number of what it took back
    incarnation: int = 0  # that it heard of last
    known_from: int = 0  # number from which on that one must know what became of it
    states: str = ""  # of its numbers, in that one
    totals: list = field(default_factory=list)

    def read(self, what, *words):
        numbers = [int(word) for word in words]
        if what == "begin":
            self.incarnation, self.known_from = numbers[1:]
        elif what == "offer":
            group = None if numbers[4] == NO_GROUP else numbers[4]
            self.items[numbers[0]] = Item(numbers[2], numbers[3], group, numbers[5])
        elif what == "took":
            if self.incarnation != numbers[1]:
                self.incarnation, self.known_from = numbers[1], 0
            expect(tuple(numbers[1:]) not in self.took, f"a number was given twice: {numbers}")
            self.took[numbers[1], numbers[2]] = numbers[0]
        elif what == "gone":
            self.gone.add(numbers[0])
        elif what == "abandon":
            self.abandoned.add(numbers[0])
        elif what == "back":
            self.back.add((self.incarnation, numbers[0]))
        elif what == "totals":
            if self.incarnation != numbers[0]:
                self.incarnation, self.known_from = numbers[0], 0
            self.totals = numbers[1:]


def read_made(path):
    made = Made()
    for text in texts_of(path):
        what, *words = text.split()
        if what == "outcomes":
            made.states = words[1] if len(words) > 1 else ""
        else:
            made.read(what, *words)
    return made


@dataclass
class Row:
    producer: str
    number: int
    key: str
    version: int
    weight: float
    group: int
    length: int


class Batch:
    """What a trainer says of a batch."""

    def __init__(self, entry):
        self.rank, self.world = entry["rank"], entry["world"]
        self.incarnation, self.index = entry["incarnation"], entry["index"]
        self.version = entry["version"]
        self.rows = [Row(*row) for row in entry["rows"]]

    @property
    def step(self):
        return self.index // self.world


def read_trained(path):
    """Of each life of a trainer: its batches."""
    lives = []
    for text in texts_of(path):
        entry = json.loads(text)
        if "life" in entry:
            lives.append([])
        elif "index" in entry:
            lives[-1].append(Batch(entry))
    return lives


def item_of(made, row):
    """What its producer knows of a row. `made`: by name."""
    name, _, number = row.key.partition("/")
    expect(name == row.producer and name in made, f"{row} is of another producer")
    item = made[name].items.get(int(number))
    expect(item is not None, f"{row} was never offered")
    return int(number), item


def check_rows(made, batches):
    """Each row is what its producer offered, and has the number under which it was accepted."""
    for batch in batches:
        for row in batch.rows:
            number, item = item_of(made, row)
            expect((row.length, row.version, row.group) == (item.length, item.version, item.group),
                   f"{row} is not what was offered: {item}")
            taken = made[row.producer].took.get((batch.incarnation, row.number))
            expect(taken == number if taken is not None else number in made[row.producer].gone,
                   f"{row} has the number of item {taken}")


def check_same(batches):
    """All trainers get the same. Returns each batch once."""
    seen = {}
    for batch in batches:
        first = seen.setdefault((batch.incarnation, batch.index), batch)
        expect((first.rows, first.version, first.world) == (batch.rows, batch.version, batch.world),
               f"batch {batch.index} is two: {first.rows} and {batch.rows}")
    return list(seen.values())


def check_once(batches, reuse):
    """No item is in two incarnations, nor twice in a step (but for filler), nor in more steps than
    it may be. `batches`: each once."""
    steps = defaultdict(set)
    counted = Counter()
    for batch in batches:
        for row in batch.rows:
            steps[row.key].add((batch.incarnation, batch.step))
            counted[row.key, batch.incarnation, batch.step] += row.weight != 0
    for key, where in steps.items():
        expect(len({incarnation for incarnation, _ in where}) == 1,
               f"{key} was delivered by two daemons: {sorted(where)}")
        expect(reuse == 0 or len(where) <= reuse, f"{key} is in steps {sorted(where)}")
    for (key, _, step), times in counted.items():
        expect(times <= 1, f"{key} is {times} times in step {step}")


def check_staleness(batches, live):
    """By the header of each batch. Returns how many rows had a bound."""
    bound = live.get("max_staleness")
    if bound is None:
        return 0
    zeroes = live.get("stale") == "zero"
    for batch in batches:
        for row in batch.rows:
            expect(batch.version - row.version <= bound or (zeroes and row.weight == 0),
                   f"step {batch.step} of version {batch.version} has {row}; the bound is {bound}")
    return sum(len(batch.rows) for batch in batches)


def check_groups(made, batches, kind):
    """A group is in one step, or batch; and as a whole where all of it was accepted and nothing taken
    back, and somebody had each batch of the step."""
    if kind == "none":
        return
    places, members = defaultdict(set), defaultdict(set)
    for batch, row in without_fillers(batches):
        group = batch.incarnation, row.producer, row.group
        places[group].add(batch.index if kind == "batch" else batch.step)
        members[group].add(row.key)
    had = Counter((batch.incarnation, batch.step) for batch in batches)
    seen_in = {(batch.incarnation, row.producer, row.group): batch
               for batch in batches for row in batch.rows}
    for group, where in places.items():
        expect(len(where) == 1, f"group {group} is torn: it is in {sorted(where)}")
        incarnation, name, number = group
        one = made[name]
        numbers = [(taken, accepted) for taken, accepted in one.took.items()
                   if taken[0] == incarnation and one.items[accepted].group == number]
        size = one.items[numbers[0][1]].group_size if numbers else 0
        is_whole = (len(numbers) == size and number not in one.abandoned
                    and not any(taken in one.back for taken, _ in numbers))
        one_of = seen_in[group]
        is_seen = had[incarnation, one_of.step] == one_of.world
        expect(not (is_whole and is_seen) or len(members[group]) == size,
               f"group {group} has {len(members[group])} of {size} members in its step")


def without_fillers(batches):
    """The rows, without those that repeat another of their step with weight 0."""
    rows = [(batch, row) for batch in batches for row in batch.rows]
    rows.sort(key=lambda each: each[1].weight == 0)
    seen = set()
    for batch, row in rows:
        place = batch.incarnation, batch.step, row.key
        if place not in seen:
            seen.add(place)
            yield batch, row


def check_order(lives, mode, ranks):
    """Within a life each rank has each batch of its share in order, and all have equal steps when it
    ends by itself: its last life."""
    if mode == "queue":
        return
    for life in lives:
        by_rank = defaultdict(list)
        for batch in life:
            by_rank[batch.rank].append(batch)
        for rank, own in by_rank.items():
            share = own[0].world // ranks
            expect(len({batch.incarnation for batch in own}) == 1, "a life has two incarnations")
            for before, batch in zip(own, own[1:]):
                more = 1 if (before.index + 1) % share else 1 + own[0].world - share
                expect(batch.index == before.index + more,
                       f"rank {rank}: batch {batch.index} comes behind {before.index}")
            expect(own[0].index % own[0].world == rank * share,
                   f"rank {rank} begins within a step, with batch {own[0].index}")
    steps = [Counter(batch.rank for batch in lives[-1])[rank] for rank in range(ranks)] or [0]
    expect(len(set(steps)) == 1, f"ranks have unequal steps: {steps}")
    if lives[-1]:
        expect((1 + max(batch.index for batch in lives[-1])) % lives[-1][0].world == 0,
               "it ends within a step")


def has_all(lives, mode, incarnation):
    """Whether a trainer has all that this incarnation delivered, for sure: it was there from its
    first step to its end."""
    return mode != "queue" and lives and any(
        batch.index == 0 and batch.incarnation == incarnation for batch in lives[-1])


def check_settled(name, made, delivered, knows_all):
    """Each number that the last daemon accepted is settled, and what is dropped was never in a step.
    It may have forgotten those of a session of the producer that is over. `delivered`: numbers of
    this producer; with `knows_all` there are no others."""
    unknown, waiting, underway, *settled, lost = made.totals[1:]
    told = f"{name}: totals {made.totals} of {made.states}, known from {made.known_from}"
    expect((unknown, waiting, underway, lost) == (0, 0, 0, 0) and
           sum(settled) == made.totals[0] == len(made.states), told)
    counts = [made.states.count(state) for state in (DONE, DROPPED, ABANDONED)]
    expect(UNKNOWN not in made.states[made.known_from:] and
           all(count <= total for count, total in zip(counts, settled)), told)
    taken = {number for incarnation, number in made.took if incarnation == made.incarnation}
    expect(taken <= set(range(len(made.states))), f"{name}: accepted, and not known: {made.states}")
    for number, state in enumerate(made.states):
        expect(state in (DONE, UNKNOWN) or number not in delivered,
               f"{name}: number {number} is in a step, and its outcome is {state}")
        expect(not knows_all or state != DONE or number in delivered,
               f"{name}: number {number} is done, and nobody had it")


def check_live(setting, made, trained, promise, deaths):
    """`made`, `trained`: of each process. Returns figures."""
    live = setting.more["live"]
    by_name = {f"actor{number}": one for number, one in enumerate(made)}
    words = setting.worker[len(made):]
    modes = [next(word[5:] for word in own if word.startswith("mode=")) for own in words]
    ranks = [next(int(word[6:]) for word in own if word.startswith("ranks=")) for own in words]
    everything = [batch for lives in trained for life in lives for batch in life]
    check_rows(by_name, everything)
    batches = check_same(everything)
    expect(all(batch.world == setting.world for batch in batches), "a step has another world")
    check_once(batches, live.get("reuse", 1))
    bounded = check_staleness(batches, live)
    check_groups(by_name, batches, live["groups"])
    for lives, mode, of_ranks in zip(trained, modes, ranks):
        check_order(lives, mode, of_ranks)
    incarnations = {incarnation for one in made for incarnation, _ in one.took}
    if promise == EXACTLY_ONCE:
        expect(len(incarnations) <= 1, f"a restart forgot what was accepted: {incarnations}")
    expect(len(incarnations) <= deaths + 1, f"{len(incarnations)} incarnations, {deaths} deaths")
    for name, one in by_name.items():
        delivered = {row.number for batch in batches if batch.incarnation == one.incarnation
                     for row in batch.rows if row.producer == name}
        knows_all = modes[0] == "queue" or any(
            has_all(lives, mode, one.incarnation) for lives, mode in zip(trained, modes))
        check_settled(name, one, delivered, knows_all)
    return Counter({"rows": sum(len(batch.rows) for batch in batches),
                    "rows with a bound": bounded,
                    "sequences accepted": sum(len(one.took) for one in made),
                    "sequences in doubt": sum(len(one.gone) for one in made)})
