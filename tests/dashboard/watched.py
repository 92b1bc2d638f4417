"""A daemon with two feeds, and clients of it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import Any, Callable, Dict, List

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60  # that any single wait may take

CONFIG = """
[daemon]
endpoints = ["ipc://{folder}/bw.sock"]
stats = ["127.0.0.1:0", "unix://{folder}/stats.sock"]
memory = "256MiB"

[[feed]]
name = "train"
dataset = "{folder}/train"
slots = 24
[feed.plan]
order = "semi-sorted"
cut = "dynamic"
size = 8
shuffle = "batches"
world = 2

[[feed]]
name = "held-out"
dataset = "{folder}/held-out"
slots = 8
[feed.plan]
order = "bucket"
bucket_size = 64
size = 8
"""


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """What `condition` returns, once that is true."""
    end = time.monotonic() + SECONDS
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"waited {SECONDS} s for {what}"
        time.sleep(0.02)


def make_dataset(programs: pathlib.Path, path: pathlib.Path, sequences: int,
                 dims: int) -> List[bytes]:
    """Lengths as speech has them: few short ones, many middle ones, few long ones. Returns the
    bytes of each sequence's first frame."""
    first_rows: List[bytes] = []
    random = numpy.random.default_rng(sequences)
    with tempfile.TemporaryDirectory(prefix="bw-dashboard-") as folder:
        for number in range(sequences):
            frames = int(random.gamma(6.0, 40.0)) + 20
            values = random.standard_normal((frames, dims)).astype(numpy.float32)
            numpy.save(pathlib.Path(folder) / f"{number:05d}.npy", values)
            first_rows.append(values[0].tobytes())
        subprocess.run([programs / "batchwright", "ingest", "npy", folder, "--into", path],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return first_rows


class Watched:
    """The daemon, from the begin of a `with` to its end; clients end with it."""

    def __init__(self, programs: pathlib.Path, library: str, sequences: int, dims: int) -> None:
        self.programs, self.library = programs, library
        self.sequences, self.dims = sequences, dims
        self.clients: List[subprocess.Popen] = []

    def __enter__(self) -> Watched:
        self.stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bw-dashboard-")))
        make_dataset(self.programs, self.folder / "train", self.sequences, self.dims)
        self.first_rows = make_dataset(self.programs, self.folder / "held-out", 200, self.dims)
        (self.folder / "config.toml").write_text(CONFIG.format(folder=self.folder))
        self.start()
        return self

    def start(self) -> None:
        self.log = self.folder / "log"
        self.process = subprocess.Popen(
            [self.programs / "batchwrightd", "--config", self.folder / "config.toml"],
            stderr=self.log.open("w"))
        eventually(self.is_ready, "batchwrightd")
        port = re.search(r"dashboard at http://[^ ]*:(\d+)/", self.log.read_text(), re.MULTILINE)
        assert port is not None
        self.address = f"http://127.0.0.1:{port[1]}"

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return "ready: " in self.log.read_text()

    def stop(self) -> None:
        for client in self.clients:
            client.communicate()
        self.clients.clear()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)

    def __exit__(self, *_: Any) -> None:
        if self.process.returncode is None:
            self.stop()
        self.stack.close()

    def stats(self) -> Dict[str, Any]:
        with urllib.request.urlopen(self.address + "/stats", timeout=SECONDS) as page:
            return json.load(page)

    def client(self, feed: str, name: str, *more: str, program: str = "client.py") -> None:
        """Returns when the client is subscribed and holds what it was told to; a producer, when it
        has pushed that."""
        client = self.begin_client(feed, name, *more, program=program)
        assert client.stdout is not None
        assert client.stdout.readline().startswith("holds"), f"client {name} ended"

    def begin_client(self, feed: str, name: str, *more: str,
                     program: str = "client.py") -> subprocess.Popen:
        paths = {"PYTHONPATH": str(ROOT / "client" / "python"),
                 "BATCHWRIGHT_LIBRARY": self.library}
        client = subprocess.Popen(
            [sys.executable, "-B", HERE / program, f"ipc://{self.folder}/bw.sock", feed, name,
             *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, **paths})
        self.clients.append(client)
        return client
