"""A second implementation of a live feed: daemon/live/DEFINITIONS.md as a program.

    python3 model.py CASES.json     says which cases it agrees with

Pure: (settings, log) -> steps, answers, outcomes. It says what is decided, not how fast. Bytes,
rings, spool, queue mode, and a step's way from cut to release are not in it.

The log: events in the order in which the daemon handles them. `at` is its time in whole ms, and
never falls; what runs out at `at` or before is handled first. A timeout is in ms; null: none.

    {"do": "push", "producer", "number", "lengths": [primary, ...], "version", "version_newest",
           "group", "group_size", "weight", "timeout"}
    {"do": "claim", "producer", "count", "timeout"}
    {"do": "abandon", "producer", "group", "count"}     so many will not come; 0: all missing
                         ... or "number"}               this one is not to be used
    {"do": "gone", "producer"}                          closed, or dead; or "trainer": unsubscribed
    {"do": "advance", "version", "restored", "replays"} replays: the trainer takes kept steps again
    {"do": "take", "trainer", "step", "prefetch"}       its loop waits; prefetch: it has room
    {"do": "release", "trainer", "step"}
    {"do": "limits", "settings": {...}}                 those of LIMITS; the rest stays as it was
    {"do": "end"}  {"do": "time"}                       no more will come; only time passes

A result has steps (`after`: events handled before the cut; for each rank batches of [producer,
number], weights, staleness; zeroed rows; filler as [rank, row]; with lanes the starts, lengths and
flags of rows, where a free lane is null); answers to claims and takes, and
to pushes not accepted at once; outcomes: the states of each producer's numbers; dropped, and why.
What `refused` and its `why` say is for people: a daemon has texts of its own.
"""
import json
import sys

from model_pool import RANKS, UNIFORM, Pool, checked, permute

LIMITS = {"window", "max_length", "linger", "group_timeout", "late_groups", "max_staleness", "stale",
          "claim_timeout", "zero_most_stale", "reuse", "fresh_share", "pool_sequences"}



