#!/usr/bin/python3
"""Sequence training by example servers, after Variani et al. 2017.

    client/examples/example_servers.py --bin build/release/bin [--short]

Trains a recurrent model of units of speech (units.py): with cross entropy first, on features and
targets, and then with a criterion of whole sequences, the expected number of frames whose unit is
wrong (sMBR).

For the latter three example servers share the prompts, as workers of a queue. Each goes through
whole prompts with the last parameters that it fetched, computes the outer derivatives of the
criterion, those by the model's scores [T, units], and pushes them to a live feed; the features of
these frames are joined by the daemon. One worker takes both in lanes, 20 frames a step, goes through
its model once more, and propagates the derivatives back through these frames alone: it knows neither
the criterion nor a target. A lane's state is carried from step to step. After each step the worker
announces a version of its parameters. Derivatives that were computed with old ones are filtered:
prompts that are overly stale are dropped, and the most stale eighth of the rows of each step gets
weight 0.

The same is done without the filter, and with whole prompts in place of 20 frames. Prints for each
how many units are wrong in held-out prompts, before, after cross entropy, and after the sequence
criterion. Stops and removes all it made.

The worker's part is train(), and that of an example server serve().

Ends with 1, and says why, when derivatives or features came to the worker other than they were at
the server, when other rows had weight 0 than the most stale, or when the model did not learn.

Needs the package `batchwright`, torch and NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import multiprocessing
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

import built
import prompts
from derivatives_watch import Report, Watch, digest
from unit_model import (IGNORED, Model, Snapshot, fetch, first_model, frames_wrong, save, targets_of,
                        units_wrong)

SERVERS, SLOW = 3, 0.02  # seconds more for a batch, of the first server
TOGETHER = 8  # prompts that a server takes at once
REFRESHED = 4  # versions after which a server fetches the parameters again
STALEST = 12  # versions, with the filter
DELAY = 3  # frames by which targets are late
STACK = 4  # frames of 10 ms that the model is given for each of 30 ms
CLEARLY = 0.1  # by which fewer units are wrong after cross entropy
PATIENCE = 120  # seconds

CONFIG = """
[daemon]
endpoints = ["ipc://{work}/bw.sock"]
stats = ""

[[feed]]
name = "train"
dataset = "{work}/train.data"
journal = "{work}/{name}.journal"
[feed.plan]
order = "semi-sorted"
randomization = 0.1
size = {together}
shuffle = "batches"
{features}
[[feed]]
name = "frames"
dataset = "{work}/train.data"
[feed.plan]
order = "random"
{cut}
{features}
[[feed]]
name = "held-out"
dataset = "{work}/held-out.data"
[feed.plan]
order = "sorted"
size = 32
{features}
[[feed]]
name = "examples"
pool = "64MiB"
[feed.fields]
derivatives = {{ dtype = "float16", shape = [{units}] }}      # of the criterion, by the scores
features = {{ dtype = "float32", shape = [{values}], kind = "aligned" }}    # are joined
criterion = {{ dtype = "float32", kind = "scalar" }}          # what it is, a frame
digest = {{ dtype = "int64", kind = "scalar" }}               # of derivatives and features
[feed.live]
join = {{ from = "train", fields = ["features"] }}
step = {step}
max_length = {longest}
pool_sequences = {pool}
linger = "1s"
"""
FEATURES = """
[feed.features]
stack = {stack}
stride = {stride}
label_delay = {delay}
"""
FILTER = """
max_staleness = {stalest}
stale = "drop"
zero_most_stale = {zeroed}
"""


class Form(NamedTuple):
    """How much is done."""

    most: int  # prompts of each language
    lanes: int
    sequences: int  # of a step without lanes, which has about as many frames
    hidden: int
    frame_steps: int  # of cross entropy
    sequence_steps: int


FULL = Form(10_000, 256, 80, 64, 300, 100)
SHORT = Form(40, 32, 10, 32, 200, 100)
FRAME_RATE, SEQUENCE_RATE = 5e-3, 2e-4  # Adam's
UNROLL = 20


# ---- an example server -----------------------------------------------------------------------------


def examples_of(batch: Any, snapshot: Snapshot) -> List[Dict[str, Any]]:
    """What is pushed for each row of a batch."""
    with torch.no_grad():
        scores, _ = snapshot.model(batch.torch("features"))
    scores.requires_grad_()
    figures = frames_wrong(snapshot.model, scores, targets_of(batch))
    derivatives, = torch.autograd.grad(figures.sum(), scores)
    rows = []
    for i, length in enumerate(batch.lengths):
        each = derivatives[i, :length].half().numpy()
        rows.append({"derivatives": each, "criterion": figures[i].item() / length,
                     "digest": digest(each, batch["features"][i, :length])})
    return rows


def serve(endpoint: str, name: str, place: pathlib.Path, pause: float, told: Any) -> None:
    """An example server: a process that takes prompts until the feed of examples ends."""
    import batchwright
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker ends it
    torch.set_num_threads(1)
    snapshot: Optional[Snapshot] = None
    with batchwright.connect(endpoint) as connection, \
            connection.feed("train").subscribe(mode="queue", window=2, timeout=PATIENCE) as train, \
            connection.live("examples").producer(name) as out:
        batches = iter(train)
        while claim := out.claim(TOGETHER, timeout=PATIENCE):
            batch = next(batches)
            while snapshot is None or snapshot.version + REFRESHED <= claim.version:
                snapshot = fetch(place)  # what is announced may still be on its way
            time.sleep(pause)
            rows = [batch.row(i) for i in range(batch.sequences)]
            out.push_many(examples_of(batch, snapshot), of=rows, version=snapshot.version,
                          timeout=PATIENCE)
            if batch.sequences < TOGETHER:  # the last ones of an epoch
                out.abandon()
            batch.done()
        told.put(out.outcomes())


# ---- the worker ------------------------------------------------------------------------------------


def forward(model: Model, batch: Any, states: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Scores, and the states after the batch, of rows that go on where these are."""
    if states.shape[1] != batch.sequences:  # whole prompts: no row goes on
        states = torch.zeros(1, batch.sequences, states.shape[2])
    goes_on = torch.from_numpy(batch.flags & 1 == 0)
    scores, after = model(batch.torch("features"), states * goes_on[None, :, None])
    return scores, after.detach()


