"""The settings of the model, its generator, and the first half of it: versions, pool and claims."""
from collections import Counter, defaultdict
from math import floor, inf
from types import SimpleNamespace

MASK = (1 << 64) - 1
RANKS, UNIFORM = 9, 10  # streams of the planner's generator, appended to its 1 to 8
REMEMBERED = 65536  # closed groups, and groups of which some were abandoned before they began
DEFAULTS = dict(
    step={"sequences": 16},            # or groups, or frames; or lanes, with unroll: frames of a row
    world=1, cut="fixed",              # batches of a step; or dynamic, quadratic: equal cost
    quadratic_scale=0, window=4,       # window: steps' worth within which lengths are matched
    max_length=0,                      # frames; 0: a batch's share of a step in frames, or no limit
    linger=None,                       # ms a waiting loop lets a step fill; null: until it is full
    groups="none",                     # or step, batch: what holds the whole of a group
    group_timeout=600_000, late_groups="cut",  # or abandon: what is incomplete then
    max_staleness=None, stale="pace",  # or drop, zero
    claim_timeout=600_000, zero_most_stale=0,  # rows of each batch
    reuse=1, select="fifo",            # most deliveries of a sequence, 0: no limit; or uniform
    fresh_share=None,                  # of a step; null: 1/reuse (fifo), 0 (uniform)
    pool_sequences=1024, pool_bytes=1 << 40, frame_bytes=[4], seed=0)  # a frame of each field

