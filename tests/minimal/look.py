"""What a minimal daemon is: its size, what it links, its threads, its memory, how often it wakes up
and what it writes while it serves; what it answers to bad input, and how it ends without memory.
Prints a line for each, and fails where a line is not kept."""

import argparse
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

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
# Each step of a recipe that computes: resampling, a room, noise, gain, telephone, dither, features,
# masks and deltas.
RECIPE = """
[[feed]]
name = "sound"
dataset = "{folder}/sound"
slots = 2

[feed.plan]
order = "random"
size = 4

[feed.features]
like = "kaldi"
resampler = "sinc"
sample_rate = 16000
speeds = [0.9, 1.0, 1.1]
dither = 1.0
cmvn = "utterance"
spec_augment = true
deltas = 2

[[feed.style]]
noise = ["{folder}/noise"]
rooms = ["{folder}/rooms"]
gain_db = [-3, 3]
"""
# Lines of a recipe that take a library which a minimal build does not have, and words of the refusal.
REFUSED = (('resampler = "sinc"', 'resampler = "soxr"', 'resampler: found "soxr"'),
           ("gain_db = [-3, 3]", "telephone_probability = 0.3", "telephone_probability:"),
           ("sample_rate = 16000", "sample_rate = 8000", "noise: {folder}/noise: sequence 0 has 16000"),
           ('"{folder}/sound"', '"{folder}/files"', "encoded sound"),
           ('"{folder}/rooms"', '"{folder}/files"', "rooms: {folder}/files: encoded sound"))


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

    def __init__(self, program, folder, group=None, config=CONFIG):
        (folder / "d.toml").write_text(config.format(folder=folder))
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

    def wait_for_line(self, text):
        end = time.monotonic() + SECONDS
        while text not in pathlib.Path(self.log.name).read_text():
            if time.monotonic() > end:
                raise SystemExit(f"no line of the daemon has {text}")
            time.sleep(0.02)

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