def train_frames(endpoint: str, form: Form, model: Model) -> None:
    """Cross entropy, on features and targets."""
    from batchwright.torch import BatchDataset
    optimizer = torch.optim.Adam(model.parameters(), FRAME_RATE)
    states = torch.zeros(1, 0, form.hidden)
    with BatchDataset(endpoint, "frames", timeout=PATIENCE) as dataset:
        epochs = (batch for epoch in itertools.count() for batch in dataset)
        for batch in itertools.islice(epochs, form.frame_steps):
            optimizer.zero_grad()
            scores, states = forward(model, batch, states)
            targets = targets_of(batch)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(),
                                                     ignore_index=IGNORED, reduction="sum")
            loss /= (targets != IGNORED).sum().clamp(min=1)
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def train(endpoint: str, form: Form, model: Model, watch: Watch, place: pathlib.Path) -> None:
    """The worker: a step for each batch of outer derivatives, and a version for each step."""
    from batchwright.torch import BatchDataset
    optimizer = torch.optim.Adam(model.parameters(), SEQUENCE_RATE)
    states = torch.zeros(1, 0, form.hidden)
    with BatchDataset(endpoint, "examples", timeout=PATIENCE) as dataset:
        save(model, 0, place)
        dataset.advance(0)
        for version, batch in enumerate(itertools.islice(dataset, form.sequence_steps), 1):
            watch.see(batch)
            optimizer.zero_grad()
            scores, states = forward(model, batch, states)
            counts = torch.from_numpy(batch.weights)[:, None, None] / batch.frames
            derivatives = batch.torch("derivatives").float()
            scores.backward(derivatives * counts)  # type: ignore[no-untyped-call]
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            dataset.advance(version)  # first: servers push it as soon as they can read it
            save(model, version, place)


# ---- three trainings -------------------------------------------------------------------------------


class Way(NamedTuple):
    """How it is trained."""

    name: str
    truncated: bool
    filtered: bool


WAYS = (Way("20 frames, filtered", True, True), Way("20 frames, all that comes", True, False),
        Way("whole prompts, filtered", False, True))


@contextlib.contextmanager
def served(programs: pathlib.Path, work: pathlib.Path, text: str) -> Iterator[str]:
    """The endpoint of a daemon with this configuration."""
    config, log = work / "batchwrightd.toml", work / "log"
    config.write_text(text)
    with log.open("w") as errors:
        daemon = subprocess.Popen([programs / "batchwrightd", "--config", config], stderr=errors)
    try:
        end = time.monotonic() + PATIENCE
        while "ready: " not in log.read_text():
            if daemon.poll() is not None or time.monotonic() > end:
                sys.exit(f"example_servers: batchwrightd did not start:\n{log.read_text()}")
            time.sleep(0.02)
        yield f"ipc://{work}/bw.sock"
    finally:
        daemon.terminate()
        daemon.wait()


