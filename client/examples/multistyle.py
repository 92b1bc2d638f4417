#!/usr/bin/python3
"""Multi-style training by example servers, after Variani et al. 2017.

    client/examples/multistyle.py --bin build/release/bin [--short]

Three daemons keep a third of the prompts each, as sound. They make features of it while the
training goes on, every epoch with other noise and another room for each prompt, one of 100 styles,
and serve them as truncated unrolling: 256 lanes of 20 frames, four of 10 ms stacked at each 30 ms,
targets 5 frames late. Two workers take whatever batch of any server is next, from queues, and train
one model together, without locks (Recht et al. 2011, Hogwild). A lane's state is kept beside the
model, so that a worker goes on where either of them left that lane; where both have parts of one
lane at once, the later part goes on from an older state, as such training does.

The same is done without styles. Then a table compares how many held-out frames of speech each model
gives the right language: clean, in the styles of the training (the noise test set of the paper),
and in noise and rooms that no training had, all of it loud. Stops and removes all it made.

Ends with 1 when the styles did not help in noise; the short form is too short to tell. Needs torch
and NumPy; styles.py makes the sound.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

import built
import prompts

PATIENCE = 120  # seconds for any one thing to happen
SERVERS, WORKERS = 3, 2
IGNORED = -100  # the target of frames that are not to be learned
TESTS = ("clean", "styles", "noisy")  # feeds of held-out prompts

CONFIG = """
[daemon]
endpoints = ["{endpoint}"]
curve_secret_key_file = "{work}/server.secret"
authorized_keys_file = "{work}/worker.public"
stats = ""
events = ""
assembly_threads = 1
memory = "512MiB"
"""

LANES = """
[[feed]]
name = "{name}"
dataset = "{work}/train-{server}"
slots = 8
journal = "{work}/{name}-{server}.journal"
[feed.plan]
order = "random"
seed = {seed}
lanes = {lanes}
unroll = {unroll}
"""

WHOLE = """
[[feed]]
name = "{name}"
dataset = "{work}/held-out"
slots = 8
[feed.plan]
order = "sorted"
size = 16
"""

FEATURES = """
[feed.features]
like = "variani"
sample_rate = 16000
aligned = ["targets"]
stack = 4
stride = 3
label_delay = 5
"""


class Form(NamedTuple):
    """How much is done."""

    most: int  # prompts of each language
    lanes: int
    epochs: int
    hidden: int


FULL = Form(10_000, 256, 14, 64)
SHORT = Form(40, 16, 3, 16)
UNROLL = 20


def style_of(noise: List[pathlib.Path], rooms: List[pathlib.Path], loud: bool) -> str:
    """Each kind of noise at each loudness in each room: 5 x 4 x 5 styles, and one without."""
    ranges = "[[0, 5]]" if loud else "[[0, 5], [5, 10], [10, 15], [15, 25]]"
    named = [", ".join(f'"{path}"' for path in paths) for paths in (noise, rooms)]
    text = (f"[[feed.style]]\nweight = 4\neach_noise = [{named[0]}]\neach_snr_db = {ranges}\n"
            f"each_rooms = [{named[1]}]\nroom_probability = 0.7\n")
    return text if loud else text + "[[feed.style]]\nweight = 1\n"


class Server:
    """A batchwrightd with a third of the training data; the first one has the held-out prompts."""

    def __init__(self, programs: pathlib.Path, work: pathlib.Path, number: int, form: Form,
                 styles: Dict[str, str]) -> None:
        self.number, self.programs = number, programs
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"
        self.log, self.config = work / f"server-{number}.log", work / f"server-{number}.toml"
        # Servers with one seed would plan alike; further apart than the epochs they stay different.
        place = {"work": work, "server": number, "seed": 1000 * (number + 1),
                 "lanes": form.lanes, "unroll": UNROLL}
        text = CONFIG.format(endpoint=self.endpoint, work=work)
        for name in ("plain", "styled"):
            text += LANES.format(name=name, **place) + FEATURES + styles.get(name, "")
        for name in TESTS if number == 0 else ():
            text += WHOLE.format(name=name, **place) + FEATURES + styles.get(name, "")
        self.config.write_text(text)
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.programs / "batchwrightd", "--config", self.config], stderr=log)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def free_port() -> int:
    import socket
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


@contextlib.contextmanager
def started_servers(programs: pathlib.Path, work: pathlib.Path, form: Form,
                    styles: Dict[str, str]) -> Iterator[List[Server]]:
    servers: List[Server] = []
    try:
        for number in range(SERVERS):
            servers.append(Server(programs, work, number, form, styles))
        yield servers
    finally:
        for server in servers:
            server.stop()


class Keys(NamedTuple):
    """CURVE keys, as Z85 text."""

    server_key: str
    public_key: str
    secret_key: str


def make_keys(programs: pathlib.Path, work: pathlib.Path) -> Keys:
    for name in ("server", "worker"):
        subprocess.run([programs / "batchwright", "keygen", "--into", work / name], check=True,
                       stdout=subprocess.PIPE)
    return Keys(*((work / name).read_text().split()[-1]
                  for name in ("server.public", "worker.public", "worker.secret")))


class Model(torch.nn.Module):
    """Stacked frames to a score for silence and each language, frame by frame."""

    def __init__(self, values: int, classes: int, hidden: int) -> None:
        super().__init__()
        # Without parameters of its own it is mean and variance normalisation, learned in passing.
        self.normalise = torch.nn.BatchNorm1d(values, affine=False)
        self.lstm = torch.nn.LSTM(values, hidden, batch_first=True)  # type: ignore[no-untyped-call]
        self.score = torch.nn.Linear(hidden, classes)

    def forward(self, frames: torch.Tensor, real: torch.Tensor,
                state: Any = None) -> Tuple[torch.Tensor, Any]:
        """frames [B, T, values], of which those where `real` [B, T] is False are padding. Scores
        [B, T, classes], and the state after the last frame."""
        known = torch.zeros_like(frames)
        known[real] = self.normalise(frames[real])
        outputs, state = self.lstm(known, state)
        return self.score(outputs), state


def real_frames(batch: Any) -> torch.Tensor:
    lengths = torch.from_numpy(batch.lengths)
    return torch.arange(batch["features"].shape[1])[None] < lengths[:, None]


def by_turns(subscriptions: List[Any]) -> Iterator[Tuple[int, Any]]:
    """Server and batch, until every server has no more. A server that is away, or slower, is passed
    over, and asked again in the next round."""
    from batchwright import Batch, TimedOutError
    left = list(range(len(subscriptions)))
    last = time.monotonic()
    while left:
        for server in list(left):
            try:
                got = subscriptions[server].next(timeout=0.02)
            except TimedOutError:
                if time.monotonic() - last > PATIENCE:
                    raise
                continue
            last = time.monotonic()
            if got is None:
                left.remove(server)
            elif isinstance(got, Batch):
                yield server, got


def connected(stack: contextlib.ExitStack, endpoint: str, keys: Keys) -> Any:
    import batchwright
    return stack.enter_context(batchwright.connect(endpoint, timeout=PATIENCE, reconnect=PATIENCE,
                                                   **keys._asdict()))


def work(worker: int, endpoints: List[str], keys: Keys, feed: str, epochs: int, together: Any,
         model: Model, states: torch.Tensor, counts: torch.Tensor) -> None:
    """One worker: a process of its own, which shares model, states [servers, 2, lanes, hidden] and
    counts [workers, servers] with the others. `together` is a barrier for all of them: each counts
    epochs from where it finds a queue, so none takes a batch before all have subscribed."""
    torch.manual_seed(worker)
    torch.set_num_threads(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with contextlib.ExitStack() as stack:
        subscriptions = [
            connected(stack, endpoint, keys).feed(feed).subscribe(mode="queue", window=2,
                                                                  epochs=epochs)
            for endpoint in endpoints]
        together.wait()
        for server, batch in by_turns(subscriptions):
            # The last lane's last frame has no variance to be normalised by.
            if int(real_frames(batch).sum()) > 1:
                optimizer.zero_grad()
                learn(model, batch, states[server]).backward()  # type: ignore[no-untyped-call]
                clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            counts[worker, server] += 1
            batch.release()  # done: it never comes again


def learn(model: Model, batch: Any, states: torch.Tensor) -> torch.Tensor:
    """The loss of one batch. `states` are those of its server's lanes, and are carried on."""
    frames, targets = batch.torch("features"), batch.torch("targets").long()
    begins = torch.from_numpy(batch.flags & 1).bool()
    state = states.clone()
    state[:, begins] = 0
    scores, after = model(frames, real_frames(batch), (state[:1], state[1:]))
    states.copy_(torch.cat([each.detach() for each in after]))
    targets = torch.where(real_frames(batch), targets, torch.full_like(targets, IGNORED))
    total = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(),
                                              ignore_index=IGNORED, reduction="sum")
    return torch.div(total, (targets != IGNORED).sum().clamp(min=1))


