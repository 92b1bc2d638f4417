#!/usr/bin/python3
"""Asynchronous reinforcement learning: actors push groups of rollouts while a trainer learns.

    client/examples/rollouts.py --bin build/release/bin [--short]

Starts a daemon with two live feeds, of which one paces its actors and the other drops what has
grown too stale. On each of them three actors, one slower than the others, answer prompts with the
last policy they found, in groups of 16, and a trainer takes 4 groups a step (GRPO: a rollout's
advantage is its reward beside those of its group). After each step it announces a version, and
then writes the policy for the actors. Prints the reward, what was dropped and how stale a step's
rows were. What the first feed delivers is recorded, and at the end the training is done once more,
on the record as an ordinary feed, without actors. Stops and removes all it made.

The task: begin the answer with the prompt's token three times, and then end it. The trainer's part
is grpo_loss() and train(), the actors' is act().

Ends with 1, and says why, when a group was torn, a row was staler than allowed, pacing dropped
what was claimed, the policy learned nothing, or a loss on the record was another one.

Needs the package `batchwright` and torch.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import multiprocessing
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import built
import torch

TOKENS, END, FIRST = 10, 0, 9  # the vocabulary's size; ends an answer; begins one
WANTED = 3  # times that the answer has the prompt's token
LONGEST = 12
GROUP, GROUPS = 16, 4
STALEST = 2  # versions
ACTORS, SLOW = 3, 0.005  # seconds a token, of the first actor
FEEDS = ("pace", "drop")
CLEARLY = 0.1  # by which the reward grows
PATIENCE = 600  # seconds

FEED = """
[[feed]]
name = "{stale}"
pool = "16MiB"
slots = 8
[feed.fields]
tokens = {{ dtype = "int32" }}                          # prompt, then the answer
logprobs = {{ dtype = "float32", kind = "aligned" }}    # of the policy that gave it; 0 for the prompt
advantage = {{ dtype = "float32", kind = "scalar" }}
reward = {{ dtype = "float32", kind = "scalar" }}
[feed.live]
step = {{ groups = {groups} }}
groups = "step"
max_length = {longest}
max_staleness = {stalest}
stale = "{stale}"
"""
RECORD = 'record = "{work}/record"\n'
REPLAY = """
[[feed]]
name = "replay"
dataset = "{work}/record"
slots = 8
[feed.plan]
order = "file"
cut = "file"
order_file = "{work}/record.order"
"""


class Policy(torch.nn.Module):
    """Scores for the next token, [B, T, TOKENS], of answers so far, [B, T]."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(TOKENS, 16)
        self.gru = torch.nn.GRU(16, 32, batch_first=True)  # type: ignore[no-untyped-call]
        self.score = torch.nn.Linear(32, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.score(self.gru(self.embed(tokens))[0])
        return scores


class Rollout(NamedTuple):
    tokens: List[int]
    logprobs: List[float]
    reward: float


def answers(policy: Policy, prompt: int, count: int) -> List[Rollout]:
    """What the policy answers to a prompt, as often as that."""
    tokens = torch.tensor([[FIRST, prompt]] * count)
    logprobs = torch.zeros(count, 2)
    with torch.no_grad():
        while tokens.shape[1] < LONGEST:
            chances = torch.log_softmax(policy(tokens)[:, -1], -1)
            drawn = torch.multinomial(chances.exp(), 1)
            tokens = torch.cat([tokens, drawn], 1)
            logprobs = torch.cat([logprobs, chances.gather(1, drawn)], 1)
    return [judged(row, chances) for row, chances in zip(tokens.tolist(), logprobs.tolist())]


def judged(tokens: List[int], logprobs: List[float]) -> Rollout:
    """An answer up to its end, and its reward, 0 to 1."""
    answer = tokens[2:]
    length = answer.index(END) if END in answer else len(answer)
    hits = sum(token == tokens[1] for token in answer[:WANTED])
    reward = hits / WANTED - 0.1 * abs(length - WANTED)
    end = min(len(tokens), length + 3)
    return Rollout(tokens[:end], logprobs[:end], max(0.0, reward))


def act(endpoint: str, feed: str, name: str, weights: pathlib.Path, pause: float,
        told: Any) -> None:
    """An actor: a process that answers prompts until the feed ends."""
    import batchwright
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer ends it
    torch.set_num_threads(1)
    torch.manual_seed(sum(name.encode()))
    policy, version, draw = Policy(), -1, random.Random(name)
    with batchwright.connect(endpoint) as connection:
        with connection.live(feed).producer(name) as out:
            while claim := out.claim(GROUP, timeout=PATIENCE):
                while version < claim.version:  # announced, and on its way
                    saved = torch.load(weights)
                    policy.load_state_dict(saved["policy"])
                    version = saved["version"]
                rollouts = answers(policy, draw.randint(1, FIRST - 1), GROUP)
                rewards = torch.tensor([each.reward for each in rollouts])
                advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-3)
                group = out.group(GROUP)
                for rollout, advantage in zip(rollouts, advantages.tolist()):
                    time.sleep(pause * len(rollout.tokens))
                    out.push(tokens=rollout.tokens, logprobs=rollout.logprobs,
                             advantage=advantage, reward=rollout.reward, version=version,
                             group=group, timeout=PATIENCE)
            told.put(out.outcomes())