def batches(full, folder, epochs, feed="train"):
    """What a client gets, by batch."""
    done = subprocess.run([full / "batchwright", "tail", "--feed", feed, "--epochs", str(epochs),
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
    report.line("daemon, stripped", f"{size:.2f} MiB", "at most 1.9 MiB", size <= 1.9)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    others = [line.split()[0] for line in linked.splitlines()
              if not any(name in line for name in OF_LIBC)]
    report.line("libraries beside libc", ", ".join(others) or "none", "none", not others)


def look_at_daemon(args, folder, report):
    with Daemon(args.minimal / "batchwrightd", folder) as daemon:
        end = time.monotonic() + SECONDS
        # Those of the start leave 10 s after their last work.
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
        serving = daemon.own_threads()  # any that came meanwhile stay 10 s after their last work
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


def refuses(program, config, words, *options):
    """Whether a daemon does not start with a configuration, and says why in these words."""
    said = subprocess.run([program, "--config", config, *options], capture_output=True, text=True,
                          timeout=SECONDS)
    kept = said.returncode > 0 and words in said.stderr
    if not kept:
        print(f"{words}: exit {said.returncode}, {said.stderr}")
    return kept


def look_at_recipe(args, folder, report):
    config = CONFIG + RECIPE
    with Daemon(args.minimal / "batchwrightd", folder, config=config):
        got = batches(args.full, folder, 2, "sound")
    with Daemon(args.full / "batchwrightd", folder, config=config):
        report.line("batches by a recipe", str(len(got)), "the same",
                    got and batches(args.full, folder, 2, "sound") == got)
    refused = []
    for found, instead, words in REFUSED:
        (folder / "d.toml").write_text(config.replace(found, instead).format(folder=folder))
        refused.append(refuses(args.minimal / "batchwrightd", folder / "d.toml",
                               words.format(folder=folder), "--check-config"))
    report.line("steps that take a library left out", f"{sum(refused)} of {len(refused)}",
                "refused by name", all(refused))


def answer_to(path, sent):
    """What a Unix socket says to some bytes first; nothing where it resets the connection."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(SECONDS)
        peer.connect(str(path))
        try:
            peer.sendall(sent)
            return peer.recv(4096)
        except ConnectionError:
            return b""


def look_at_bad_input(args, folder, report):
    program = args.minimal / "batchwrightd"
    (folder / "bad.toml").write_text("[daemon]\nmemory = = 1\n")
    report.line("a text that is no TOML", "", "named by its place",
                refuses(program, folder / "bad.toml", "bad.toml:2:10"))
    (folder / "key").write_text("D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs")
    (folder / "key").chmod(0o600)
    (folder / "d.toml").write_text(
        f'[daemon]\nendpoints = ["tcp://127.0.0.1:0"]\ncurve_secret_key_file = "{folder}/key"\n'
        f'authorized_keys_file = "{folder}/key"\n' + CONFIG.split("assembly_threads = 1")[1].format(
            folder=folder))
    report.line("a key", "", "refused by name",
                refuses(program, folder / "d.toml", "has no encryption"))
    with Daemon(program, folder) as daemon:
        http = answer_to(folder / "stats.sock", b"no HTTP at all\r\n\r\n").split(b"\r\n")[0]
        answer_to(folder / "bw.sock", b"\x00" * 64)
        (folder / "d.toml").write_text("[daemon]\nendpoints = 3\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("d.toml:2:1: daemon.endpoints")
        missing = subprocess.run(
            [args.full / "batchwright", "tail", "--feed", "none", "--endpoint",
             f"ipc://{folder}/bw.sock"], capture_output=True, text=True, timeout=SECONDS)
        kept = b"400" in http and "none" in missing.stderr and missing.returncode > 0
        report.line("bad bytes, a bad reload, a feed that is none", http.decode(errors="replace"),
                    "served on", kept and len(batches(args.full, folder, 1)) > 0)


def look_at_large_feed(args, folder, report):
    """One that the memory is not enough for is refused by a reload, and the others are served on."""
    with Daemon(args.minimal / "batchwrightd", folder) as daemon:
        before = batches(args.full, folder, 1)
        with open(folder / "d.toml", "a") as config:
            config.write(f'[[feed]]\nname = "large"\ndataset = "{folder}/large"\n'
                         '[feed.plan]\norder = "random"\nsize = 1000\n')
        now = daemon.figure("status", "VmData") * 1024
        resource.prlimit(daemon.process.pid, resource.RLIMIT_DATA, (now + 4 * MIB, now + 4 * MIB))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("no memory for a plan of ")
        report.line("a feed that memory is not enough for", "not reloaded", "others are served on",
                    batches(args.full, folder, 1) == before)


def look_at_lack_of_memory(args, folder, report):
    with Daemon(args.minimal / "batchwrightd", folder) as daemon:
        before = batches(args.full, folder, 1)
        with open(folder / "d.toml", "a") as config:
            config.write("# " + "x" * (900 << 10))
        now = daemon.figure("status", "VmData") * 1024
        unlimited = resource.prlimit(daemon.process.pid, resource.RLIMIT_DATA,
                                     (now, resource.RLIM_INFINITY))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("std::bad_alloc")
        resource.prlimit(daemon.process.pid, resource.RLIMIT_DATA, unlimited)
        report.line("no memory to read a configuration", "not reloaded", "served on",
                    batches(args.full, folder, 1) == before)


def look_at_command(args, folder, report):
    """A job by `run`, of a dataset that the writer made, with the minimal build's programs alone."""
    import datasets
    libraries = args.minimal.parent / "lib"
    writes = "import datasets, pathlib, sys; datasets.write_features(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", writes, folder / "written"], check=True, env={
        **os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent),
        "BATCHWRIGHT_STORAGE_LIBRARY": str(libraries / "libbatchwright-storage.so.1"),
        "BATCHWRIGHT_LIBRARY": str(libraries / "libbatchwright.so.1")})
    (folder / "run.toml").write_text(CONFIG.format(folder=folder).replace("/data\"", "/written\""))
    command = args.minimal / "batchwright"
    done = subprocess.run([command, "run", "--config", folder / "run.toml", "--", command, "tail",
                           "--feed", "train", "--epochs", "2", "--json"],
                          capture_output=True, text=True, timeout=10 * SECONDS)
    count = len(done.stdout.splitlines())
    if done.returncode != 0:
        print(done.stderr)
    report.line("batches by run, of a dataset written here", str(count), "of both epochs",
                done.returncode == 0 and count == 2 * -(-datasets.SEQUENCES // 16))


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
    import datasets  # by those libraries
    report = Report()
    with tempfile.TemporaryDirectory(prefix="bw-") as name:
        folder = pathlib.Path(name)
        datasets.write(args.full, folder)
        look_at_file(args.minimal / "batchwrightd", folder, report)
        got = look_at_daemon(args, folder, report)
        look_at_limit(args, folder, got, report)
        look_at_bad_input(args, folder, report)
        look_at_large_feed(args, folder, report)
        look_at_command(args, folder, report)
        look_at_lack_of_memory(args, folder, report)
        with Daemon(args.full / "batchwrightd", folder):
            report.line("batches as of the full daemon", str(len(got)), "the same",
                        batches(args.full, folder, 2) == got)
        look_at_recipe(args, folder, report)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
