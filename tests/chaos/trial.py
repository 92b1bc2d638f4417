"""One trial: a daemon and its workers, and what befalls them."""
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from setting import configuration

TICK = 0.003
LINE_BYTES = 12  # of a record's line, beside the ordinals


class Stuck(Exception):
    """Something did not end in time, or ended as it should not."""


class Child:
    """A process that may be killed and stopped, and is started again."""

    def __init__(self, name, words, folder):
        self.name, self.words, self.folder = name, words, folder
        self.process = None
        self.resume_at = None  # while it is stopped
        self.killed = False
        self.finished = False

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
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

    def describe(self):
        lines = [f"{self.name} (pid {self.process.pid}): exit code {self.process.poll()}, "
                 f"stopped: {self.resume_at is not None}"]
        try:
            lines.append("  waits in " + Path(f"/proc/{self.process.pid}/wchan").read_text())
        except OSError:
            pass
        tail = self.log.read_text(errors="replace").splitlines()[-12:]
        return "\n".join(lines + ["  " + line for line in tail])


class Trial:
    """Threads: one; several trials may run in several."""

    def __init__(self, setting, events, folder, dataset, programs):
        self.setting, self.folder = setting, folder
        self.pending = events  # drawn; in the order of their progress
        self.story = []  # what was done
        self.deaths = 0
        self.reconnects = 0
        (folder / "config.toml").write_text(configuration(setting, dataset, folder))
        self.daemon = Child("daemon", [programs / "batchwrightd", "--config",
                                       folder / "config.toml"], folder)
        self.workers = [self._worker(programs, number, words)
                        for number, words in enumerate(setting.worker)]

    def _worker(self, programs, number, words):
        record = self.folder / f"record{number}"
        endpoint = (f"tcp://127.0.0.1:{self.setting.port}" if "tcp=1" in words else
                    f"ipc://{self.folder / 's'}")
        return Child(f"worker{number}", [programs / "chaos_worker", *words, f"record={record}",
                                         f"endpoint={endpoint}"], self.folder)

    @property
    def records(self):
        return [self.folder / f"record{number}" for number in range(len(self.workers))]

    def run(self, total_bytes, bound):
        self.began = time.monotonic()
        self.daemon.start()
        for worker in self.workers:
            worker.start()
        try:
            while not all(worker.finished for worker in self.workers):
                self._tick(total_bytes, bound)
            self._see_that_nothing_is_left(bound)
        finally:
            self._end()

    def _tick(self, total_bytes, bound):
        if time.monotonic() - self.began > bound:
            raise Stuck(f"not over after {bound} s\n{self.describe()}")
        time.sleep(TICK)
        self._act(total_bytes)
        for child in (self.daemon, *self.workers):
            child.resume_if_due()
        self._look_at_daemon()
        for worker in self.workers:
            self._look_at(worker)

    def _act(self, total_bytes):
        written = sum(os.stat(path).st_size for path in self.records if path.exists())
        now = time.monotonic()
        while self.pending and self.pending[0].is_due(written / total_bytes, now):
            event = self.pending.pop(0)
            event.happen(self)
            for later in self.pending:
                later.note_previous(now)

    def _look_at_daemon(self):
        code = self.daemon.process.poll()
        if code is None:
            return
        # SIGTERM ends it in order, unless it comes before the daemon is ready for that.
        if not self.daemon.killed or code not in (0, -signal.SIGKILL, -signal.SIGTERM):
            raise Stuck(f"the daemon ended with {code}\n{self.describe()}")
        self.mark("daemon", self.daemon)
        self.daemon.start()

    def _look_at(self, worker):
        code = worker.process.poll()
        if code is None or worker.finished:
            return
        if worker.killed and code == -signal.SIGKILL:
            worker.start()
        elif code == 0:
            self.mark("ended", worker)
            worker.finished = True
        else:
            raise Stuck(f"{worker.name} ended with {code}\n{self.describe()}")

    def _see_that_nothing_is_left(self, bound):
        """Of a queue, what somebody released while the daemon was dying comes to who is next."""
        if self.setting.mode != "queue":
            return
        last = self.workers[0]
        last.finished = False
        last.start()
        while not last.finished:
            self._tick(1, bound)

    def mark(self, what, child):
        """A line in the ledger, so that what we do has its place in its order: a worker's death
        before it comes, the daemon's when no more lines of that one can follow."""
        entry = {"event": "mark", "what": what, "pid": child.process.pid}
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

    def stop(self, child, seconds):
        if child.runs and not child.finished and not child.killed:
            self.tell(f"SIGSTOP {child.name} for {seconds * 1000:.0f} ms")
            child.stop_until(time.monotonic() + seconds)

    def tell(self, what):
        self.story.append(f"{time.monotonic() - self.began:7.3f} s: {what}")

    def describe(self):
        parts = ["story:", *("  " + line for line in self.story)]
        parts += [child.describe() for child in (self.daemon, *self.workers)]
        return "\n".join(parts + ["stats: " + self._stats()])

    def _stats(self):
        self.daemon.send(signal.SIGCONT)
        found = re.findall(r"dashboard at http://[^ ]*:(\d+)/", self.daemon.log.read_text())
        port = found[-1] if found else "0"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=2) as page:
                return page.read().decode()
        except OSError as error:
            return str(error)

    def _end(self):
        for child in (*self.workers, self.daemon):
            if child.process is not None and child.runs:
                child.process.kill()
            if child.process is not None:
                child.process.wait()
        for worker in self.workers:
            lines = worker.log.read_text().splitlines()
            self.reconnects += sum(int(line.split()[2]) for line in lines
                                   if line.startswith("done, "))


def record_bytes(setting, plan):
    """About what all records have in the end, for telling how far they are."""
    one = sum(LINE_BYTES + len(",".join(map(str, rows))) for batches in plan for rows in batches)
    return one * (setting.workers if setting.mode == "replica" else 1)