# ---- the planner's generator, with the number of the step in place of the epoch ------------------
def mix(z):
    z = ((z & MASK) ^ ((z & MASK) >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)

def permute(values, seed, step, stream):
    state = mix(mix(seed + step) + stream)
    for i in range(len(values) - 1, 0, -1):
        while True:  # below(i + 1)
            state = (state + 0x9E3779B97F4A7C15) & MASK
            p = (mix(state) >> 32) * (i + 1)
            if (p & 0xFFFFFFFF) >= (1 << 32) % (i + 1): break
        values[i], values[p >> 32] = values[p >> 32], values[i]
    return values

def checked(given):
    """Settings with their defaults. ValueError for what could not work, or has no effect."""
    s = SimpleNamespace(**{**DEFAULTS, **given})
    (s.kind, s.budget), = [(key, value) for key, value in s.step.items() if key != "unroll"]
    s.unroll, lanes = s.step.get("unroll", 0), s.kind == "lanes"
    frames, spread, fifo = s.kind == "frames", s.groups == "step", s.select == "fifo"
    paced, share = s.stale == "pace" and s.max_staleness is not None, s.budget // max(1, s.world)
    for wrong, why in (
            (set(given) - set(DEFAULTS), "unknown settings"),
            (min(s.world, s.window, s.group_timeout, s.claim_timeout) < 1, "1 is the least"),
            (s.kind == "groups" and s.groups == "none", "step.groups needs groups"),
            (s.budget < (1 if s.kind == "groups" and spread else s.world), "step below world"),
            (s.pool_sequences < max(s.world, 0 if frames else s.budget) or frames and
             s.pool_bytes < s.budget * s.frame_bytes[0], "pool below a step"),
            (frames and s.max_length > share, "max_length exceeds a batch's share of the step"),
            (frames and s.max_staleness is not None and not s.max_length,
             "max_staleness with a step in frames needs max_length"),
            (bool(s.unroll) != lanes, "lanes need unroll, and unroll lanes"),
            (lanes and s.budget % s.world, "each rank has as many lanes"),
            (lanes and (s.groups, s.reuse, s.select, s.cut) != ("none", 1, "fifo", "fixed"),
             "lanes take single sequences in order, once"),
            (lanes and s.max_staleness is not None and not s.max_length,
             "max_staleness with lanes needs max_length"),
            (s.cut == "quadratic" and s.quadratic_scale < 1, "quadratic needs quadratic_scale"),
            (s.stale == "zero" and s.max_staleness is None, "stale = zero needs max_staleness"),
            (paced and not fifo, "select = uniform cannot be paced: stale = drop or zero"),
            (s.kind in ("sequences", "lanes") and s.zero_most_stale > max(1, share), "zero_most_stale: rows"),
            (fifo and s.reuse == 1 and s.fresh_share is not None, "fresh_share needs reuse"),
            (fifo and s.reuse == 0 and s.fresh_share is None, "reuse = 0 needs fresh_share")):
        if wrong: raise ValueError(why)
    s.max_length = s.max_length or (share if frames else 0)
    s.bound = inf if s.max_staleness is None else s.max_staleness
    s.bounded = s.bound < inf and fifo
    if s.fresh_share is None:
        s.fresh_share = 1.0 / s.reuse if fifo else 0.0
    s.need = max(int(fifo), floor(s.fresh_share * s.budget + 0.5))  # fresh: never handed out
    return s

class Unit:
    """What is cut as a whole: a sequence, or a group with the members that are here."""
    missing = property(lambda u: max(0, u.size - u.gone - len(u.members)))
    complete = property(lambda u: bool(u.members) and u.missing == 0)
    frames = property(lambda u: sum(q.length for q in u.members))

    def __init__(self, group, size, arrival, until, by):
        self.group, self.size, self.arrival, self.until, self.by = group, size, arrival, until, by
        self.members, self.gone = [], 0  # gone: so many will not come
        self.given, self.last = 0, -1  # deliveries, and the step of the latest

class Pool:
    """What is in the pool, what waits for it, and what is claimed."""
    def __init__(self, settings):
        self.s, self.given = checked(settings), settings
        self.now, self.events, self.arrivals = 0, 0, 0
        self.v, self.started, self.ended = 0, False, False
        self.lines, self.tops = [], [0]  # restores to another line; highest version of each line
        self.units, self.groups, self.largest_group = [], {}, 1  # the pool, by arrival
        self.closed, self.fewer = {}, {}  # groups: outcome of the late; abandoned before they began
        self.producers = defaultdict(lambda: SimpleNamespace(taken=[], full=0, repeats=0))
        self.answers, self.dropped = [], []
        self.blocked, self.asked, self.claims = [], [], []  # pushes, claims; claims granted
        # Of trainers; of steps: which trainers have not released them, and their sequences.
        self.joined, self.position, self.waiting, self.open = {}, {}, {}, {}
        self.steps, self.ahead = [], []  # ahead: those that are cut, and not known to be trained
        self.lingers = None  # since when a loop waits for a step that could be cut short
        # What each lane is at: a unit of one sequence, and the frame that comes next; or None.
        self.lanes = [None] * (self.s.budget if self.s.kind == "lanes" else 0)

    # ---- versions
    def distance(self, q):
        """Staleness: versions from the model that made it to v, along the way of training."""
        base, extra = q.version, 0
        for restored_to in self.lines[q.line:]:
            if restored_to < base:
                base, extra = restored_to, extra + base - restored_to
        return max(0, self.v - base) + extra
    def stale(self, unit): return max(map(self.distance, unit.members))
    def too_stale(self, staleness): return staleness > self.s.bound
    def advance(self, e):
        self.started, version, restored = True, e["version"], e.get("restored", False)
        # A step makes a version.
        self.ahead = [] if restored else self.ahead[max(0, version - self.v):]
        if restored and version < self.v and not e.get("replays", False):
            self.lines.append(version)
            self.tops.append(version)
        self.v = version if restored else max(self.v, version)
        self.tops[-1] = max(self.tops[-1], self.v)
        self.drop_stale()
    def drop_stale(self):
        for unit in [u for u in self.units if u.members and self.too_stale(self.stale(u))]:
            if unit.given or self.s.stale != "zero":
                self.drop(unit, "done" if unit.given else "dropped_stale", "stale")

    # ---- the pool
    def new(self): return [u for u in self.units if not u.given]
    def kept(self): return [u for u in self.units if u.given]
    def committed(self): return sum(len(u.members) for u in self.new())
    def in_flight(self, claimed=0, missing=0):
        """Sequences that were claimed, or that begun groups lack, whichever are more."""
        return max(claimed + sum(c.left for c in self.claims),
                   missing + sum(u.missing for u in self.new()))
    def drop(self, unit, state, why=""):
        """A unit leaves the pool, as `done` if it was handed out."""
        self.units.remove(unit)
        self.groups.pop(unit.group, None)
        self.close(unit.group, "abandoned" if state == "done" else state)
        for q in unit.members: self.lose(q, state, why)
    def lose(self, q, state, why):
        q.left, q.state = True, "delivered" if q.out else state  # done once its steps are released
        if state != "done":
            self.dropped.append(dict(producer=q.producer, number=q.number, at=self.now,
                                     outcome=state, why=why))
    def remember(self, table, group, value):
        table[group] = value
        if len(table) > REMEMBERED: del table[next(iter(table))]
    def close(self, group, late):  # late: what becomes of members that come after this
        if group is not None: self.remember(self.closed, group, late)

    # ---- producers
    def answer(self, event, text, **more):
        self.answers.append(dict(event=event, at=self.now, answer=text, **more))
    def wait(self, e, queue, **more):
        until = None if e.get("timeout") is None else self.now + e["timeout"]
        queue.append(SimpleNamespace(e=e, producer=e["producer"], event=self.events,
                                     since=self.now, until=until, **more))
    def group_of(self, e): return None if self.s.groups == "none" else e.get("group")
    def bytes_of(self, e): return sum(n * size for n, size in zip(e["lengths"], self.s.frame_bytes))
    def push(self, e):
        p = self.producers[e["producer"]]
        due = len(p.taken) + sum(b.producer == e["producer"] for b in self.blocked)
        if e["number"] < due:
            p.repeats += 1
            return self.answer(self.events, "duplicate")
        why = self.misfit(e) if e["number"] == due else f"number {due} comes next"
        if self.ended or why:
            return self.answer(self.events, "refused", why="ended" if self.ended else why)
        self.wait(e, self.blocked)
    def misfit(self, e):
        """Why it can never be accepted; empty if it can."""
        s, length, newest = self.s, e["lengths"][0], e.get("version_newest", e["version"])
        reasons = [(newest < e["version"], "version_newest is below version"),
                   (newest > max(self.tops), "version from the future"),
                   (length < 1, "no frames"),
                   (s.max_length and length > s.max_length, "longer than max_length"),
                   (self.bytes_of(e) > s.pool_bytes, "larger than the pool")]
        group, size = self.group_of(e), e.get("group_size", 0)
        if group is not None and group not in self.closed:
            unit, parts = self.groups.get(group), s.world if s.groups == "batch" else 1
            amount = length + (unit.frames if unit else 0) if s.kind == "frames" else size
            step = size * self.groups_of_step()
            reasons += [(size < 1, "a group without a size"),
                        (amount > s.budget // parts and s.kind != "groups",
                         f"group exceeds a {s.groups}"),
                        (step > s.pool_sequences, "group exceeds the pool"),
                        (unit and unit.size != size, "another group_size than the first member's"),
                        (unit and len(unit.members) == size, "the group is full")]
        return next((why for wrong, why in reasons if wrong), "")
    def groups_of_step(self):  # that each step has for sure
        return self.s.budget if self.s.kind == "groups" else \
            self.s.world if self.s.groups == "batch" else 1
    def admit(self):
        """Accepts the first push that waits and has room."""
        behind, first = set(), True
        for b in self.blocked:
            if b.producer not in behind:
                behind.add(b.producer)
                grows, late = self.growth(b.e), self.group_of(b.e) in self.closed
                # What was claimed, or what a begun group lacks, has its room and passes the others.
                if late or (grows == 0 or first) and self.make_room(grows, b.e):
                    self.blocked.remove(b)
                    self.accept(b, late)
                    return True
                first = first and grows == 0
        return False
    def growth(self, e):
        """Places that a push takes or keeps beyond those that are kept for it already."""
        claimed = -any(c.producer == e["producer"] for c in self.claims)
        missing, group = 0, self.group_of(e)
        if group in self.groups:
            missing = -min(1, self.groups[group].missing)
        elif group is not None:  # the whole group has to find room
            missing = max(0, e["group_size"] - 1 - self.fewer.get(group, 0))
        return 1 + self.in_flight(claimed, missing) - self.in_flight()
    def make_room(self, grows, e):
        """Whether it has room. What was handed out before gives way, the oldest version first."""
        s, size = self.s, self.bytes_of(e)
        if (grows and self.committed() + self.in_flight() + grows > s.pool_sequences or
                sum(q.bytes for u in self.new() for q in u.members) + size > s.pool_bytes):
            return False
        for unit in sorted(self.kept(), key=lambda u: (-self.stale(u), u.arrival)):
            held = [q.bytes for u in self.units for q in u.members]
            if len(held) >= s.pool_sequences or sum(held) + size > s.pool_bytes:
                self.drop(unit, "done")
        return True
    def accept(self, b, late):
        e, group = b.e, self.group_of(b.e)
        q = SimpleNamespace(  # out: steps with it that are not released; left: out of the pool
            producer=b.producer, number=e["number"], length=e["lengths"][0], bytes=self.bytes_of(e),
            version=e["version"], line=self.use_claim(e), weight=e.get("weight", 1.0),
            arrival=self.arrivals, state="waiting", left=False, out=0)
        self.arrivals += 1
        self.producers[b.producer].taken.append(q)
        if b.since != self.now: self.answer(b.event, "accepted")
        if late: return self.lose(q, self.closed[group], "late")
        if group not in self.groups:
            size = 1 if group is None else e["group_size"]
            unit = Unit(group, size, q.arrival, self.now + self.s.group_timeout, q.producer)
            self.units.append(unit)
            self.largest_group = max(self.largest_group, size)
            if group is not None:
                self.groups[group], unit.gone = unit, self.fewer.pop(group, 0)
        unit = self.groups.get(group, self.units[-1])
        unit.members.append(q)
        if self.s.stale != "zero" and self.too_stale(self.stale(unit)):
            self.drop(unit, "dropped_stale", "stale")
    def use_claim(self, e):
        """Uses up a claim of the producer; returns the line of training that made the sequence."""
        own = [c for c in self.claims if c.producer == e["producer"]]
        claim = next((c for c in own if c.version == e["version"]), own[0] if own else None)
        self.use_up([claim] if claim else [], 1)
        if claim and claim.version == e["version"]: return claim.line
        # A version that this line has not reached is of the last line that had.
        return max(i for i, top in enumerate(self.tops) if top >= e["version"])
    def use_up(self, claims, count):
        for c in claims:
            used = min(count, c.left)
            c.left, count = c.left - used, count - used
        self.claims = [c for c in self.claims if c.left]
    def abandon(self, e):
        if "number" in e: return self.abandon_number(e)
        group, count = self.group_of(e), e["count"]
        if group in self.groups:
            unit = self.groups[group]
            count = count or unit.missing
            unit.gone += min(count, unit.missing)
            if not unit.members and unit.missing == 0: self.drop(unit, "abandoned")
        elif group is not None and group not in self.closed:
            self.remember(*(self.fewer, group, self.fewer.get(group, 0) + count) if count else
                          (self.closed, group, "abandoned"))
        self.use_up([c for c in self.claims if c.producer == e["producer"]], count)
    def abandon_number(self, e):  # of one that is cut, or settled otherwise, it is too late
        for unit, q in [(u, q) for u in self.new() for q in u.members
                        if (q.producer, q.number) == (e["producer"], e["number"])]:
            unit.members.remove(q)
            unit.gone += 1
            self.lose(q, "abandoned", "asked")
            if not unit.members and unit.missing == 0: self.drop(unit, "abandoned")
    def gone(self, e):
        if "trainer" in e: return self.trainer_gone(e["trainer"])
        for waits in (self.claims, self.asked, self.blocked):
            waits[:] = [x for x in waits if x.producer != e["producer"]]
        for unit in [u for u in self.units if not u.complete]:
            if {unit.by, *(q.producer for q in unit.members)} == {e["producer"]}:
                self.close_group(unit)

    # ---- claims. Amounts are in frames where the budget is, else in sequences. What is still to
    # come counts as max_length, and a begun group as a whole.
    def longest(self): return self.s.max_length if self.s.kind == "frames" else 1
    def amount(self, unit):
        if self.s.kind == "groups": return self.largest_group
        here = unit.frames if self.s.kind == "frames" else len(unit.members)
        return here + unit.missing * self.longest()
    def full(self):
        """What a full step takes of fresh sequences."""
        return self.s.need * (self.largest_group if self.s.kind == "groups" else 1)
    def steps_of(self, frames): return -(-frames // self.s.unroll)  # that a lane is busy
    def lefts(self): return [lane and self.steps_of(lane[0].frames - lane[1]) or 0
                             for lane in self.lanes]
    def takes(self, lefts, steps):
        """Sequences that lanes take in so many steps, which are free after `lefts` of them, and then
        busy with the longest."""
        return sum(max(0, -(-(steps - left) // self.steps_of(self.s.max_length))) for left in lefts)
    def room_in(self, steps):
        """What so many steps can take for sure: each but the last may end before a unit that is
        too large for the rest of it."""
        if self.lanes: return self.takes(self.lefts(), steps)
        largest = 1 if self.s.kind == "groups" else self.longest() * self.largest_group
        lost = min(largest, self.full()) - 1
        return 0 if steps < 1 else self.full() + (steps - 1) * (self.full() - lost)
    def coming(self):
        """Granted claims, with the amounts beyond what groups of the same producer lack."""
        missing = Counter()
        for unit in self.new(): missing[unit.by] += unit.missing
        for c in self.claims:
            covered = min(missing[c.producer], c.left)
            missing[c.producer] -= covered
            left = c.left - covered
            if self.s.kind == "groups" and c.count >= self.largest_group:
                left += -left % self.largest_group  # what is left of a group's claim is a group
            yield c, left * self.longest()
    def most_claimed(self):
        most = self.s.pool_sequences - self.least() + 1  # beside what is too little for a step
        if self.s.bounded and self.s.kind == "sequences":
            most = min(most, self.room_in(self.s.bound + 1))
        if self.s.bounded and self.lanes:  # those of one rank, if all were free
            of_rank = [0] * (len(self.lanes) // self.s.world)
            most = min(most, self.takes(of_rank, self.s.bound + 1))
        return most
    def claim(self, e):
        most = self.most_claimed()
        if self.ended or not 1 <= e["count"] <= most:
            why = "ended" if self.ended else f"1 to {most} can be claimed at once"
            return self.answer(self.events, "refused", why=why)
        self.wait(e, self.asked, count=e["count"], left=e["count"])
    def against(self, count):
        """What a claim of so many waits for; empty if it can be granted."""
        more = self.in_flight(count) - self.in_flight()
        if not self.started: return "trainer"
        if more == 0: return ""  # it is for members that begun groups lack
        if self.committed() + self.in_flight() + more > self.s.pool_sequences: return "pool"
        amount = sum(map(self.amount, self.new())) + sum(amount for _, amount in self.coming())
        steps = self.s.bound + 1 - len(self.ahead)
        held = self.s.bounded and amount + more * self.longest() > self.room_in(steps)
        return "staleness" if held else ""
    def first_claim(self):
        """The first claim that can be granted, in order; else the first, and what it waits for."""
        for c in self.asked:
            in_turn = c is self.asked[0] or self.in_flight(c.count) == self.in_flight()
            if in_turn and not self.against(c.count): return c, ""
        return (self.asked[0], self.against(self.asked[0].count)) if self.asked else (None, "")
    def starved(self):
        """A loop waits, nothing is on its way, and what would come is held back."""
        return self.idle() and not self.in_flight() and self.first_claim()[1]
    def grant(self):
        claim, why = self.first_claim()
        if claim is None or why and (self.enough() or self.starved() != "staleness"): return False
        self.asked.remove(claim)
        claim.version, claim.line = self.v, len(self.lines)
        claim.until = self.now + self.s.claim_timeout
        self.claims.append(claim)
        self.answer(claim.event, "granted", version=self.v)
        return True
