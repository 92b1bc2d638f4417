"""Trainers that run at once, and what the system says of their processes."""

import json
import pathlib
import subprocess
import sys
import time

import served

WARM_UP = 0.25  # seconds before a measurement
PARTS = ("copying", "event loop", "other threads", "ZeroMQ", "trainer")
PROGRAM = pathlib.Path(__file__).with_name("trainer.py")


def family(pid):
    """A process and all that it started."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def part_of(name, is_daemon):
    """What a thread of that name is for."""
    if name.startswith("ZMQ"):
        return "ZeroMQ"
    if not is_daemon:
        return "trainer"
    return {"bw-assembly": "copying", "loop": "event loop"}.get(name, "other threads")


def cpu_seconds(pids, daemon=None):
    """Of all threads, by their part. `daemon`: which of the processes is that."""
    seconds = dict.fromkeys(PARTS, 0.0)
    for pid in pids:
        for name, taken in served.thread_seconds(pid, "loop").items():
            seconds[part_of(name, pid == daemon)] += taken
    return seconds


def major_faults(pids):
    stats = (pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1] for pid in pids)
    return sum(int(stat.split()[9]) for stat in stats)


def memory_beside(pids):
    """PSS of all that is neither LMDB's map nor an arena."""
    beside, counted = 0, False
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if "-" in words[0] and not words[0].endswith(":"):
                counted = not (line.endswith("data.mdb") or "memfd:batchwright" in line)
            elif words[0] == "Pss:" and counted:
                beside += int(words[1]) * 1024
    return beside


def wait_until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


class TrainerEnded(Exception):
    """By itself, before it was told to."""


class Trainer:
    """A process of trainer.py, started and at its first batch once `arrive` returned."""

    def __init__(self, kind, given):
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, kind, json.dumps(given)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def arrive(self):
        """Seconds from the process's start to its first batch."""
        return self.answer()["first"] - self.started

    def tell(self, words):
        try:
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise TrainerEnded(self.process.args[2]) from None

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise TrainerEnded(self.process.args[2])
        return json.loads(line)

    def end(self):
        try:
            self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # its workers do not come to an end
            self.process.kill()
            self.process.communicate()


class Group:
    """Trainers of one kind. `daemon` is the one that works for them, or None."""

    def __init__(self, kind, count, given, daemon):
        self.kind, self.daemon = kind, daemon
        self.trainers = [Trainer(kind, given) for _ in range(count)]
        try:
            for trainer in self.trainers:
                trainer.arrive()
        except TrainerEnded:
            self.end()
            raise

    def pids(self):
        daemon = [self.daemon.process.pid] if self.daemon else []
        return daemon + [pid for each in self.trainers for pid in family(each.process.pid)]

    def cpu(self, pids):
        return cpu_seconds(pids, self.daemon.process.pid if self.daemon else None)

    def measure(self, seconds, *, every_byte=False, step=0.0, drop=False,
                memory=False):
        """Rates and waits of all trainers, CPU of all their processes and of the daemon."""
        pids = self.pids()
        start = time.monotonic() + WARM_UP
        for trainer in self.trainers:
            trainer.tell({"start": start, "end": start + seconds, "every_byte": every_byte,
                          "step": step, "drop": drop})
        wait_until(start)
        before, began, faults = self.cpu(pids), time.monotonic(), -major_faults(pids)
        wait_until(start + seconds)
        after, began = self.cpu(pids), time.monotonic() - began
        cpu = {part: after[part] - before[part] for part in PARTS}
        found = {"faults": faults + major_faults(pids)}
        if memory:
            found["memory"] = memory_beside(pids)
        done = [trainer.answer() for trainer in self.trainers]
        # Of a window in which nothing came there is nothing to tell but that.
        found["rate"] = max(1.0, sum(each["bytes"] / each["seconds"] for each in done))
        found["cpu"] = sum(cpu.values()) / began / found["rate"] * 1e9
        found["next"] = max(each["next"] for each in done)
        batches = max(1, sum(each["batches"] for each in done))
        found["parts"] = {part: cpu[part] / began * seconds / batches for part in PARTS}
        return found

    def end(self):
        for trainer in self.trainers:
            trainer.end()