def recognised(model: Model, endpoint: str, keys: Keys, feed: str) -> float:
    """The share of speech frames whose language is found, silence among the wrong answers."""
    model.eval()
    right = frames = 0
    with torch.no_grad(), contextlib.ExitStack() as stack:
        for batch in connected(stack, endpoint, keys).feed(feed).epoch(0):
            targets = batch.torch("targets").long()
            scores, _ = model(batch.torch("features"), real_frames(batch))
            speech = real_frames(batch) & (targets > 0)
            right += int((scores.argmax(2) == targets)[speech].sum())
            frames += int(speech.sum())
    model.train()
    return right / frames


class Trained(NamedTuple):
    """What came of one training."""

    feed: str
    seconds: float
    counts: torch.Tensor  # [workers, servers], batches
    right: Dict[str, float]  # by test feed


def shared(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, in memory that processes share."""
    tensor.share_memory_()  # type: ignore[no-untyped-call]
    return tensor


def train(servers: List[Server], keys: Keys, feed: str, form: Form) -> Trained:
    with contextlib.ExitStack() as stack:
        asked = connected(stack, servers[0].endpoint, keys).feed(feed)
        values, = asked.field("features").shape
        classes = len(asked.field("targets").categories or ())
    torch.manual_seed(1)
    model = Model(values, classes, form.hidden).share_memory()
    states = shared(torch.zeros(SERVERS, 2, form.lanes, form.hidden))
    counts = shared(torch.zeros(WORKERS, SERVERS, dtype=torch.int64))
    together = torch.multiprocessing.get_context("spawn").Barrier(WORKERS, timeout=PATIENCE)
    started = time.perf_counter()
    # Forked processes would have this one's connections, which are no good there.
    torch.multiprocessing.spawn(  # type: ignore[attr-defined]
        work, ([server.endpoint for server in servers], keys, feed, form.epochs, together, model,
               states, counts), nprocs=WORKERS)
    seconds = time.perf_counter() - started
    right = {each: recognised(model, servers[0].endpoint, keys, each) for each in TESTS}
    return Trained(feed, seconds, counts, right)


def make_styles(links: pathlib.Path, folder: pathlib.Path) -> Dict[str, str]:
    """Text of [[feed.style]] for each feed that has some: held-out prompts in the styles that are
    trained on, and in other noise."""
    import styles
    speech = {side: [styles.read_wav(path) for path in sorted((links / side).rglob("*.wav"))[::7]]
              for side in prompts.SIDES}
    rooms = styles.write_rooms(folder, seed=1)
    train_noise = styles.write_noise(folder, "noise", speech["train"], seed=2)
    other_noise = styles.write_noise(folder, "other", speech["held-out"], seed=3)
    known = style_of(train_noise, rooms, loud=False)
    return {"styled": known, "styles": known,
            "noisy": style_of(other_noise, styles.write_rooms(folder / "other-rooms", seed=4),
                              loud=True)}


def run(options: argparse.Namespace, folder: pathlib.Path) -> bool:
    """Whether the styles helped, as far as this form shows."""
    import styles
    form = SHORT if options.short else FULL
    if options.lanes:
        form = form._replace(lanes=options.lanes)
    prompts.split(options.sounds, folder / "links")
    count = styles.write_prompts(folder / "links", folder, form.most)
    (folder / "other-rooms").mkdir()
    text = make_styles(folder / "links", folder)
    keys = make_keys(options.bin, folder)
    print(f"{count} prompts on {SERVERS} servers, {form.lanes} lanes of {UNROLL} frames, "
          f"{form.epochs} epochs, {WORKERS} workers", flush=True)
    with started_servers(options.bin, folder, form, text) as servers:
        both = [train(servers, keys, feed, form) for feed in ("plain", "styled")]
    print(f"{'trained on':12}{'seconds':>8}" + "".join(f"{name:>8}" for name in TESTS) +
          "   batches, by worker and server")
    for each in both:
        print(f"{each.feed:12}{each.seconds:8.1f}" +
              "".join(f"{each.right[name]:8.1%}" for name in TESTS) + f"   {each.counts.tolist()}")
    return options.short or both[1].right["noisy"] > both[0].right["noisy"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Multi-style training by example servers.")
    parser.add_argument("--bin", type=pathlib.Path, required=True, metavar="DIR",
                        help="folder of batchwright and batchwrightd")
    parser.add_argument("--sounds", type=pathlib.Path, default=prompts.SOUNDS, metavar="DIR",
                        help="a folder of WAV files for each language")
    parser.add_argument("--lanes", type=int, help="rows of a batch")
    parser.add_argument("--short", action="store_true", help="less of everything: half a minute")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    built.use(options.bin)
    with tempfile.TemporaryDirectory(prefix="batchwright-styles.") as folder:
        if not run(options, pathlib.Path(folder)):
            sys.exit(1)


if __name__ == "__main__":
    main()
