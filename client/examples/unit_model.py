"""A recurrent model of units of speech, its criterion of whole sequences, and what it knows."""

from __future__ import annotations

import os
import pathlib
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np
import torch

IGNORED = -100  # the target of a frame that has none


class Model(torch.nn.Module):
    """Frames to a score for each unit, and what the sequence criterion knows of units."""

    mean: torch.Tensor
    scale: torch.Tensor
    moves: torch.Tensor
    shares: torch.Tensor

    def __init__(self, values: int, units: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(values))
        self.register_buffer("scale", torch.ones(values))
        self.register_buffer("moves", torch.ones(units, units))
        self.register_buffer("shares", torch.ones(units))
        self.gru = torch.nn.GRU(values, hidden, batch_first=True)  # type: ignore[no-untyped-call]
        self.score = torch.nn.Linear(hidden, units)

    def forward(self, frames: torch.Tensor,
                state: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
        """Frames [B, T, values]. Scores [B, T, units], and the state after the last frame."""
        outputs, after = self.gru((frames - self.mean) * self.scale, state)
        scores: torch.Tensor = self.score(outputs)
        return scores, after

    def likelihoods(self, scores: torch.Tensor) -> torch.Tensor:
        """How likely frames are for each unit, up to a factor for each frame."""
        logs = scores - self.shares.log()
        return (logs - logs.detach().amax(2, True)).exp()


def first_model(known: Any, stack: int, hidden: int) -> Model:
    """The same for all, of as many frames stacked."""
    torch.manual_seed(1)
    model = Model(stack * len(known.mean), len(known.shares), hidden)
    model.mean.copy_(known.mean.repeat(stack))
    model.scale.copy_(1 / known.deviation.repeat(stack))
    model.moves.copy_(known.moves)
    model.shares.copy_(known.shares)
    return model


def targets_of(batch: Any) -> torch.Tensor:
    targets = batch.torch("targets").long()
    return torch.where(torch.from_numpy(batch.mask), targets, torch.full_like(targets, IGNORED))


def frames_wrong(model: Model, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """How many frames of each row are wrong, as expected over all sequences of units, each as likely
    as its frames and moves are. Scores [B, T, units], targets [B, T]."""
    likely = model.likelihoods(scores)
    real = targets != IGNORED
    right = torch.nn.functional.one_hot(targets.clamp(min=0), scores.shape[2]) * real[:, :, None]
    # For sequences that are at a unit now: how likely they are, and how many frames are right.
    at = model.shares.expand(len(scores), -1)
    gained = torch.zeros_like(at)
    for t in range(scores.shape[1]):
        came = at @ model.moves
        gains = (at * gained) @ model.moves / came + right[:, t]
        now = came * likely[:, t]
        at = torch.where(real[:, t, None], now / now.sum(1, True), at)
        gained = torch.where(real[:, t, None], gains, gained)
    return real.sum(1) - (at * gained).sum(1)


def save(model: Model, version: int, place: pathlib.Path) -> None:
    """Whole, or not at all: servers read it at any time."""
    partial = place.with_suffix(".partial")
    torch.save({"model": model.state_dict(), "version": version}, partial)
    os.replace(partial, place)


class Snapshot(NamedTuple):
    """What a server works with."""

    version: int
    model: Model


def fetch(place: pathlib.Path) -> Snapshot:
    saved = torch.load(place)
    state = saved["model"]
    model = Model(len(state["mean"]), len(state["shares"]), state["score.weight"].shape[1])
    model.load_state_dict(state)
    return Snapshot(saved["version"], model)


def likeliest(model: Model, scores: torch.Tensor) -> List[int]:
    """The units of frames [T, units] in the likeliest of all sequences (Viterbi)."""
    likely = model.likelihoods(scores[None])[0].log()
    moves, best, origins = model.moves.log(), model.shares.log() + likely[0], []
    for frame in likely[1:]:
        best, origin = (best[:, None] + moves).max(0)
        best = best + frame
        origins.append(origin.tolist())
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(origin[path[-1]])
    return path[::-1]


def units_wrong(endpoint: str, model: Model, delay: int) -> float:
    """Edits that lead from the units that are found to those of held-out prompts, for each of the
    latter; as word error rates count words. Targets are `delay` frames late."""
    import batchwright
    wrong = all_units = 0
    with torch.no_grad(), batchwright.connect(endpoint) as connection:
        for batch in connection.feed("held-out").epoch(0):
            scores, _ = model(batch.torch("features"))
            for row, length in enumerate(batch.lengths):
                right = runs(batch["targets"][row, delay:length].tolist())
                found = runs(likeliest(model, scores[row, delay:length]))
                wrong += edits(found, right)
                all_units += len(right)
    return wrong / all_units

def runs(units: List[int]) -> List[int]:
    """A unit for as many frames as follow each other with it."""
    return [unit for i, unit in enumerate(units) if i == 0 or unit != units[i - 1]]


def edits(found: List[int], right: List[int]) -> int:
    """Insertions, deletions and substitutions that lead from one to the other."""
    place, wanted = np.arange(len(right) + 1), np.asarray(right)
    row = place
    for unit in found:
        least = np.append(row[0] + 1, np.minimum(row[:-1] + (wanted != unit), row[1:] + 1))
        row = np.minimum.accumulate(least - place) + place
    return int(row[-1])