def configuration(work: pathlib.Path, form: Form, way: Way, model: Model) -> Tuple[str, int]:
    """The daemon's, and how many rows of a step are to have weight 0."""
    import units
    cut = (f"lanes = {form.lanes}\nunroll = {UNROLL}" if way.truncated
           else f"size = {form.sequences}")
    step = (f"{{ lanes = {form.lanes}, unroll = {UNROLL} }}" if way.truncated
            else f"{{ sequences = {form.sequences} }}")
    zeroed = (form.lanes if way.truncated else form.sequences) // 8 if way.filtered else 0
    features = FEATURES.format(stack=STACK, stride=units.STRIDE, delay=DELAY)
    text = CONFIG.format(work=work, name=way.name, together=TOGETHER, features=features, cut=cut,
                         step=step,
                         units=len(model.shares), values=len(model.mean), pool=form.lanes,
                         longest=100 * units.LONGEST // units.STRIDE + DELAY + 1)
    return text + FILTER.format(stalest=STALEST, zeroed=zeroed) * way.filtered, zeroed


def run_servers(endpoint: str, place: pathlib.Path, learn: Callable[[], None]) -> Dict[str, int]:
    """Servers, as long as the worker learns: what became of the examples."""
    import batchwright
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch"])  # once for all servers
    told = processes.Queue()
    servers = [processes.Process(target=serve, daemon=True, args=(
        endpoint, f"server-{i}", place, SLOW if i == 0 else 0.0, told)) for i in range(SERVERS)]
    for server in servers:
        server.start()
    try:
        learn()
        with batchwright.connect(endpoint) as connection:
            connection.live("examples").end()
        outcomes = [told.get(timeout=PATIENCE) for _ in servers]
        return {name: sum(each[name] for each in outcomes) for name in outcomes[0]}
    finally:
        for server in servers:
            server.kill()


class Result(NamedTuple):
    """What came of a way."""

    wrong: List[float]  # share of held-out units: before, after cross entropy, after the sequences
    report: Report
    outcomes: Dict[str, int]  # of the examples


def run_way(programs: pathlib.Path, work: pathlib.Path, form: Form, way: Way, model: Model,
            known: Dict[bool, Any]) -> Result:
    """`known` is what cross entropy taught a model, by whether it was truncated."""
    text, zeroed = configuration(work, form, way, model)
    watch, place = Watch(zeroed), work / f"{way.name}.pt"
    with served(programs, work, text) as endpoint:
        wrong = [units_wrong(endpoint, model, DELAY)]
        if way.truncated not in known:
            train_frames(endpoint, form, model)
            known[way.truncated] = copy.deepcopy(model.state_dict())
        model.load_state_dict(known[way.truncated])
        wrong.append(units_wrong(endpoint, model, DELAY))
        outcomes = run_servers(endpoint, place,
                               lambda: train(endpoint, form, model, watch, place))
        return Result([*wrong, units_wrong(endpoint, model, DELAY)], watch.report, outcomes)


def problems(way: Way, result: Result, short: bool) -> Iterator[str]:
    for problem in result.report.problems[:3]:
        yield f"{way.name}: {problem}"
    if not result.report.compared:
        yield f"{way.name}: no prompt came whole"
    before, middle, after = result.wrong
    if middle > before - CLEARLY:
        yield f"{way.name}: cross entropy took what is wrong from {before:.1%} to {middle:.1%}"
    if after > before - CLEARLY or not short and after >= middle:
        yield f"{way.name}: the sequence criterion took what is wrong from {middle:.1%} to {after:.1%}"
    some = len(result.report.criterion) // 5
    first, last = (statistics.mean(part) for part in (result.report.criterion[:some],
                                                      result.report.criterion[-some:]))
    if last >= first:
        yield f"{way.name}: the sequence criterion went from {first:.3f} to {last:.3f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, metavar="DIR",
                        help="folder of batchwrightd")
    parser.add_argument("--sounds", type=pathlib.Path, default=prompts.SOUNDS, metavar="DIR",
                        help="a folder of WAV files for each language")
    parser.add_argument("--short", action="store_true", help="less of everything")
    return parser.parse_args()


def run(options: argparse.Namespace, work: pathlib.Path) -> List[str]:
    """Prints what came of it, and returns what is not as it should be."""
    import units
    form = SHORT if options.short else FULL
    prompts.split(options.sounds, work / "links")
    known = units.write(work / "links", work, form.most)
    print(f"{known.prompts} prompts, {len(known.shares)} units, {SERVERS} servers, {form.lanes} lanes "
          f"of {UNROLL} frames or {form.sequences} prompts a step, {form.frame_steps} steps of cross "
          f"entropy and {form.sequence_steps} of sequences")
    print(f"{'held-out units that are wrong':28}{'before':>8}{'cross entropy':>15}{'sequence':>10}"
          f"{'staleness':>11}{'zeroed':>8}{'dropped':>9}{'seconds':>9}", flush=True)
    found: List[str] = []
    learned: Dict[bool, Any] = {}
    for way in WAYS:
        began = time.monotonic()
        result = run_way(options.bin.resolve(), work, form, way, first_model(known, STACK, form.hidden), learned)
        before, middle, after = result.wrong
        print(f"{way.name:28}{before:9.1%}{middle:15.1%}{after:10.1%}"
              f"{statistics.mean(result.report.staleness):11.2f}{max(result.report.zeroed):8}"
              f"{result.outcomes['dropped_stale']:9}{time.monotonic() - began:9.1f}", flush=True)
        found += problems(way, result, options.short)
    return found


def main() -> None:
    options = arguments()
    built.use(options.bin.resolve())
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    with tempfile.TemporaryDirectory(prefix="bw-examples-") as folder:
        found = run(options, pathlib.Path(folder))
    if found:
        sys.exit("example_servers: " + "; ".join(found))


if __name__ == "__main__":
    main()
