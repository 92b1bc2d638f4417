"""Trials of Python's `for` loops: ranks with a barrier after every step, few slots, onlookers."""
import contextlib
import importlib.util
import json
import os
import signal
import time

from checks import Line, check_contents, check_trial, texts_of
from events import (draw_events, end_daemon, kill_both, kill_daemon, kill_other, kill_worker,
                    stop_daemon, stop_other)
from setting import EPOCHS, Setting, draw_plan, free_port
from trial import Child, Trial

LOOP_PATIENCE = 12  # seconds: less than a trial's, so that the loops can say what they wait for


class Job(Child):
    """The ranks and what started them are a group, which is killed at once."""

    has_group = True

    def send(self, number):
        if self.runs:
            os.killpg(self.process.pid, number)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        super().end()


def kill_rank(trial, _, seconds):
    trial.signal_rank(seconds, signal.SIGKILL)


def stop_rank(trial, _, seconds):
    trial.signal_rank(seconds, signal.SIGSTOP)


def kill_rank_and_daemon(trial, _, seconds):
    trial.signal_rank(seconds, signal.SIGKILL)
    trial.kill(trial.daemon)


KINDS = (kill_rank, kill_rank, kill_worker, kill_daemon, end_daemon, kill_both, stop_rank,
         stop_daemon, kill_rank_and_daemon, kill_other, stop_other)


def part_of_training(texts, world):
    """The lines of a record that a job went on after: what came after the state that a later
    attempt began with was thrown away with its work."""
    kept = []
    for text in texts:
        if text.startswith("resume "):
            place = tuple(map(int, text.split()[1:]))
            kept = [line for line in kept if (line.batch[0], line.batch[1] // world) < place]
        else:
            kept.append(Line(text))
    return kept


def draw_onlooker(draw):
    """For onlooker.py."""
    return {"reads": draw.random() < 0.6, "rounds": draw.randint(1, 3),
            "inline": draw.random() < 0.4, "seed": draw.randrange(10000)}


def keeps_a_slot(onlooker):
    """Whether the daemon demands a slot for it beside the job's. What gets messages holds none."""
    return not onlooker["inline"]


class Loops(Trial):
    @staticmethod
    def draw(draw, kind):
        plan = draw_plan(draw, "sharded")
        ranks = draw.choice([n for n in (1, 2, 3, 4) if plan["world"] % n == 0])
        lookers = [draw_onlooker(draw) for _ in range(draw.randint(0, 2))]
        # The least is one more slot than ranks and clients beside them.
        slots = ranks + draw.choice((1, 1, 1, 2, 4)) + sum(map(keeps_a_slot, lookers))
        feed = {"slots": slots, "max_window": 8, "poison": draw.random() < 0.3}
        has_torch = importlib.util.find_spec("torch") is not None
        more = {"ranks_here": draw.choice((ranks, None)), "window": draw.randint(2, 4),
                "saves": draw.choice((0.1, 0.5, 1)), "seed": draw.randrange(10000),
                "face": "dataset" if draw.random() < 0.2 and has_torch else "subscription",
                "inline": draw.random() < 0.1, "tcp": draw.random() < 0.1, "lookers": lookers}
        setting = Setting("sharded", ranks, draw.choice((100, 300)), plan, feed, free_port(),
                          more=more)
        return setting, draw_events(draw, ranks, setting.grace_ms, KINDS)

    def make_workers(self):
        setting, more = self.setting, self.setting.more
        folder = self.folder
        self.stopped_ranks = []  # until when, and which process
        self.others = [self.script(f"onlooker{number}", "onlooker.py", {
            **looker, "endpoint": f"ipc://{folder / 's'}"})
            for number, looker in enumerate(more["lookers"])]
        job = {name: more[name] for name in ("ranks_here", "window", "saves", "seed", "face",
                                             "inline")}
        endpoint = (f"tcp://127.0.0.1:{setting.port}" if more["tcp"] else f"ipc://{folder / 's'}")
        return [self.script("job", "loop_job.py", {
            **job, "endpoint": endpoint, "ranks": setting.workers, "epochs": EPOCHS,
            "patience": LOOP_PATIENCE, "folder": str(folder),
            "batches_per_step": setting.world // setting.workers}, Job)]

    def signal_rank(self, seconds, number):
        """A stopped one goes on by itself after so long."""
        job = self.workers[0]
        pids = self.folder / "pids"
        if not pids.exists() or not job.runs or job.killed or job.finished:
            return
        victim = json.loads(pids.read_text())[self.victim]
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, number)
            self.tell(f"{signal.Signals(number).name} a rank, process {victim}")
            if number == signal.SIGSTOP:
                self.stopped_ranks.append((time.monotonic() + seconds, victim))

    def is_paused(self):
        return bool(self.stopped_ranks) or super().is_paused()

    def look(self):
        for due in [due for due in self.stopped_ranks if time.monotonic() >= due[0]]:
            self.stopped_ranks.remove(due)
            with contextlib.suppress(ProcessLookupError):
                os.kill(due[1], signal.SIGCONT)

    def check(self):
        texts = [texts_of(path) for path in self.records]
        plan = self.plan()
        check_contents([[Line(text) for text in one if not text.startswith("resume ")]
                        for one in texts], plan)
        records = [part_of_training(one, self.setting.world) for one in texts]
        check_trial(self.setting, records, self.folder / "ledger", self.deaths, plan)
