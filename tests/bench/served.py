"""A batchwrightd of a benchmark's own, and what the system says of it."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
MIB = 1 << 20
RELEASE_BYTES, DELIVERY_BYTES = 64, 112  # as the .fbs files encode them


def build(folder, *targets):
    """Builds the targets in Release, in `folder`, and returns where the programs are."""
    subprocess.run([ROOT / "tests" / "install-packages", "build", "test", "bench"], check=True)
    subprocess.run(["cmake", "--preset", "release", "-B", folder, "--log-level=WARNING"], cwd=ROOT,
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", *targets], cwd=ROOT, check=True,
                   stdout=sys.stderr)
    return folder / "bin"


def free_port():
    """Of loopback; no one has it at this moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def show(rows, as_json=False):
    """Prints rows of a name, a value, and whether it holds what was asked (None: nothing was).
    Returns whether all of them do."""
    if as_json:
        print(json.dumps({name.strip(): value for name, value, _ in rows}))
    for name, value, holds in [] if as_json else rows:
        print(f"{name:52} {value:9.3f}  {'' if holds is None else 'holds' if holds else 'MISSED'}")
    return all(holds is not False for _, _, holds in rows)


def wait_for(what, condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"bench: waited {seconds} s for {what}")
        time.sleep(0.05)


def thread_seconds(pid, main):
    """Processor time of each thread that lives, by its name, which for the first one is `main`."""
    seconds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = main if int(task.name) == pid else (task / "comm").read_text().strip()
        taken = int((task / "schedstat").read_text().split()[0]) / 1e9
        seconds[name] = seconds.get(name, 0) + taken
    return seconds


class Daemon:
    """Runs with `config`, in which {endpoint} stands for the address of its socket, and {folder}
    for a folder of its own. `enter` is called in its process before it begins."""

    def __init__(self, config, programs=BUILD / "bin", enter=None):
        self.config, self.programs, self.enter = config, programs, enter

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="bw-bench-")
        folder = pathlib.Path(self.folder.name)
        self.endpoint = f"ipc://{folder}/bw.sock"
        (folder / "config.toml").write_text(self.config.format(endpoint=self.endpoint,
                                                               folder=folder))
        self.log = folder / "log"
        self.begin()
        return self

    def begin(self):
        self.process = subprocess.Popen(
            [self.programs / "batchwrightd", "--config", self.log.parent / "config.toml"],
            stderr=self.log.open("w"), preexec_fn=self.enter)
        wait_for("the daemon", self.ready, 60)

    def killed(self):
        """It is killed and begins again. Returns the seconds until it is ready."""
        self.process.kill()
        self.process.wait()
        since = time.monotonic()
        self.begin()
        return time.monotonic() - since

    def ready(self):
        if self.process.poll() is not None:
            sys.exit(f"bench: batchwrightd ended:\n{self.log.read_text()}")
        log = self.log.read_text()
        port = re.search(r"dashboard at http://[^ ]*:(\d+)/", log, re.MULTILINE)
        self.stats = f"http://127.0.0.1:{port[1]}" if port else None
        return port is not None and "ready: " in log

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        self.folder.cleanup()

    def cpu_seconds(self):
        """Of each thread that lives, by its name."""
        return thread_seconds(self.process.pid, "loop")

    def all_cpu_seconds(self):
        """Of all threads, those that have ended, too."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def own_memory(self):
        """Resident bytes that are neither shared memory nor a file's."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^RssAnon:\s+(\d+)", status, re.MULTILINE)[1]) * 1024
