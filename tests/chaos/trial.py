"""One trial: a daemon and its workers, and what befalls them."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

from checks import check_trial, read_record
from events import draw_events
from setting import (configuration, draw_setting, make_dataset, make_growing_dataset, planned)

HERE = Path(__file__).resolve().parent
TICK = 0.003
LINE_BYTES = 64  # of a record's line, beside the ordinals
PATIENCE = 15  # seconds without a batch, after which a trial stands still


class Stuck(Exception):
    """Something did not end in time, or ended as it should not."""


class Child:
    """A process that may be killed and stopped, and is started again."""

    has_group = False  # whether it is the first of a group of processes

    def __init__(self, name, words, folder, environment=None):
        self.name, self.words, self.folder = name, words, folder
        self.environment = environment
        self.process = None
        self.resume_at = None  # while it is stopped
        self.killed = False
        self.finished = False

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment,
                                            start_new_session=self.has_group)
        self.started = time.monotonic()
        self.resume_at = None
        self.killed = False

    @property
    def log(self):
        return self.folder / f"{self.name}.log"

    @property
    def runs(self):
        return self.process.poll() is None

    def send(self, number):
        if self.runs:
            self.process.send_signal(number)

    def stop_until(self, when):
        self.send(signal.SIGSTOP)
        self.resume_at = when

    def resume_if_due(self):
        if self.resume_at is not None and time.monotonic() >= self.resume_at:
            self.send(signal.SIGCONT)
            self.resume_at = None

    def end(self):
        if self.process is not None:
            if self.runs:
                self.process.kill()
            self.process.wait()

    def describe(self):
        if self.process is None:
            return f"{self.name}: was never started"
        lines = [f"{self.name} (pid {self.process.pid}): exit code {self.process.poll()}, "
                 f"stopped: {self.resume_at is not None}"]
        try:
            lines.append("  waits in " + Path(f"/proc/{self.process.pid}/wchan").read_text())
        except OSError:
            pass
        tail = self.log.read_text(errors="replace").splitlines()[-12:]
        return "\n".join(lines + ["  " + line for line in tail])


class Progress:
    """Whether a trial goes on. Time is an argument."""

    def __init__(self, now, patience=PATIENCE):
        self._written, self._moved, self._patience = 0, now, patience

    def look(self, written, now, paused=False):
        """Of `written` bytes of records; `paused` while we stop somebody ourselves.
        Errors: Stuck."""
        if written != self._written or paused:
            self._written, self._moved = written, now
        elif now - self._moved > self._patience:
            raise Stuck(f"stands still: no batch for {self._patience} s")


class Home:
    """What all trials have in common."""

    def __init__(self, folder, programs):
        self.programs = programs.resolve()
        self.data = make_dataset(folder, self.programs)
        self.growing = make_growing_dataset(folder, self.programs)


class Trial:
    """A daemon with workers. Other kinds of trials have more in them.

    Threads: one; several trials may run in several.
    """

    def __init__(self, setting, events, folder, home):
        self.setting, self.folder, self.home = setting, folder, home
        self.pending = events  # drawn; in the order of their progress
        self.story = []  # what was done
        self.deaths = 0
        self.reconnects = 0
        self.figures = Counter()  # of what is worth telling of all trials
        self.daemon = Child("daemon", [home.programs / "batchwrightd", "--config",
                                       folder / "config.toml"], folder)
        self.others = []  # come and go; the trial does not wait for them
        self.workers = self.make_workers()

    # ---- what kinds of trials do in their own way -------------------------------------------

    @staticmethod
    def draw(draw, kind):
        """A setting, and what befalls the trial."""
        setting = draw_setting(draw, kind)
        return setting, draw_events(draw, setting.workers, setting.grace_ms)

    def make_workers(self):
        return [self.worker(number, words) for number, words in enumerate(self.setting.worker)]

    @property
    def dataset(self):
        return self.home.data

    def configuration(self):
        return configuration(self.setting, self.dataset, self.folder)

    def plan(self):
        """Of each epoch: the ordinals of each batch."""
        return planned(self.setting.plan, self.setting.epochs, self.dataset, self.home.programs)

    def bytes_to_come(self):
        """About what all records have in the end, for telling how far they are."""
        copies = self.setting.workers if self.setting.mode == "replica" else 1
        return copies * record_bytes(self.plan())

    def is_paused(self):
        """Whether something is stopped."""
        return any(child.resume_at for child in self.children)

    def look(self):
        """At every turn."""

    def check(self):
        """Once all is over. Errors: Broken."""
        check_trial(self.setting, [read_record(path) for path in self.records],
                    self.folder / "ledger", self.deaths, self.plan())

    # -----------------------------------------------------------------------------------------

    def worker(self, number, words, name="worker", record="record", port=None):
        """`port`: that of a proxy, for one that comes by TCP."""
        way = f"tcp://127.0.0.1:{port or self.setting.port}" if "tcp=1" in words else (
            f"ipc://{self.folder / 's'}")
        return Child(f"{name}{number}", [
            self.home.programs / "chaos_worker", *words,
            f"record={self.folder / record}{number}", f"endpoint={way}"], self.folder)

    def script(self, name, script, values, kind=Child):
        """A program in Python, which reads `values` from a file."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(values))
        libraries = self.home.programs.parent / "lib"
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "client" / "python"),
                       "BATCHWRIGHT_LIBRARY": str(libraries / "libbatchwright.so.1")}
        return kind(name, [sys.executable, "-B", HERE / script, path], self.folder, environment)

    @property
    def records(self):
        return [self.folder / f"record{number}" for number in range(self.setting.workers)]

    @property
    def children(self):
        return [self.daemon, *self.workers, *self.others]

    def run(self, bound):
        (self.folder / "config.toml").write_text(self.configuration())
        total_bytes = self.bytes_to_come()
        self.began = time.monotonic()
        self.progress = Progress(self.began)
        try:
            for child in self.children:
                child.start()
            while not all(worker.finished for worker in self.workers):
                self._tick(total_bytes, bound)
            self._see_that_nothing_is_left(bound)
        finally:
            self._end()

    def _tick(self, total_bytes, bound):
        now = time.monotonic()
        if now - self.began > bound:
            raise Stuck(f"not over after {bound} s\n{self.describe()}")
        time.sleep(TICK)
        self._act(total_bytes)
        for child in self.children:
            child.resume_if_due()
        self._look_at_daemon()
        for child in (*self.workers, *self.others):
            self._look_at(child)
        self.look()

    def written(self):
        return sum(os.stat(path).st_size for path in self.records if path.exists())

    def _act(self, total_bytes):
        written, now = self.written(), time.monotonic()
        self._see_progress(written, now)
        while self.pending and self.pending[0].is_due(written / total_bytes, now):
            event = self.pending.pop(0)
            event.happen(self)
            for later in self.pending:
                later.note_previous(now)

    def _see_progress(self, written, now):
        try:
            self.progress.look(written, now, self.is_paused())
        except Stuck as stuck:
            raise Stuck(f"{stuck}\n{self.describe()}") from None

    def _look_at_daemon(self):
        code = self.daemon.process.poll()
        if code is None:
            return
        # SIGTERM ends it in order, unless it comes before the daemon is ready for that.
        if not self.daemon.killed or code not in (0, -signal.SIGKILL, -signal.SIGTERM):
            raise Stuck(f"the daemon ended with {code}\n{self.describe()}")
        self.mark("daemon", self.daemon)
        self.daemon.start()

    def _look_at(self, child):
        code = child.process.poll()
        if code is None or child.finished:
            return
        if child.killed and code == -signal.SIGKILL:
            child.start()
        elif code == 0:
            self.mark("ended", child)
            child.finished = True
        else:
            self.ended(child, code)

    def ended(self, child, code):
        """Otherwise than by us. Errors: Stuck."""
        raise Stuck(f"{child.name} ended with {code}\n{self.describe()}")

    def _see_that_nothing_is_left(self, bound):
        """Of a queue, what was released while the daemon was dying goes to the next worker."""
        if self.setting.mode != "queue":
            return
        last = self.workers[0]
        last.finished = False
        self.progress = Progress(time.monotonic())
        last.start()
        while not last.finished:
            self._tick(1, bound)

    def mark(self, what, child, values=()):
        """A line in the ledger, so that what we do has its place in its order: a worker's death
        before it comes, the daemon's when no more lines of that one can follow."""
        entry = {"event": "mark", "what": what, "pid": child.process.pid, **dict(values)}
        with open(self.folder / "ledger", "ab", buffering=0) as ledger:
            ledger.write(b"\n" + json.dumps(entry).encode() + b"\n")

    def kill(self, child, number=signal.SIGKILL):
        if not child.runs or child.finished or child.killed:
            return
        self.tell(f"{signal.Signals(number).name} {child.name}")
        if child is not self.daemon:
            self.mark("killed", child)
        self.deaths += child is self.daemon
        child.killed = True
        child.send(signal.SIGCONT if number == signal.SIGTERM else number)
        child.send(number)

    def interrupt(self, child, number=signal.SIGINT):
        """A signal that a program handles, or ends by."""
        if not child.runs or child.finished or child.killed:
            return
        self.tell(f"{signal.Signals(number).name} {child.name}")
        child.send(number)

    def stop(self, child, seconds):
        if child.runs and not child.finished and not child.killed:
            self.tell(f"SIGSTOP {child.name} for {seconds * 1000:.0f} ms")
            child.stop_until(time.monotonic() + seconds)

    def tell(self, what):
        self.story.append(f"{time.monotonic() - self.began:7.3f} s: {what}")

    def describe(self):
        parts = ["story:", *("  " + line for line in self.story)]
        parts += [child.describe() for child in self.children]
        return "\n".join(parts + ["stats: " + self.stats()])

    def stats(self):
        """The daemon's page as text; or why there is none."""
        self.daemon.send(signal.SIGCONT)
        found = re.findall(r"dashboard at http://[^ ]*:(\d+)/", self.daemon.log.read_text())
        port = found[-1] if found else "0"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=2) as page:
                return page.read().decode()
        except OSError as error:
            return str(error)

    def _end(self):
        for child in reversed(self.children):
            child.end()
        for worker in self.workers:
            lines = worker.log.read_text().splitlines() if worker.log.exists() else []
            self.reconnects += sum(int(line.split()[2]) for line in lines
                                   if line.startswith("done, "))


def record_bytes(plan):
    return sum(LINE_BYTES + len(",".join(map(str, rows))) for batches in plan for rows in batches)
