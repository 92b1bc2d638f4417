"""Random settings and logs of live feeds, made event by event beside the model.

The model tells what is possible at each moment: the number that comes next, groups that have begun,
claims that were granted, steps that may be released. So most events mean something, and some do not
on purpose.
"""
from model import LIMITS, Live
from model_pool import checked


def random_settings(random):
    """Settings of any kind; most of them are possible."""
    kind = random.choice(["sequences"] * 3 + ["groups", "frames"])
    times = 8 if random.random() < 0.03 else 1
    budget = times * {"sequences": random.randint(1, 12), "groups": random.randint(1, 4),
                      "frames": random.randint(20, 200)}[kind]
    groups = random.choice(["none", "none", "step", "batch"]) if kind != "groups" else \
        random.choice(["step", "step", "batch"])
    settings = {
        "step": {kind: budget}, "world": random.choice([1, 1, 2, 3, 4]), "groups": groups,
        "cut": random.choice(["fixed", "dynamic", "quadratic"]),
        "quadratic_scale": random.randint(1, 60), "window": random.randint(1, 5),
        "linger": random.choice([None, None, 0, 5, 40]),
        "group_timeout": random.choice([20, 200, 10_000]),
        "late_groups": random.choice(["cut", "abandon"]),
        "claim_timeout": random.choice([30, 300, 10_000]),
        "pool_sequences": (8 * times if kind == "frames" else budget) * random.randint(1, 4)
        + random.randint(0, 3),
        "seed": random.getrandbits(random.choice([4, 40, 62]))}
    if random.random() < 0.7:
        settings["max_staleness"] = random.choice([0, 0, 1, 1, 2, 3, 5])
        settings["stale"] = random.choice(["pace", "pace", "drop", "zero"])
    if kind == "frames" and random.random() < 0.9:
        settings["max_length"] = random.randint(1, max(1, budget // settings["world"]))
    elif random.random() < 0.2:
        settings["max_length"] = random.randint(10, 60)
    if random.random() < 0.3:
        settings["zero_most_stale"] = random.randint(1, 3)
    if random.random() < 0.35:
        settings["reuse"] = random.choice([0, 1, 2, 3])
        settings["fresh_share"] = random.choice([None, 0, 0.25, 0.5, 1])
        settings["select"] = random.choice(["fifo", "uniform"])
    if random.random() < 0.3:
        settings["pool_bytes"] = random.choice([400, 800, 1600])
    if random.random() < 0.3:
        settings["frame_bytes"] = random.choice([[1], [4, 8], [2, 0, 1]])
    return settings


def lane_settings(random):
    """Settings with lanes; most of them are possible."""
    settings = random_settings(random)
    world, lanes = settings["world"], settings["world"] * random.randint(1, 5)
    if random.random() < 0.03: lanes += 1
    settings.update({
        "step": {"lanes": lanes, "unroll": random.choice([1, 3, 10, 10, 20, 60])},
        "groups": "none", "cut": "fixed", "reuse": 1, "fresh_share": None, "select": "fifo",
        "max_length": random.choice([3, 20, 40, 60]),
        "pool_sequences": lanes * random.randint(1, 4) + random.randint(0, 3)})
    if random.random() < 0.08:
        settings.update(random.choice([
            {"groups": "step"}, {"reuse": 2}, {"cut": "dynamic"}, {"max_length": 0},
            {"step": {"lanes": lanes}}, {"step": {"lanes": lanes, "unroll": 0}},
            {"step": {"sequences": world, "unroll": 2}}]))
    return settings


class RandomLog:
    """A log, and the model that it has been told to."""

    def __init__(self, random, settings):
        self.random, self.live, self.log, self.at = random, Live(settings), [], 0
        self.s = checked(settings)
        self.producers = [f"actor-{i}" for i in range(random.randint(1, 6))]
        self.trainers = [f"trainer-{i}" for i in range(random.choice([1, 1, 1, 2, 3]))]
        self.longest = random.choice([3, 30, 60])
        self.sizes = {}  # of groups
        self.restores = random.random() < 0.3
        self.steady = random.random() < 0.5  # claims, and no time limits for pushes

    def add(self, do, **members):
        r = self.random
        self.at += r.choice([0, 0, 0, 0, 1, 1, 3, 10] + ([60, 400] if r.random() < 0.15 else []))
        event = dict(at=self.at, do=do, **members)
        self.log.append(event)
        self.live.event(event)

    def timeout(self, some):
        """Members that give a time limit, if any."""
        if self.random.random() >= some: return {}
        return {"timeout": self.random.choice([None, 0, 5, 50, 500])}

    def push(self):
        r, live = self.random, self.live
        producer = r.choice(self.producers)
        due = len(live.producers[producer].taken) + sum(
            b.producer == producer for b in live.blocked)
        number = due if r.random() < 0.97 else max(0, due + r.choice([-1, 1]))
        held = [c.version for c in live.claims if c.producer == producer]
        version = max(0, live.v - r.choice([0, 0, 0, 0, 1, 2, 4]))
        if held and r.random() < 0.8: version = r.choice(held)
        if r.random() < 0.01: version = max(live.tops) + r.choice([0, 1])
        more = self.timeout(0.05 if self.steady else 0.3)
        if r.random() < 0.05: more["version_newest"] = max(0, version + r.choice([-1, 0, 1, 1]))
        if r.random() < 0.3: more["weight"] = r.choice([0.0, 0.5, 2.25, 1.0])
        if self.s.groups != "none" and r.random() < 0.85: more.update(self.member())
        lengths = [max(0, r.randint(1, self.longest) - (r.random() < 0.005) * 60)
                   for _ in range(r.choice([1, len(self.s.frame_bytes)]))]
        if self.s.max_length and r.random() < 0.95:
            lengths[0] = min(lengths[0], self.s.max_length)
        self.add("push", producer=producer, number=number, lengths=lengths, version=version, **more)

    def member(self):
        r, begun = self.random, [g for g, u in self.live.groups.items() if u.missing]
        if begun and r.random() < 0.85:
            group = r.choice(begun)
        elif self.sizes and r.random() < 0.1:
            group = r.choice(list(self.sizes))
        else:
            group = len(self.sizes)
        s, size = self.s, r.choice([1, 2, 2, 3, 4, 6])
        if r.random() < 0.9:  # one that step and pool take
            parts = s.budget if s.kind == "groups" else s.world if s.groups == "batch" else 1
            size = min(size, s.pool_sequences // parts)
            if s.kind == "sequences": size = min(size, s.budget // parts)
        size = self.sizes.setdefault(group, size)
        return {"group": group, "group_size": size if r.random() < 0.98 else r.randint(0, 3)}

    def claim(self):
        count = self.random.choice([1, 1, 2, 3, 4, 4, 8]) if self.random.random() < 0.97 else 99
        self.add("claim", producer=self.random.choice(self.producers), count=count,
                 **self.timeout(0.3))

    def abandon(self):
        r, producer = self.random, self.random.choice(self.producers)
        taken = self.live.producers[producer].taken if producer in self.live.producers else []
        if r.random() < 0.4:
            waiting = [q.number for q in taken if q.state == "waiting"]
            self.add("abandon", producer=producer,
                     number=r.choice(waiting) if waiting else r.randint(0, 3))
        else:
            begun = list(self.live.groups) or [None]
            group = r.choice(begun) if r.random() < 0.7 else len(self.sizes) + r.randint(0, 1)
            self.add("abandon", producer=producer, group=group, count=r.choice([0, 1, 1, 2]))

    def advance(self):
        r, v = self.random, self.live.v
        if self.restores and r.random() < 0.2:
            self.add("advance", version=max(0, v - r.randint(0, 3)), restored=True,
                     replays=r.random() < 0.4)
        else:
            self.add("advance", version=max(0, v + r.choice([1, 1, 1, 1, 0, 2, -1])))

    def take(self):
        r, trainer = self.random, self.random.choice(self.trainers)
        more = {"prefetch": True} if r.random() < 0.35 else {}
        at = self.live.position.get(trainer)
        if at is not None and r.random() < 0.3: more["step"] = max(0, at - (r.random() < 0.2))
        self.add("take", trainer=trainer, **more)

    def release(self):
        r, trainer = self.random, self.random.choice(self.trainers)
        held = [n for n, (holders, _) in self.live.open.items()
                if trainer in holders and n < self.live.position[trainer]]
        if held and r.random() < 0.95:
            self.add("release", trainer=trainer, step=r.choice(held[:2]))
        elif self.live.position:
            self.add("release", trainer=trainer, step=r.randint(0, 4))

    def limits(self):
        """Some limits of other settings, with which those of the log are still possible."""
        other = random_settings(self.random)
        keys = sorted(LIMITS & set(other))
        settings = {key: other[key] for key in self.random.sample(keys, self.random.randint(1, 4))}
        try:
            checked({**self.live.given, **settings})
        except ValueError:
            return
        self.add("limits", settings=settings)
        self.s = self.live.s

    def run(self, events):
        r = self.random
        weights = {"push": 10, "claim": 3 if self.steady else 1, "abandon": r.choice([0, 0.3, 1]),
                   "advance": r.choice([0.3, 1, 2]), "take": r.choice([1, 3]), "release": 1,
                   "gone": r.choice([0, 0.2]), "time": 0.5, "limits": r.choice([0, 0, 0.3])}
        if self.s.groups == "none": weights["abandon"] /= 3
        for _ in range(events):
            do, = r.choices(list(weights), list(weights.values()))
            if do == "gone" and r.random() < 0.5:
                self.add(do, trainer=r.choice(self.trainers))
            elif do == "gone":
                self.add(do, producer=r.choice(self.producers))
            elif do == "time":
                self.add(do)
            else:
                getattr(self, do)()
        if r.random() < 0.3:
            self.add("end")
            for _ in range(r.randint(0, 8)): r.choice([self.push, self.take, self.release])()
        return self.log


def random_case(random, name, make_settings=random_settings):
    """A case with what the model makes of it, as the command prints them."""
    settings = make_settings(random)
    try:
        log = RandomLog(random, settings)
    except ValueError as error:
        return {"name": name, "settings": settings, "log": [], "expect": {"refused": str(error)}}
    log.run(random.choice([15, 40, 40, 80, 150]) if log.s.budget < 200 else 500)
    return {"name": name, "settings": settings, "log": log.log, "expect": log.live.result()}