class Live(Pool):
    """One incarnation of a feed. event() handles one event of the log; result() tells all."""

    # ---- trainers
    def take(self, e):
        trainer, prefetch, self.started = e["trainer"], e.get("prefetch", False), True
        at = self.position.setdefault(trainer, len(self.steps))
        self.joined.setdefault(trainer, at)
        if e.get("step", at) >= at:  # else it is on its way
            self.waiting[trainer] = (self.events, prefetch)
            if at < len(self.steps):
                self.hand_out(trainer)
            elif not prefetch:  # its loop has finished all that it got
                self.ahead = [n for n in self.ahead if n < self.joined[trainer]]
    def hand_out(self, trainer):
        self.answer(self.waiting.pop(trainer)[0], "step", step=self.position[trainer])
        self.position[trainer] += 1
    def wanting(self): return [t for t in self.waiting if self.position[t] == len(self.steps)]
    def idle(self): return any(not self.waiting[t][1] for t in self.wanting())
    def release(self, e):
        holders, members = self.open.get(e["step"], ({}, []))
        if e["trainer"] in holders and self.position[e["trainer"]] > e["step"]:
            self.let_go(e["trainer"], holders, members)
    def let_go(self, trainer, holders, members):
        del holders[trainer]
        for q in members if not holders else []:
            q.out -= 1
            if q.left and q.out == 0: q.state = "done"
    def trainer_gone(self, trainer):
        for of in (self.joined, self.position, self.waiting): of.pop(trainer, None)
        for holders, members in self.open.values():
            if trainer in holders: self.let_go(trainer, holders, members)

    # ---- cutting a step
    def total(self, units):
        if self.s.kind == "groups": return len(units)
        return sum(u.frames if self.s.kind == "frames" else len(u.members) for u in units)
    def places(self, units):
        return len(units) if self.s.groups == "batch" else sum(len(u.members) for u in units)
    def least(self):  # sequences that may be needed to give each batch a row or group
        return 1 + (self.s.world - 1) * (self.largest_group if self.s.groups == "batch" else 1)
    def enough(self):
        if self.lanes: return len([u for u in self.units if u.complete]) >= len(self.idle_ranks())
        return self.places([u for u in self.units if u.complete]) >= self.s.world
    def pressed(self):
        """The pool is full, and nothing that it keeps room for can get in."""
        return bool(self.blocked) and (self.in_flight() == 0 or
                                       any(self.growth(b.e) == 0 for b in self.blocked))
    def due(self):
        """What this step has to take so that all the rest can be handed out in time: the units of
        it that are ready, and whether some of it is still to come."""
        waits = self.s.stale == "pace"  # for what is to come; else that does not count
        entries = [(self.stale(u), not u.complete, u.arrival, self.amount(u), u)
                   for u in self.new() if u.complete or waits and u.members]
        entries += [(self.distance(c), 2, c.event, amount, None)
                    for c, amount in self.coming() if waits and amount]
        entries = [e for e in entries if self.s.bounded and not self.too_stale(e[0])]
        must, total, units = 0, 0, []
        for staleness, _, _, amount, _ in (order := sorted(entries, key=lambda e: (-e[0], e[1:3]))):
            total += amount
            later = self.s.bound - staleness - len(self.ahead)  # steps that are in time
            must = min(self.full(), max(must, total - self.room_in(later)))
        while must > 0 and order and not order[0][1]:
            must -= order[0][3]
            units.append(order.pop(0)[4])
        return units, must > 0
    def cut(self):
        """Cuts the next step if it is time to."""
        s, fresh, kept = self.s, [u for u in self.new() if u.complete], self.kept()
        if self.ended and not fresh and not any(self.lanes):
            for unit in kept: self.drop(unit, "done")
            for trainer in self.wanting(): self.answer(self.waiting.pop(trainer)[0], "end")
        busy = len(self.lanes) - self.lanes.count(None)
        idle, enough, need = self.idle(), self.enough(), s.budget if self.ended else s.need
        if not (idle and enough and self.lingers is not None):
            self.lingers = self.now if idle and enough else None
        if not self.wanting(): return False
        must, waits = ([], self.lanes_wait(fresh)) if self.lanes else self.due()
        full = (enough and busy + self.total(fresh) >= need and
                busy + self.total(fresh + kept) >= s.budget)
        lingered = None not in (self.lingers, s.linger) and self.now >= self.lingers + s.linger
        why = next((why for holds, why in (
            (full, "full"), (self.ended, "end"), (idle and self.pressed(), "pool"),
            (lingered, "linger"), (self.starved(), "starved")) if holds), None)
        if why is None or not self.ended and (not enough or waits and not self.pressed()):
            return False
        units = self.choose(fresh, kept, must, need)
        going_on = [lane[0] for lane in self.lanes if lane]
        stale = [self.too_stale(self.distance(q)) for u in units + going_on for q in u.members]
        if s.stale == "zero" and all(stale):  # a step in which no row counts serves no one
            for unit in units: self.drop(unit, "dropped_stale", "stale")
            for unit in going_on: self.through(unit)
            self.lanes = [None] * len(self.lanes)
        else:
            self.make_step(units, why)
        return True
    # ---- lanes
    def ranks(self):
        of_rank = len(self.lanes) // self.s.world
        return [range(rank * of_rank, (rank + 1) * of_rank) for rank in range(self.s.world)]
    def idle_ranks(self): return [r for r in self.ranks() if not any(self.lanes[i] for i in r)]
    def lanes_wait(self, fresh):
        """Whether what is in flight would find no lane in time if this step were cut now."""
        if not self.s.bounded or self.s.stale != "pace": return False
        free = self.lanes.count(None)
        longest = self.steps_of(self.s.max_length)
        taken = [longest] * min(free, len(fresh))
        after = [left - 1 for left in self.lefts() if left] + [left - 1 for left in taken]
        after += [0] * (free - len(taken))
        coming = [(self.distance(c), amount) for c, amount in self.coming()]
        for s in {staleness for staleness, _ in coming if staleness <= self.s.bound}:
            as_stale = sum(self.stale(unit) >= s for unit in fresh)
            amount = sum(amount for staleness, amount in coming if s <= staleness <= self.s.bound)
            room = self.takes(after, self.s.bound - s - len(self.ahead))
            if as_stale < free and amount > room: return True
        return False
    def lane_batches(self, units):
        """Free lanes take the units; then each gives its next row: of what, from where, how long."""
        for unit in units:
            self.units.remove(unit)
            unit.given = 1
            lanes = min(self.ranks(), key=lambda r: sum(bool(self.lanes[i]) for i in r))
            self.lanes[next(i for i in lanes if not self.lanes[i])] = (unit, 0)
        rows = [lane and (lane[0].members[0], True, lane[1],
                          min(self.s.unroll, lane[0].frames - lane[1])) for lane in self.lanes]
        batches, real, more = [[rows[i] for i in r] for r in self.ranks()], [r for r in rows if r], 0
        for batch in batches:
            if not any(batch):
                q, _, start, frames = real[more % len(real)]
                batch[0], more = (q, False, start, frames), more + 1
        return batches
    def move_lanes(self):
        for i, lane in enumerate(self.lanes):
            if lane:
                unit, at = lane[0], lane[1] + self.s.unroll
                self.lanes[i] = (unit, at) if at < unit.frames else None
                if self.lanes[i] is None: self.through(unit)
    def through(self, unit):
        q, = unit.members
        q.left, q.state = True, "delivered" if q.out else "done"
    def choose(self, fresh, kept, must, need):
        s, chosen = self.s, []
        if self.lanes:
            order = sorted(fresh, key=lambda u: (-self.stale(u), u.arrival))
            return order[:self.lanes.count(None)]
        def put(unit):
            if self.total(chosen + [unit]) <= s.budget or self.places(chosen) < s.world:
                chosen.append(unit)  # beyond the budget only to give each batch a row
            return unit is chosen[-1]
        order = sorted(fresh, key=lambda u: (-self.stale(u), u.arrival))
        if s.select == "fifo" and order:
            near, window = order[0].frames // len(order[0].members), 0
            while window < len(order) and self.total(order[:window]) < s.window * s.budget:
                window += 1
            order = must + sorted((u for u in order[:window] if u not in must),
                                  key=lambda u: abs(u.frames // len(u.members) - near))
        order = [u for u in order if not (u in must and put(u))]
        while order and self.total(chosen) < need and put(order[0]): order.pop(0)
        if s.select == "uniform":
            rest = sorted(order + kept, key=lambda u: u.arrival)
            more = [permute(rest, s.seed, len(self.steps), UNIFORM)]
        else:
            more = [sorted(kept, key=lambda u: (u.last, -self.stale(u), u.arrival)), order]
        for units in more: all(put(unit) for unit in units)  # up to the first that does not fit
        return chosen
    def make_step(self, units, why):
        s, number = self.s, len(self.steps)
        step = dict(step=number, at=self.now, after=self.events, version=self.v, why=why,
                    batches=[], weights=[], staleness=[], zeroed=[], filler=[])
        if self.lanes:
            batches = self.lane_batches(units)
            self.show_parts(step, batches)
        else:
            batches = permute(self.batches(units), s.seed, number, RANKS)
        members = {id(q): q for rows in batches for row in rows if row for q in row[:1]}.values()
        for rank, rows in enumerate(batches):
            stale = [row and self.distance(row[0]) or 0 for row in rows]
            real = [i for i, row in enumerate(rows) if row and row[1]]
            worst = sorted(real, key=lambda i: (-stale[i], rows[i][0].arrival))
            zero = {i for i in worst[:min(s.zero_most_stale, len(real) - 1)] if stale[i] > 0}
            zero |= {i for i in real if s.stale == "zero" and self.too_stale(stale[i])}
            names = [row and [row[0].producer, row[0].number] for row in rows]
            step["batches"].append(names)
            step["weights"].append([1.0 if not row else row[0].weight if row[1] and i not in zero
                                    else 0.0 for i, row in enumerate(rows)])
            step["staleness"].append(stale)
            step["zeroed"] += [names[i] for i in sorted(zero)]
            step["filler"] += [[rank, i] for i, row in enumerate(rows) if row and not row[1]]
        self.steps.append(step)
        self.ahead.append(number)
        self.open[number] = (dict.fromkeys(self.position), list(members))
        self.lingers = None
        if self.lanes:
            for q in members: q.state, q.out = "delivered", q.out + 1
            self.move_lanes()
        for unit in [] if self.lanes else units:
            unit.given, unit.last = unit.given + 1, number
            self.close(unit.group, "abandoned")
            for q in unit.members: q.state, q.out = "delivered", q.out + 1
            if unit.given == s.reuse or self.too_stale(self.stale(unit)):
                self.drop(unit, "done")
        for trainer in [t for t in self.waiting if self.position[t] == number]:
            self.hand_out(trainer)
    def show_parts(self, step, batches):
        def flags(row): return (row[2] == 0) + 2 * (row[2] + row[3] == row[0].length)
        step["starts"] = [[row[2] if row else 0 for row in rows] for rows in batches]
        step["lengths"] = [[row[3] if row else 0 for row in rows] for rows in batches]
        step["flags"] = [[flags(row) if row else 0 for row in rows] for rows in batches]
    def batches(self, units):
        """Cuts a step into `world` batches of like length and equal cost, longest first. A row is
        a sequence, and whether it counts: filler repeats one, only when a feed ends."""
        s = self.s
        def longest(row): return -row[0].length, row[0].arrival
        def cost(part):
            length = max(rows[0][0].length for rows in part)
            more = length * length // s.quadratic_scale if s.cut == "quadratic" else 0
            return sum(map(len, part)) * (length + more)
        def cut_by(capacity):
            parts = [[]]
            for item in items:
                if parts[-1] and cost(parts[-1] + [item]) > capacity:
                    parts.append([])
                parts[-1].append(item)
            return parts
        whole = [sorted([(q, True) for q in u.members], key=longest) for u in units]
        items = whole if s.groups == "batch" else [[row] for rows in whole for row in rows]
        items.sort(key=lambda rows: longest(rows[0]))
        items += [[(items[i % len(items)][0][0], False)] for i in range(s.world - len(items))]
        if s.cut == "fixed":
            rows, more = divmod(len(items), s.world)
            ends = [i * rows + min(i, more) for i in range(s.world + 1)]
            parts = [items[a:b] for a, b in zip(ends, ends[1:])]
        else:
            low, high = max(cost([i]) for i in items), cost(items)
            while low < high:  # the least capacity that makes no more than `world` batches
                middle = (low + high) // 2
                low, high = (low, middle) if len(cut_by(middle)) <= s.world else (middle + 1, high)
            parts = cut_by(low)
            while len(parts) < s.world:  # as remainder = spread
                i = max((i for i, p in enumerate(parts) if len(p) > 1),
                        key=lambda i: (sum(map(len, parts[i])), -i))
                half = len(parts[i]) - len(parts[i]) // 2
                parts[i:i + 1] = [parts[i][:half], parts[i][half:]]
        return [[row for item in part for row in item] for part in parts]

    # ---- other limits
    def limits(self, e):
        """What is here stays, and what waits is judged again."""
        if set(e["settings"]) - LIMITS: raise ValueError("more than limits")
        given, old = {**self.given, **e["settings"]}, self.s
        self.s, self.given = checked(given), given
        s = self.s
        # Groups that have begun, and a step of them, need their room.
        s.pool_sequences = max(s.pool_sequences, self.largest_group * self.groups_of_step())
        for unit in self.units: unit.until += s.group_timeout - old.group_timeout
        for c in self.claims: c.until += s.claim_timeout - old.claim_timeout
        for b in self.blocked[:]:
            before = sum(x.producer == b.producer and x.event < b.event for x in self.blocked)
            due = len(self.producers[b.producer].taken) + before
            why = self.misfit(b.e) if b.e["number"] == due else f"number {due} comes next"
            if why: self.refuse(self.blocked, b, why)
        for c in self.asked[:]:
            if c.count > (most := self.most_claimed()):
                self.refuse(self.asked, c, f"1 to {most} can be claimed at once")
        self.drop_stale()
        for unit in [u for u in self.kept() if s.reuse and u.given >= s.reuse]:
            self.drop(unit, "done")
        for unit in sorted(self.kept(), key=lambda u: (-self.stale(u), u.arrival)):
            if sum(len(u.members) for u in self.new() + self.kept()) > s.pool_sequences:
                self.drop(unit, "done")
        self.run_out()
    def refuse(self, waits, one, why):
        waits.remove(one)
        self.answer(one.event, "refused", why=why)

    # ---- time, and the end
    def next_time(self):
        """When something happens without an event; None if nothing will."""
        waits = self.claims + self.asked + self.blocked + [u for u in self.units if not u.complete]
        times = [x.until for x in waits if x.until is not None]
        if None not in (self.lingers, self.s.linger):
            times += [t for t in [self.lingers + self.s.linger] if t > self.now]
        return min(times, default=None)
    def close_group(self, unit):
        """An incomplete group has waited long enough."""
        if self.s.late_groups == "abandon" or not unit.members:
            return self.drop(unit, "abandoned", "incomplete")
        unit.gone = unit.size - len(unit.members)
        self.close(unit.group, "abandoned")
    def run_out(self):
        def over(waits): return [x for x in waits if x.until is not None and x.until <= self.now]
        for unit in over(u for u in self.units if not u.complete): self.close_group(unit)
        self.claims = [c for c in self.claims if c.until > self.now]
        late = [b.producer for b in over(self.blocked)]
        for b in [b for b in self.blocked if b.producer in late]:  # and what waits behind it
            self.blocked.remove(b)
            self.producers[b.producer].full += 1
            self.answer(b.event, "timed_out", why="pool")
        for c in over(self.asked):
            self.answer(c.event, "timed_out", why=self.first_claim()[1])
            self.asked.remove(c)
    def end(self, e):
        self.ended = True
        for x in self.asked + self.blocked: self.answer(x.event, "ended")
        self.asked, self.claims, self.blocked = [], [], []
        for unit in [u for u in self.units if not u.complete]: self.close_group(unit)
    def event(self, e):
        while (at := self.next_time()) is not None and at <= e["at"]:
            self.now = max(self.now, at)
            self.run_out()
            self.settle()
        self.now = e["at"]
        if e["do"] != "time":
            getattr(self, e["do"])(e)
        self.events += 1
        self.settle()
    def settle(self):
        while self.admit() or self.cut() or self.grant(): pass
    def result(self):
        of = sorted(self.producers.items())
        return dict(steps=self.steps, answers=self.answers, dropped=self.dropped,
                    outcomes={name: [q.state for q in p.taken] for name, p in of},
                    refused_full={name: p.full for name, p in of if p.full},
                    duplicates={name: p.repeats for name, p in of if p.repeats})

def run(settings, log):
    try:
        live = Live(settings)
    except ValueError as error:
        return dict(refused=str(error))
    for e in log: live.event(e)
    return live.result()

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        for case in json.load(file):
            result = run(case["settings"], case["log"])
            print(case["name"], "agrees" if result == case["expect"] else json.dumps(result))
