#!/usr/bin/python3
"""Two training jobs on one machine that share every batch, one of them killed and resumed.

    client/examples/two_jobs.py --bin build/release/bin [--short]

Makes datasets of recorded prompts in five languages, starts a daemon, and runs languages.py twice
at once with the same seed. In the middle one job is killed, and resumed from its checkpoint. Then
it shows that this job saw exactly the batches of the undisturbed one, what came of the
training, and what the daemon had to do for it. Stops and removes all it made.

Ends with 1, and says why, when the resumed job saw anything else, when a batch was assembled twice,
or when the held-out prompts are recognised little better than by the most frequent language alone.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
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
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import built
import prompts

HERE = pathlib.Path(__file__).resolve().parent
CLEARLY = 0.15  # of the held-out prompts, above the most frequent language
PATIENCE = 600  # seconds without progress, however slow the machine is

CONFIG = """
[daemon]
endpoints = ["{endpoint}"]
stats = "127.0.0.1:0"

[[feed]]
name = "train"
dataset = "{work}/train.data"
layout = "time-major"
slots = {slots}    # all batches of all epochs: a job shares them however late it comes back

[feed.plan]
order = "semi-sorted"
cut = "dynamic"
size = 8
shuffle = "batches"
max_length = {longest}

[[feed]]
name = "held-out"
dataset = "{work}/held-out.data"
layout = "time-major"
slots = 8

[feed.plan]
order = "sorted"
cut = "dynamic"
size = 1
"""


class Form(NamedTuple):
    """How much is done."""

    front_end: List[str]  # for `batchwright ingest audio`
    longest: int  # frames of a prompt that is trained on
    epochs: int
    words: List[str]  # further arguments of languages.py


FULL = Form(["--hop-ms", "20", "--window-ms", "32"], 300, 6, ["--hidden", "48"])
SHORT = Form(["--mel-bands", "24", "--hop-ms", "30", "--window-ms", "32"], 200, 3,
             ["--hidden", "24", "--rate", "6e-3"])


def until(condition: Callable[[], Any], what: str, progress: Callable[[], Any]) -> None:
    """Waits for the condition, as long as what `progress` returns changes now and then."""
    last, end = progress(), time.monotonic() + PATIENCE
    while not condition():
        now = progress()
        if now != last:
            last, end = now, time.monotonic() + PATIENCE
        elif time.monotonic() > end:
            sys.exit(f"two_jobs: no progress for {PATIENCE} s towards {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def stopped_at_the_end(started: Any) -> Iterator[None]:
    """`started.process` is stopped when the block ends, if it still runs."""
    try:
        yield
    finally:
        if started.process is not None and started.process.poll() is None:
            started.process.terminate()
            started.process.wait()


def planned_batches(programs: pathlib.Path, config: pathlib.Path, epoch: int) -> int:
    """Batches that the feed `train` has in an epoch."""
    printed = subprocess.run(
        [programs / "batchwright", "plan", "--feed-config", config, "--feed", "train", "--epoch",
         str(epoch), "--json"], check=True, stdout=subprocess.PIPE).stdout
    return int(json.loads(printed)["batches"])


class Daemon:
    """A batchwrightd that serves the two datasets in `work`."""

    def __init__(self, programs: pathlib.Path, work: pathlib.Path, form: Form) -> None:
        self.endpoint = f"ipc://{work}/bw.sock"
        self.log = work / "daemon.log"
        config = work / "batchwrightd.toml"
        settings = dict(endpoint=self.endpoint, work=work, longest=form.longest)
        config.write_text(CONFIG.format(slots=2, **settings))
        batches = sum(planned_batches(programs, config, epoch) for epoch in range(form.epochs))
        config.write_text(CONFIG.format(slots=batches, **settings))
        with self.log.open("w") as log:
            self.process = subprocess.Popen([programs / "batchwrightd", "--config", config],
                                            stderr=log)

    def wait(self) -> None:
        until(self._ready, "batchwrightd", self.log.read_text)

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            sys.exit(f"two_jobs: batchwrightd ended:\n{self.log.read_text()}")
        return "ready: " in self.log.read_text()

    def counters(self) -> Dict[str, int]:
        """What was counted for the feed `train`, from the page /stats."""
        port = re.search(r"dashboard at http://[^ ]*:(\d+)/", self.log.read_text(), re.MULTILINE)
        assert port is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/stats", timeout=10) as page:
            feeds = json.load(page)["feeds"]
        return next(feed["counters"] for feed in feeds if feed["name"] == "train")


class Job:
    """languages.py under a name of its own, however often it is started."""

    def __init__(self, name: str, endpoint: str, work: pathlib.Path, form: Form) -> None:
        self.name, self.epochs = name, form.epochs
        self.log, self.output = work / f"{name}.log", work / f"{name}.json"
        self.errors = work / f"{name}.errors"
        self.process: Optional[subprocess.Popen[bytes]] = None
        self._call: List[Any] = [
            sys.executable, HERE / "languages.py", "--endpoint", endpoint, "--json", "--checkpoint",
            work / f"{name}.pt", "--log", self.log, "--epochs", str(form.epochs), *form.words]

    def start(self, *more: str) -> None:
        with self.output.open("a") as output, self.errors.open("a") as errors:
            self.process = subprocess.Popen([*self._call, *more], stdout=output, stderr=errors)

    def runs(self) -> bool:
        assert self.process is not None
        if self.process.poll() not in (None, 0):
            sys.exit(f"two_jobs: {self.name} failed:\n{self.errors.read_text()}")
        return self.process.returncode is None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def lines(self) -> List[str]:
        """Of the log: one for each batch."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def results(self) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in self.output.read_text().splitlines()]