def grpo_loss(policy: Policy, batch: Any) -> torch.Tensor:
    """The clipped objective of PPO with the advantages of groups, a mean over rows that count."""
    tokens = batch.torch("tokens").long()
    before, lengths = batch.torch("logprobs"), torch.from_numpy(batch.lengths.astype("int64"))
    now = torch.log_softmax(policy(tokens[:, :-1]), -1).gather(2, tokens[:, 1:, None])[:, :, 0]
    place = torch.arange(1, tokens.shape[1])[None]
    counts = ((place >= 2) & (place < lengths[:, None])).float()  # neither prompt nor padding
    ratio = (now - before[:, 1:]).exp()
    advantage = batch.torch("advantage").reshape(-1, 1)
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    rows = (gain * counts).sum(1) / counts.sum(1)
    weights = torch.ones(len(rows))  # as they are where a batch has none
    if batch.weights is not None:
        weights = torch.from_numpy(batch.weights)
    return -(rows * weights).sum() / weights.sum()


def save(policy: Policy, version: int, weights: pathlib.Path) -> None:
    """Whole, or not at all: actors read it at any time."""
    partial = weights.with_suffix(".partial")
    torch.save({"policy": policy.state_dict(), "version": version}, partial)
    os.replace(partial, weights)


class Report(NamedTuple):
    """What came of a training; of one on a record, the losses."""

    losses: List[float]
    rewards: List[float]  # a mean for each step
    staleness: List[int]  # of each row
    torn: List[int]  # steps that have a part of a group

    def note(self, batch: Any) -> None:
        sizes = collections.Counter(batch.groups.tolist())
        self.rewards.append(float(batch["reward"].mean()))
        self.staleness.extend((batch.live_version - batch.versions).tolist())
        self.torn.extend([batch.step] * any(size != GROUP for size in sizes.values()))

    def ends(self) -> Tuple[float, float]:
        """Mean reward of the first steps and of the last."""
        some = max(1, len(self.rewards) // 5)
        return statistics.mean(self.rewards[:some]), statistics.mean(self.rewards[-some:])


def train(endpoint: str, feed: str, steps: int, weights: Optional[pathlib.Path]) -> Report:
    """A trainer: a step for each batch, and a version for each step, unless there are no actors
    and so no `weights` to be written."""
    from batchwright.torch import BatchDataset
    torch.manual_seed(1)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    report = Report([], [], [], [])
    with BatchDataset(endpoint, feed, timeout=PATIENCE) as dataset:
        if weights:
            dataset.advance(0)
            save(policy, 0, weights)
        for version, batch in enumerate(dataset, 1):
            optimizer.zero_grad()
            loss = grpo_loss(policy, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            report.losses.append(loss.item())
            if weights:
                report.note(batch)
                dataset.advance(version)  # first: actors push it as soon as they can read it
                save(policy, version, weights)
            if version == steps:
                break
    return report


def run_feed(endpoint: str, feed: str, steps: int,
             work: pathlib.Path) -> Tuple[Report, Dict[str, int]]:
    """Actors and a trainer on a feed: what the trainer reports, and what became of the rollouts."""
    import batchwright
    weights = work / f"{feed}.pt"
    processes = multiprocessing.get_context("spawn")
    told = processes.Queue()
    actors = [processes.Process(target=act, daemon=True, args=(
        endpoint, feed, f"actor-{i}", weights, SLOW if i == 0 else 0.0, told)) for i in range(ACTORS)]
    for actor in actors:
        actor.start()
    try:
        report = train(endpoint, feed, steps, weights)
        with batchwright.connect(endpoint) as connection:
            connection.live(feed).end()
        total: Dict[str, int] = collections.Counter()
        for _ in actors:
            total.update(told.get(timeout=PATIENCE))
        return report, total
    finally:
        for actor in actors:
            actor.kill()


@contextlib.contextmanager
def served(programs: pathlib.Path, work: pathlib.Path, feeds: str) -> Iterator[str]:
    """The endpoint of a daemon with these feeds."""
    endpoint, config, log = f"ipc://{work}/bw.sock", work / "batchwrightd.toml", work / "log"
    config.write_text(f'[daemon]\nendpoints = ["{endpoint}"]\nstats = ""\n' + feeds)
    with log.open("w") as errors:
        daemon = subprocess.Popen([programs / "batchwrightd", "--config", config], stderr=errors)
    try:
        end = time.monotonic() + PATIENCE
        while "ready: " not in log.read_text():
            if daemon.poll() is not None or time.monotonic() > end:
                sys.exit(f"rollouts: batchwrightd did not start:\n{log.read_text()}")
            time.sleep(0.02)
        yield endpoint
    finally:
        daemon.terminate()
        daemon.wait()


def live_feeds(work: pathlib.Path) -> str:
    feeds = [FEED.format(stale=stale, groups=GROUPS, longest=LONGEST, stalest=STALEST)
             for stale in FEEDS]
    feeds[0] += RECORD.format(work=work)
    return "".join(feeds)


def problems(feed: str, report: Report, total: Dict[str, int]) -> Iterator[str]:
    first, last = report.ends()
    if report.torn:
        yield f"{feed}: steps {report.torn} have a part of a group"
    if max(report.staleness) > STALEST:
        yield f"{feed}: a row is {max(report.staleness)} versions old, and {STALEST} is allowed"
    if feed == "pace" and total["dropped_stale"]:
        yield f"{feed}: {total['dropped_stale']} rollouts were dropped"
    if last < first + CLEARLY:
        yield f"{feed}: the reward went from {first:.2f} to {last:.2f}"


def show(feed: str, report: Report, total: Dict[str, int], seconds: float) -> None:
    first, last = report.ends()
    made = sum(total[name] for name in ("waiting", "delivered", "done", "dropped_stale", "abandoned"))
    print(f"{feed:5} {len(report.losses):6} {seconds:8.1f} {first:7.2f} to {last:.2f} "
          f"{statistics.mean(report.staleness):9.2f} {made:9} {total['dropped_stale']:8}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of batchwrightd")
    parser.add_argument("--short", action="store_true", help="fewer steps")
    options = parser.parse_args()
    programs = options.bin.resolve()
    built.use(programs)
    torch.set_num_threads(1)
    found: List[str] = []
    with tempfile.TemporaryDirectory(prefix="bw-rollouts-") as folder:
        work, steps, losses = pathlib.Path(folder), 40 if options.short else 200, {}
        with served(programs, work, live_feeds(work)) as endpoint:
            print("stale  steps  seconds      reward    staleness  rollouts  dropped")
            for feed in FEEDS:
                began = time.monotonic()
                report, total = run_feed(endpoint, feed, steps, work)
                show(feed, report, total, time.monotonic() - began)
                found += problems(feed, report, total)
                losses[feed] = report.losses
        with served(programs, work, REPLAY.format(work=work)) as endpoint:
            again = train(endpoint, "replay", steps, None).losses
        same = sum(a == b for a, b in zip(again, losses[FEEDS[0]]))
        print(f"on the record of {FEEDS[0]}: {same} of {steps} losses are the same")
        found += [f"{steps - same} losses on the record are others"] * (same != steps)
    if found:
        sys.exit("rollouts: " + "; ".join(found))


if __name__ == "__main__":
    main()
