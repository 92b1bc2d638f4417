"""Trials of a live feed: producers push while trainers train, and any of them dies."""
import signal

from events import Event
from live.live_checks import AT_MOST_ONCE, EXACTLY_ONCE, check_live, read_made, read_trained
from setting import Setting, free_port, toml
from trial import Child, Trial

REFUSED = 3  # exit code of chaos_trainer: it is to come again
FRAME_BYTES = 256
LARGE = 4800  # frames: more than a message takes
LINE_BYTES = 70  # about, of a row in a trainer's record
TRAINERS = ("replica", "replica", "sharded", "sharded", "queue")


def draw_pool(draw, world):
    """[feed.live], and how many sequences a claim or a group has."""
    groups = draw.choice(("none", "none", "none", "step", "batch"))
    together = draw.randint(2, 4) if groups != "none" else draw.randint(1, 4)
    members = together if groups != "none" else 1
    parts = world if groups == "batch" else 1
    live = {"groups": groups, "max_length": LARGE, "window": draw.randint(1, 4)}
    if groups != "none" and draw.random() < 0.4:
        step = parts * draw.randint(1, 3)
        live["step"] = {"groups": step}
        rows = step * members
    elif draw.random() < 0.3:
        live["max_length"] = 40
        step = max(parts * members, world) * 40 * draw.randint(1, 3)
        live["step"] = {"frames": step}
        rows = step * 2 // 41 + 1
    else:
        rows = max(parts * members, world, together) * draw.randint(1, 3)
        live["step"] = {"sequences": rows}
    if groups == "none":
        together = min(together, max(1, rows // 2))
    least = max(rows, world * members) + together + world
    live["pool_sequences"] = least * draw.randint(1, 4)
    if draw.random() < 0.6:
        live["linger"] = f"{draw.choice((0, 5, 50))}ms"
    if draw.random() < 0.5:
        live["late_groups"] = "abandon"
    if draw.random() < 0.7:
        live["max_staleness"] = draw.randint(0, 4)
        live["stale"] = draw.choice(("pace", "pace", "drop", "zero"))
    if groups == "none" and draw.random() < 0.15:
        live["reuse"] = draw.randint(2, 3)
        together = 1
        if live.get("stale", "pace") != "pace" and draw.random() < 0.5:
            live["select"] = "uniform"
    return live, together, rows


def way(draw):
    return draw.choice((["tcp=1"], [], [], []))


def draw_producers(draw, live, together):
    """Words for each."""
    count = draw.randint(1, 4)
    claims = draw.random() < 0.7
    has_groups = live["groups"] != "none"
    # One step takes up to what a trial is long; shared by all of them.
    quota = draw.randint(60, 160) // count // together * together + together
    has_large = live["max_length"] == LARGE and draw.random() < 0.5
    producers = []
    for number in range(count):
        words = [f"name=actor{number}", f"quota={quota}", f"together={together}", "longest=40",
                 f"large={LARGE if has_large else 0}", f"claims={int(claims)}",
                 f"groups={int(has_groups)}", f"singly={draw.randint(0, 1)}",
                 f"in_place={int(draw.random() < 0.2)}",
                 f"fails={draw.choice((0, 0, 10)) if together > 1 else 0}",
                 f"takes_back={draw.choice((0, 0, 10))}",
                 f"area={draw.choice((0, AMPLE, AMPLE))}",
                 f"limit={draw.choice((50, 600_000))}", f"work_us={draw.choice((0, 500, 3000))}",
                 f"seed={draw.randrange(10000)}", *way(draw)]
        producers.append(words)
    return producers


AMPLE = 32 << 20  # bytes of an area that has room for all that may wait


def draw_trainers(draw, mode, world):
    """Words for each. One announces versions; the others look on, but for a queue's."""
    count = draw.randint(1, 3) if mode == "queue" else 1
    trainers = []
    for number in range(count):
        window = draw.randint(1, 4)
        ranks = world if mode == "sharded" else 1
        trainers.append([f"mode={mode}", f"ranks={ranks}", f"window={window}",
                         f"keep={draw.randint(0, window - 1) if ranks == 1 else 0}",
                         f"announces={int(number == 0 and draw.random() < 0.85)}",
                         f"restores={draw.choice((0, 0, 40))}", f"resumes={draw.choice((0, 50))}",
                         f"returns={draw.choice((0, 0, 10)) if mode == 'queue' else 0}",
                         f"inline={int(draw.random() < 0.2)}",
                         f"work_us={draw.choice((0, 1000, 4000))}",
                         f"seed={draw.randrange(10000)}", *way(draw)])
    if mode != "queue":
        for _ in range(draw.choice((0, 0, 1, 2))):
            window = draw.randint(1, 4)
            trainers.append(["mode=replica", "ranks=1", f"window={window}", "keep=0", "announces=0",
                             f"resumes={draw.choice((0, 50))}", f"inline={int(draw.random() < 0.2)}",
                             f"work_us={draw.choice((0, 1000))}", f"seed={draw.randrange(10000)}",
                             *way(draw)])
    return trainers


class Live(Trial):
    """Workers are producers, and then trainers. Once all is made, the feed is ended; once the
    trainers have ended with it, the producers ask what became of all."""

    @staticmethod
    def draw(draw, kind):
        mode = draw.choice(TRAINERS)
        world = draw.choice({"replica": (1, 1, 2), "sharded": (2, 2, 3), "queue": (1, 2)}[mode])
        live, together, rows = draw_pool(draw, world)
        producers = draw_producers(draw, live, together)
        trainers = draw_trainers(draw, mode, world)
        setting = Setting(mode, len(producers) + len(trainers), 100, {"world": world}, {},
                          free_port())
        setting.worker = producers + trainers
        setting.more = {"live": live, "producers": len(producers), "rows": rows,
                        "cut": draw.choice(("fixed", "dynamic", "quadratic")),
                        "spool": draw.random() < 0.5}
        events = [Event(draw, EVENTS, setting.workers, 100) for _ in range(draw.randint(2, 6))]
        return setting, sorted(events, key=lambda event: event.progress)

    @property
    def producers(self):
        return self.workers[:self.setting.more["producers"]]

    @property
    def trainers(self):
        return self.workers[self.setting.more["producers"]:]

    def make_workers(self):
        self.ended_at = None  # deaths of the daemon before the feed was ended
        self.audit = self.folder / "audit"
        self.ender = self._program("ender", "chaos_trainer", ["mode=end"])
        workers = []
        for number, words in enumerate(self.setting.worker):
            is_producer = number < self.setting.more["producers"]
            own = [f"record={self.folder / 'record'}{number}"]
            if is_producer:
                workers.append(self._program(f"producer{number}", "chaos_producer",
                                             [*words, *own, f"audit={self.audit}"]))
            else:
                workers.append(self._program(f"trainer{number}", "chaos_trainer", [*words, *own]))
        return workers

    def _program(self, name, program, words):
        endpoint = f"ipc://{self.folder / 's'}"
        if "tcp=1" in words:
            endpoint = f"tcp://127.0.0.1:{self.setting.port}"
        return Child(name, [self.home.programs / program, *words, f"endpoint={endpoint}"],
                     self.folder)

    def configuration(self):
        setting = self.setting
        live = dict(setting.more["live"])
        step = ", ".join(f"{unit} = {budget}" for unit, budget in live.pop("step").items())
        daemon = {"endpoints": [f"ipc://{self.folder / 's'}", f"tcp://127.0.0.1:{setting.port}"],
                  "insecure": True, "stats": "127.0.0.1:0", "events": "", "memory": "1GiB",
                  "queue_grace": "1s"}
        lines = ["[daemon]", *(f"{key} = {toml(value)}" for key, value in daemon.items()),
                 "[[feed]]", 'name = "rollouts"', 'pool = "64MiB"', "slots = 32", "max_window = 4",
                 "[feed.fields]", 'words = { dtype = "int32", shape = [64] }',
                 "[feed.plan]", f"world = {setting.world}", f"cut = {toml(setting.more['cut'])}",
                 "[feed.live]", f"step = {{ {step} }}",
                 *(f"{key} = {toml(value)}" for key, value in live.items())]
        if setting.more["spool"]:
            lines.append(f"spool = {toml(str(self.folder / 'spool'))}")
        if setting.more["cut"] == "quadratic":
            lines.insert(lines.index("[feed.live]"), "quadratic_scale = 100")
        return "\n".join(lines) + "\n"

    def bytes_to_come(self):
        """Of the first trainer's record."""
        quotas = [int(word.partition("=")[2]) for words in self.setting.worker for word in words
                  if word.startswith("quota=")]
        return sum(quotas) * LINE_BYTES * (1 + len(self.trainers))

    def look(self):
        self.ender.resume_if_due()
        all_made = all(self._has_made(number) for number in range(len(self.producers)))
        if not all_made:
            return
        if self.ended_at != self.deaths and self.daemon.runs and not self.daemon.killed:
            self._end_feed()
        if all(trainer.finished for trainer in self.trainers):
            self.audit.touch()

    def _has_made(self, number):
        path = self.folder / f"record{number}"
        return path.exists() and path.read_text().endswith("made\n") or self.audit.exists()

    def _end_feed(self):
        """Once for each daemon."""
        if self.ender.process is not None and self.ender.runs:
            self.ender.end()
        self.ended_at = self.deaths
        self.tell("the feed is ended")
        self.ender.start()

    def _act(self, total_bytes):
        super()._act(1 if self.ended_at is not None else total_bytes)

    def _see_that_nothing_is_left(self, bound):
        """The producers have asked what became of all."""

    def ended(self, child, code):
        if child not in self.trainers or code != REFUSED:
            super().ended(child, code)
        self.figures["trainers refused"] += 1
        self.tell(f"{child.name} is refused")
        child.start()

    def mark(self, what, child, values=()):
        """The daemon keeps no ledger of a live feed."""

    def check(self):
        made = [read_made(self.folder / f"record{number}") for number in range(len(self.producers))]
        trained = [read_trained(self.folder / f"record{number}")
                   for number in range(len(self.producers), self.setting.workers)]
        promise = EXACTLY_ONCE if self.setting.more["spool"] else AT_MOST_ONCE
        self.figures += check_live(self.setting, made, trained, promise, self.deaths)
        self.figures["deaths of a daemon with a spool"] += self.deaths * self.setting.more["spool"]


def trial_part(kind):
    """Producers or trainers, of which the event's victim is one."""
    return lambda trial: trial.producers if kind == "producer" else trial.trainers


def of(kind, act):
    part = trial_part(kind)

    def happen(trial, _, seconds):
        some = part(trial)
        act(trial, some[trial.victim % len(some)], seconds)
    return happen


def kill_one(trial, child, _):
    trial.kill(child)


def stop_one(trial, child, seconds):
    trial.stop(child, seconds)


def kill_all(trial, child, _):
    for each in trial.producers if child in trial.producers else trial.trainers:
        trial.kill(each)


def kill_with_daemon(trial, child, _):
    trial.kill(child)
    trial.kill(trial.daemon)


def stop_and_kill_daemon(trial, child, seconds):
    trial.stop(child, seconds)
    trial.kill(trial.daemon)


def kill_while_daemon_stops(trial, child, seconds):
    trial.stop(trial.daemon, seconds)
    trial.kill(child)


def kill_daemon(trial, _, __):
    trial.kill(trial.daemon)


def end_daemon(trial, _, __):
    trial.kill(trial.daemon, signal.SIGTERM)


def stop_daemon(trial, _, seconds):
    trial.stop(trial.daemon, seconds)


ACTS = (kill_one, kill_one, stop_one, kill_all, kill_with_daemon, stop_and_kill_daemon,
        kill_while_daemon_stops)
EVENTS = (*(of(kind, act) for kind in ("producer", "trainer") for act in ACTS),
          kill_daemon, kill_daemon, kill_daemon, end_daemon, stop_daemon)
