#!/usr/bin/python3
"""A whole training job: an LSTM that tells languages apart by their sound.

    languages.py --endpoint ipc:///run/batchwright/batchwright.sock --checkpoint job.pt [--resume]

Trains on the feed `train` and is tried on the feed `held-out`, both with `features` [T, bands] and
a scalar `label`, as `batchwright ingest audio --label-from-folder` makes them. Seeded, on the CPU:
two runs with the same settings end with the same weights, also when one of them was killed and
resumed. The checkpoint has all that this takes: model, optimizer, place in the data, random
numbers.

Needs the package `batchwright` and torch. two_jobs.py runs it, on prompts of which each language
has only one speaker: the model learns the speaker's voice as much as the language.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import pathlib
import sys
import time
from typing import Any, Counter, Dict, Tuple

import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

import batchwright
from batchwright.torch import BatchDataset, packed


class Listener(torch.nn.Module):
    """Frames of a prompt to a score for each language: one LSTM, whose states are averaged."""

    def __init__(self, bands: int, languages: int, hidden: int) -> None:
        super().__init__()
        # Without parameters of its own it is mean and variance normalisation, learned in passing;
        # packed frames are real ones, so padding has no part in it.
        self.normalise = torch.nn.BatchNorm1d(bands, affine=False)
        self.lstm = torch.nn.LSTM(bands, hidden)  # type: ignore[no-untyped-call]
        self.dropout = torch.nn.Dropout(0.2)
        self.score = torch.nn.Linear(hidden, languages)

    def forward(self, frames: PackedSequence) -> torch.Tensor:
        """[B, languages], in the order that the rows had before they were packed."""
        states, _ = self.lstm(frames._replace(data=self.normalise(frames.data)))
        padded, lengths = pad_packed_sequence(states)  # [L, B, hidden], zero after a row's end
        scores: torch.Tensor = self.score(self.dropout(padded.sum(0) / lengths[:, None]))
        return scores


class Job:
    """Model, optimizer, data, and what is noted of every batch."""

    def __init__(self, options: argparse.Namespace, connection: batchwright.Connection) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.data = BatchDataset(feed=options.feed, connection=connection,
                                 epochs=options.epochs)
        self.languages = self.data.feed.field("label").categories or ()
        bands, = self.data.feed.field("features").shape
        self.model = Listener(bands, len(self.languages), options.hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.rate)
        self.steps = 0
        self.loss = torch.zeros((), dtype=torch.float64)  # summed over the epoch's prompts
        self.prompts = 0  # of the epoch, until now
        self.log = (open(options.log, "a+b" if options.resume else "w+b") if options.log
                    else io.BytesIO())

    def learn(self, batch: batchwright.Batch) -> None:
        """One step of training, and a line in the log: epoch, step, rows, loss."""
        scores = self.model(packed(batch, "features"))
        loss = torch.nn.functional.cross_entropy(scores, batch.torch("label").long())
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.steps += 1
        self.loss += loss.item() * batch.sequences
        self.prompts += batch.sequences
        rows = hashlib.sha256(batch.ordinals.tobytes()).hexdigest()[:16]
        self.log.write(f"{batch.epoch} {batch.step} {rows} {float(loss).hex()}\n".encode())
        self.log.flush()

    def save(self) -> None:
        """Whole or not at all: a job may be killed in here, too."""
        state = {
            "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
            "data": self.data.state_dict(), "random": torch.get_rng_state(),
            "steps": self.steps, "loss": self.loss, "prompts": self.prompts,
            "log_bytes": self.log.tell(),
        }
        partial = f"{self.options.checkpoint}.partial"
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.options.checkpoint)

    def load(self) -> None:
        """Goes on after the last batch of the checkpoint; the log forgets what came later."""
        state = torch.load(self.options.checkpoint)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.data.load_state_dict(state["data"])
        torch.set_rng_state(state["random"])
        self.steps, self.loss, self.prompts = state["steps"], state["loss"], state["prompts"]
        self.log.truncate(state["log_bytes"])
        self.log.seek(0, os.SEEK_END)

    def run_epoch(self, epoch: int) -> Dict[str, Any]:
        """What is left of this epoch."""
        started, waited = time.perf_counter(), 0.0
        self.data.set_epoch(epoch)
        asked = started
        for batch in self.data:
            waited += time.perf_counter() - asked
            self.learn(batch)
            batch.release()  # what comes next finds the slot free
            if self.steps % self.options.every == 0:
                self.save()
            asked = time.perf_counter()
        seconds = time.perf_counter() - started
        result = {"epoch": epoch, "steps": self.steps, "prompts": self.prompts,
                  "loss": float(self.loss) / max(self.prompts, 1), "seconds": seconds,
                  "waited_seconds": waited}
        self.loss.zero_()
        self.prompts = 0
        return result


def held_out(model: torch.nn.Module, feed: batchwright.Feed) -> Tuple[int, int, int]:
    """Prompts recognised, prompts, and how many the best constant answer would get right."""
    right = 0
    frequency: Counter[int] = Counter()
    model.eval()
    with torch.no_grad():
        for batch in feed.epoch(0):
            labels = batch.torch("label").long()
            right += int((model(packed(batch, "features")).argmax(1) == labels).sum())
            frequency.update(labels.tolist())
    model.train()
    return right, sum(frequency.values()), max(frequency.values())


def digest(model: torch.nn.Module) -> str:
    """Of every bit of the weights."""
    every = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        every.update(name.encode() + tensor.numpy().tobytes())
    return every.hexdigest()[:16]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains an LSTM to tell languages apart.")
    parser.add_argument("--endpoint", help="the daemon's endpoint")
    parser.add_argument("--feed", default="train")
    parser.add_argument("--held-out", default="held-out", help="feed that the model is tested on")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=64, help="size of the LSTM's state")
    parser.add_argument("--rate", type=float, default=4e-3, help="Adam's learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="number of threads that torch uses")
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--every", type=int, default=10, help="batches between two checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--log", type=pathlib.Path, metavar="FILE",
                        help="file that gets a line for every batch")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    return parser.parse_args()


def say(result: Dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result), flush=True)
    elif "resumed_behind" in result:
        print(f"goes on after batch {result['resumed_behind']}, its checkpoint", flush=True)
    elif "epoch" in result:
        print("epoch {epoch}: {prompts} prompts, loss {loss:.3f}, {seconds:.1f} s, of which "
              "{waited_seconds:.2f} s waiting for batches".format(**result), flush=True)
    else:
        print("held-out prompts recognised: {right} of {prompts}, {accuracy:.1%}; the most "
              "frequent language alone: {majority:.1%}".format(**result))


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    with batchwright.connect(options.endpoint) as connection:
        trial = connection.feed(options.held_out)
        job = Job(options, connection)
        if trial.field("label").categories != job.languages:
            sys.exit(f'languages.py: feeds "{options.feed}" and "{options.held_out}" have other '
                     "languages")
        if options.resume:
            job.load()
            say({"resumed_behind": job.steps}, options.json)
        for epoch in range(job.data.epoch, options.epochs):
            say(job.run_epoch(epoch), options.json)
        job.save()
        right, prompts, majority = held_out(job.model, trial)
        say({"right": right, "prompts": prompts, "accuracy": right / prompts,
             "majority": majority / prompts, "steps": job.steps, "weights": digest(job.model)},
            options.json)


if __name__ == "__main__":
    main()
