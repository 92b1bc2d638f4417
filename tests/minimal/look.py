"""What a minimal daemon is: its size, what it links, its threads, its memory, how often it wakes up
and what it writes while it serves. Prints a line for each, and fails where a line is not kept."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQUENCES = 13_100
MIB = 1 << 20
IDLE_SECONDS = 10
SECONDS = 30  # that any single wait may take
OF_LIBC = ("libc.so.6", "libm.so.6", "ld-linux", "linux-vdso", "libpthread.so", "librt.so",
           "libresolv.so")
CONFIG = """
[daemon]
endpoints = ["ipc://{folder}/bw.sock"]
stats = "unix://{folder}/stats.sock"
memory = "16MiB"
assembly_threads = 1

[[feed]]
name = "train"
dataset = "{folder}/data"
slots = 8

[feed.plan]
order = "random"
size = 16
"""


def write_dataset(folder):
    """Frames of 13 values, 20 to 119 of them; every value follows from its place."""
    sys.path.insert(0, str(ROOT / "client" / "python"))
    import numpy

    import batchwright
    fields = {"features": batchwright.FieldSpec("float32", (13,))}
    with batchwright.DatasetWriter(folder / "data", fields) as writer:
        for i in range(SEQUENCES):
            frames = 20 + i * 7919 % 100
            writer.add(f"s{i:05}", features=numpy.full((frames, 13), i, numpy.float32))


class MemoryGroup:
    """A control group that holds a program, its shared memory and its page cache to some bytes."""

    def __init__(self, limit):
        for parent, key in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
            self.path = pathlib.Path("/sys/fs/cgroup") / parent / f"bw-minimal-{os.getpid()}"
            try:
                self.path.mkdir()
                (self.path / key).write_text(str(limit))
                return
            except OSError:
                self.remove()
        self.path = None

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        if self.path is not None and self.path.exists():
            self.path.rmdir()


class Daemon:
    """A daemon of its own, within a memory group if there is one."""

    def __init__(self, program, folder, group=None):
        (folder / "d.toml").write_text(CONFIG.format(folder=folder))
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            [program, "--config", str(folder / "d.toml")], stderr=self.log, stdout=self.log,
            preexec_fn=group and group.enter)
        end = time.monotonic() + SECONDS
        while self.ready(folder) != "ready\n":
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{program} is not ready:\n{(folder / 'log').read_text()}")
            time.sleep(0.02)

    @staticmethod
    def ready(folder):
        return subprocess.run(
            ["curl", "-s", "--unix-socket", str(folder / "stats.sock"), "http://d/readyz"],
            capture_output=True, text=True).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(SECONDS) == 0
        self.log.close()

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}").read_text()

    def figure(self, file, key):
        for line in self.proc(file).splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise KeyError(key)

    def own_threads(self):
        """The names of those beside ZeroMQ's."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        names = sorted((task / "comm").read_text().strip() for task in tasks)
        return [name for name in names if not name.startswith("ZMQ")]

    def switches(self):
        count = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if "ctxt_switches" in line:
                    count += int(line.split()[1])
        return count


def batches(full, folder, epochs):
    """What a client gets, by batch."""
    done = subprocess.run([full / "batchwright", "tail", "--feed", "train", "--epochs", str(epochs),
                           "--json", "--endpoint", f"ipc://{folder}/bw.sock"],
                          capture_output=True, text=True, timeout=10 * SECONDS)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Report:
    def __init__(self):
        self.failed = False

    def line(self, what, found, wanted, kept):
        self.failed |= not kept
        print(f"{what:44} {found:>14}  {wanted:20} {'ok' if kept else 'NOT KEPT'}")


def look_at_file(program, folder, report):
    stripped = folder / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    size = stripped.stat().st_size / MIB
    report.line("daemon, stripped", f"{size:.2f} MiB", "at most 1.5 MiB", size <= 1.5)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    others = [line.split()[0] for line in linked.splitlines()
              if not any(name in line for name in OF_LIBC)]
    report.line("libraries beside libc", ", ".join(others) or "none", "none", not others)


def look_at_daemon(args, folder, report):
    with Daemon(args.minimal / "batchwrightd", folder) as daemon:
        end = time.monotonic() + SECONDS
        # Those of the start leave 10 s behind their last work.
        while len(threads := daemon.own_threads()) > 2 and time.monotonic() < end:
            time.sleep(0.1)
        report.line("threads beside ZeroMQ's, idle", str(len(threads)), "2", len(threads) <= 2)
        print(f"{'':44} {' '.join(threads)}")
        before = daemon.switches()
        time.sleep(IDLE_SECONDS)
        idle = (daemon.switches() - before) / IDLE_SECONDS
        report.line("wake-ups a second, idle", f"{idle:.1f}", "at most 5", idle <= 5)
        written = daemon.figure("io", "write_bytes")
        got = batches(args.full, folder, 2)
        serving = daemon.own_threads()  # any that came meanwhile stay for 10 s behind their last work
        report.line("threads beside ZeroMQ's, serving", str(len(serving)), "2", len(serving) <= 2)
        print(f"{'':44} {' '.join(serving)}")
        written = daemon.figure("io", "write_bytes") - written
        report.line("bytes written to disk over two epochs", str(written), "0", written == 0)
        resident = daemon.figure("status", "RssAnon") / 1024
        code = sum(int(line.split()[1]) for line in code_of(daemon)) / 1024
        report.line("resident beside arena and map", f"{resident + code:.2f} MiB", "at most 6 MiB",
                    resident + code <= 6)
        print(f"{'':44} {resident:.2f} MiB of it anonymous, {code:.2f} MiB of the program's file")
    return got


def code_of(daemon):
    """Resident pages of mapped files except for the dataset and the arena."""
    lines, own = [], False
    for line in daemon.proc("smaps").splitlines():
        if "-" in line.split()[0] and ":" not in line.split()[0]:
            path = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) > 5 else ""
            own = path.startswith("/") and "data.mdb" not in path and "memfd" not in path
        elif own and line.startswith("Rss:"):
            lines.append(line)
    return lines


def look_at_limit(args, folder, got, report):
    """64 MiB for all: program, arena, and what stays in memory of the dataset."""
    group = MemoryGroup(64 * MIB)
    if group.path is None:
        print("not tried: serving within 64 MiB, for no control group of memory can be made here")
        return
    with Daemon(args.minimal / "batchwrightd", folder, group) as daemon:
        again = batches(args.full, folder, 2)
        peak = daemon.figure("status", "VmHWM") / 1024
    group.remove()
    report.line("batches of a daemon within 64 MiB", str(len(again)), "the same", again == got)
    print(f"{'':44} {peak:.1f} MiB resident at most, the dataset's pages included")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=pathlib.Path, required=True)
    parser.add_argument("--minimal", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.full, args.minimal = args.full.resolve(), args.minimal.resolve()
    os.environ.setdefault("BATCHWRIGHT_STORAGE_LIBRARY",
                          str(args.full.parent / "lib" / "libbatchwright-storage.so.1"))
    os.environ.setdefault("BATCHWRIGHT_LIBRARY",
                          str(args.full.parent / "lib" / "libbatchwright.so.1"))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="bw-") as name:
        folder = pathlib.Path(name)
        write_dataset(folder)
        look_at_file(args.minimal / "batchwrightd", folder, report)
        got = look_at_daemon(args, folder, report)
        look_at_limit(args, folder, got, report)
        with Daemon(args.full / "batchwrightd", folder):
            report.line("batches as of the full daemon", str(len(got)), "the same",
                        batches(args.full, folder, 2) == got)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
