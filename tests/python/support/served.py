"""A dataset whose every value is known, and a batchwrightd that serves it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import numpy

import batchwright

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ["BATCHWRIGHT_BIN"])
SEQUENCES = 60
SECONDS = 30  # that any single wait may take
WINDOW = 2  # of the fixture `subscription`

CONFIG = """
[daemon]
endpoints = ["{endpoint}"]
stats = "127.0.0.1:0"
memory = "64MiB"

[[feed]]
name = "train"
dataset = "{dataset}"
slots = {slots}
layout = "{layout}"
padding = {{ features = -1.0 }}
poison = {poison}
{feed}

[feed.plan]
order = "random"
cut = "{cut}"
size = {size}
world = {world}
seed = {seed}
{plan}
"""
DEFAULTS = dict(slots=8, layout="batch-major", cut="fixed", size=4, world=1, seed=1,
                poison="true", feed="", plan="")


def eventually(condition, what):
    """Waits until `condition` holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {SECONDS} s for {what}"
        time.sleep(0.005)


def is_full(subscription):
    """Whether all credits are out. When they are not, a batch comes, or the text says so."""
    try:
        return subscription.next(timeout=0) is None
    except batchwright.TimedOutError as error:
        return f"all {WINDOW} credits are out" in str(error)


def sequence_name(number):
    return f"{'even' if number % 2 == 0 else 'odd'}/seq-{number}"


def number_of(key):
    return int(key.rsplit("-", 1)[1])


def features_of(number):
    """Different everywhere, and exact as float32."""
    frames = number * 7919 % 50 + 1
    return (number * 1000 + numpy.arange(frames * 4).reshape(frames, 4)).astype(numpy.float32)


def text_of(number):
    return " ".join(["word"] * (number % 7 + 1)).encode()


def make_dataset(folder, sequences=SEQUENCES):
    """In folder/data: features [T, 4] float32, label (scalar), text (independent)."""
    sources, transcripts = folder / "sources", folder / "transcripts.tsv"
    with transcripts.open("w") as lines:
        for number in range(sequences):
            path = sources / (sequence_name(number) + ".npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            numpy.save(path, features_of(number))
            lines.write(f"{sequence_name(number)}\t{text_of(number).decode()}\n")
    subprocess.run([BIN / "batchwright", "ingest", "npy", sources, "--into", folder / "data",
                    "--label-from-folder", "--transcripts", transcripts], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "data"


class Daemon:
    """Runs from start() to stop(), any number of times."""

    def __init__(self, folder, dataset, **settings):
        self.endpoint = f"ipc://{folder}/bw.sock"
        self.config, self.log = folder / "config.toml", folder / "log"
        self.dataset, self.settings = dataset, {**DEFAULTS, **settings}
        self.process = None

    def start(self):
        self.config.write_text(CONFIG.format(endpoint=self.endpoint, dataset=self.dataset,
                                             **self.settings))
        with self.log.open("w") as log:
            self.process = subprocess.Popen([BIN / "batchwrightd", "--config", self.config],
                                            stderr=log)
        eventually(self._ready, "batchwrightd")
        return self

    def _ready(self):
        assert self.process.poll() is None, self.log.read_text()
        return "ready: " in self.log.read_text()

    def stop(self, by=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(by)
            self.process.wait(SECONDS)
            self.process = None

    def stats(self):
        """The daemon's page."""
        port = re.search(r"dashboard at http://[^ ]*:(\d+)/", self.log.read_text(), re.MULTILINE)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=SECONDS) as page:
            return json.load(page)

    def counter(self, name):
        """Of the feed, as the daemon counts it."""
        return self.stats()["feeds"][0]["counters"][name]


def environment():
    """In which a Python that a test starts finds the package."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "client" / "python")}


def complaints(errors):
    """What a Python said on its standard error, but for a line of libgcrypt's: Debian's torch
    brings it along, and it may not lock memory everywhere."""
    return [line for line in errors.splitlines() if line != "Warning: using insecure memory!"]
