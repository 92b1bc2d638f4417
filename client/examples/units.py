"""Units of speech for sequence training: features of prompts with a unit for each frame.

Prompts have no phones written to them. So each language gets UNITS sounds of its own, which k-means
finds in the features of its training prompts, and a frame's unit is the nearest of its language. A
model that is to find them needs both how a frame sounds and, from what came before, the language.
"""

from __future__ import annotations

import pathlib
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import torch

import batchwright
import prompts
import styles
from batchwright import FieldSpec

BANDS = 24
STRIDE = 3  # frames of 10 ms that become one
UNITS = 8  # of each language
SHORTEST, LONGEST = 0.5, 4  # seconds
_SMOOTH = 3  # frames on either side that a frame is averaged with before it is given a unit
_ROUNDS = 12  # of k-means

Prompt = Tuple[str, int, torch.Tensor]  # key, language, features [T, BANDS]


class Statistics(NamedTuple):
    """What is known of the prompts that are trained on."""

    prompts: int
    mean: torch.Tensor  # [BANDS]
    deviation: torch.Tensor
    moves: torch.Tensor  # [K, K]: how likely a unit is behind another, frame by frame
    shares: torch.Tensor  # [K]: of frames


def _prompts(folder: pathlib.Path, most: int) -> Iterator[Prompt]:
    """Up to `most` prompts of each language, spread over all of them."""
    front_ends: Dict[int, Any] = {}
    for language, place in enumerate(sorted(each for each in folder.iterdir())):
        files = sorted(place.rglob("*.wav"))
        for file in files[::max(1, len(files) // most)][:most]:
            samples, rate = styles.read_wav(file)
            if SHORTEST <= len(samples) / rate <= LONGEST:
                if rate not in front_ends:
                    front_ends[rate] = batchwright.FrontEnd(rate, "variani", mel_bands=BANDS,
                                                            fmax=3800)
                yield (f"{place.name}/{file.relative_to(place)}", language,
                       torch.from_numpy(front_ends[rate](samples)))


def _smoothed(frames: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.avg_pool1d(frames.T[None], 2 * _SMOOTH + 1, 1, _SMOOTH,
                                          count_include_pad=False)[0].T


def _centres(frames: torch.Tensor) -> torch.Tensor:
    """UNITS means of frames [N, BANDS]."""
    centres = frames[torch.randperm(len(frames))[:UNITS]]
    for _ in range(_ROUNDS):
        nearest = torch.cdist(frames, centres).argmin(1)
        centres = torch.stack([frames[nearest == unit].mean(0) if (nearest == unit).any()
                               else centres[unit] for unit in range(len(centres))])
    return centres


def write(links: pathlib.Path, work: pathlib.Path, most: int) -> Statistics:
    """Makes the datasets train.data and held-out.data in `work`, of the folders that
    prompts.split() made: `features` [T, BANDS], a frame each 10 ms, and `targets` [T]."""
    torch.manual_seed(1)
    found = {side: list(_prompts(links / side, most)) for side in prompts.SIDES}
    every = torch.cat([frames for _, _, frames in found["train"]])
    mean, deviation = every.mean(0), every.std(0)
    languages = 1 + max(language for _, language, _ in found["train"])
    centres = [_centres(torch.cat([_smoothed((frames - mean) / deviation)[::STRIDE]
                                   for _, language, frames in found["train"]
                                   if language == number])) for number in range(languages)]
    moves = torch.full([languages * UNITS] * 2, 0.01)  # none is impossible
    for side, given in found.items():
        fields = {"features": FieldSpec("float32", (BANDS,)),
                  "targets": FieldSpec("int32", kind="aligned")}
        with batchwright.DatasetWriter(work / f"{side}.data", fields) as writer:
            for key, language, frames in given:
                targets = UNITS * language + torch.cdist(_smoothed((frames - mean) / deviation),
                                                         centres[language]).argmin(1)
                writer.add(key, features=frames, targets=targets.int())
                if side == "train":
                    units = targets[::STRIDE]
                    moves.index_put_((units[:-1], units[1:]), torch.ones(len(units) - 1),
                                     accumulate=True)
    return Statistics(len(found["train"]), mean, deviation, moves / moves.sum(1, True),
                      moves.sum(1) / moves.sum())