def in_the_middle(job: Job) -> bool:
    """Whether the job is well within its middle epoch."""
    last = job.lines()[-1:]
    epoch, step = map(int, last[0].split()[:2]) if last else (0, 0)
    return (epoch, step) >= (job.epochs // 2, 25)


def kill_and_resume(job: Job) -> List[str]:
    """Kills a job, and starts it again. Returns the log of the one that was killed."""
    until(lambda: not job.runs() or in_the_middle(job), f"the middle of {job.name}", job.lines)
    job.kill()
    log = job.lines()
    job.start("--resume")
    return log


def run(options: argparse.Namespace, work: pathlib.Path) -> List[str]:
    """Prints what came of it, and returns what is not as it should be."""
    form = SHORT if options.short else FULL
    prompts.make_datasets(options.bin, options.sounds, work, form.front_end)
    with contextlib.ExitStack() as ends:
        daemon = Daemon(options.bin, work, form)
        ends.enter_context(stopped_at_the_end(daemon))
        daemon.wait()
        jobs = [Job(name, daemon.endpoint, work, form) for name in ("blue", "green")]
        for job in jobs:
            ends.enter_context(stopped_at_the_end(job))
            job.start()
        killed = kill_and_resume(jobs[1])
        for job in jobs:
            until(lambda: not job.runs(), f"the end of {job.name}", job.lines)
        counters = daemon.counters()
    table(jobs)
    return [*told_right(jobs), *nothing_changed(jobs, killed),
            *all_shared(len(jobs[0].lines()), counters)]


def table(jobs: List[Job]) -> None:
    print(f"{'job':7}{'epoch':>6}{'prompts':>9}{'loss':>8}{'seconds':>9}{'waited':>8}")
    for job in jobs:
        note = ""
        for each in job.results():
            if "resumed_behind" in each:
                note = "   since it was resumed"
            elif "epoch" in each:
                waited = each["waited_seconds"] / each["seconds"]
                print(f"{job.name:7}{each['epoch']:6}{each['prompts']:9}{each['loss']:8.3f}"
                      f"{each['seconds']:9.1f}{waited:8.1%}{note}")
                note = ""


def told_right(jobs: List[Job]) -> List[str]:
    """Prints what the jobs' models know. Returns which know not clearly more than nothing."""
    ends = [job.results()[-1] for job in jobs]
    for job, end in zip(jobs, ends):
        print(f"{job.name}: {end['right']} of {end['prompts']} held-out prompts recognised, "
              f"{end['accuracy']:.1%}; with the most frequent language alone {end['majority']:.1%}")
    return [f"{job.name} recognises {end['accuracy']:.1%} of the held-out prompts; expected "
            f"are {CLEARLY:.0%} more than the most frequent language's {end['majority']:.1%}"
            for job, end in zip(jobs, ends) if end["accuracy"] < end["majority"] + CLEARLY]


def first_difference(log: List[str], expected: List[str]) -> str:
    """The first batch that two logs differ in, with both lines; empty where there is none."""
    for number, (line, other) in enumerate(itertools.zip_longest(log, expected), start=1):
        if line != other:
            return f"batch {number} is {line or 'missing'}, and not {other or 'the end'}"
    return ""


def nothing_changed(jobs: List[Job], killed: List[str]) -> List[str]:
    """Prints whether the second job, which was killed, saw what the first one saw, and returns what
    differs. `killed` is its log of that moment."""
    whole, broken = jobs
    resumed = next(each["resumed_behind"] for each in broken.results() if "resumed_behind" in each)
    print(f"{broken.name} was killed after batch {len(killed)} of {len(whole.lines())}, and "
          f"resumed after batch {resumed}, its last checkpoint")
    before = first_difference(killed, whole.lines()[:len(killed)])
    after = first_difference(broken.lines(), whole.lines())
    same = not before and not after
    print(f"  its batches: {'exactly' if same else 'NOT'} those of {whole.name}, row by row, with "
          "the same losses")
    weights = [job.results()[-1]["weights"] for job in jobs]
    alike = weights[0] == weights[1]
    print(f"  its model at the end: {'the same to the last bit' if alike else 'ANOTHER ONE'}")
    reasons = [f"{broken.name} saw other batches than {whole.name} {when}: {where}"
               for when, where in (("before it was killed", before), ("with its resume", after))
               if where]
    if not alike:
        reasons.append(f"the models of {whole.name} and {broken.name} differ at the end")
    return reasons


def all_shared(batches: int, counters: Dict[str, int]) -> List[str]:
    """Prints what the daemon did for jobs of so many batches, and returns what is not what one job
    takes."""
    assembled = counters["batches_assembled"]
    print(f"daemon: {assembled} batches assembled for {counters['batches_delivered']} delivered; "
          f"one job alone takes {batches}")
    if assembled == batches:
        return []
    return [f"the daemon assembled {assembled} batches, and {batches} are all there are: "
            + ("some were assembled again" if assembled > batches else "some were not counted")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Two training jobs that share every batch.")
    parser.add_argument("--bin", type=pathlib.Path, required=True, metavar="DIR",
                        help="folder of batchwright and batchwrightd")
    parser.add_argument("--sounds", type=pathlib.Path, default=prompts.SOUNDS, metavar="DIR",
                        help="a folder of audio for each language, with the same names in all")
    parser.add_argument("--short", action="store_true", help="less of everything: half a minute")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    built.use(options.bin)
    # Torch asks for the same memory at every step. By default, glibc returns it to the kernel in
    # between, which costs a fourth of all processor time.
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(32 << 20))
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(256 << 20))
    with tempfile.TemporaryDirectory(prefix="batchwright-jobs.") as work:
        reasons = run(options, pathlib.Path(work))
    if reasons:
        sys.exit("\n".join(f"two_jobs: {reason}" for reason in reasons))


if __name__ == "__main__":
    main()
