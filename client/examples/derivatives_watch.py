"""Whether outer derivatives come to a worker as they were pushed, and the most stale for nothing."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np


def digest(derivatives: Any, features: Any) -> int:
    """A sum of bits, which tells by parts and in any order whether all are the same."""
    return int(np.ascontiguousarray(derivatives).view(np.uint16).sum(dtype=np.int64) +
               np.ascontiguousarray(features).view(np.uint32).sum(dtype=np.int64))


class Report(NamedTuple):
    """What came of a training."""

    criterion: List[float]  # of a step's prompts as the servers had it, a mean a frame
    staleness: List[float]  # of a step's rows, a mean
    zeroed: List[int]  # rows of weight 0 in each step
    compared: List[int]  # prompts whose digest was compared
    problems: List[str]


class Watch:
    """Looks at each batch for what may not be."""

    def __init__(self, most: int) -> None:
        self.most = most  # rows that are to have weight 0
        self.sums: Dict[Tuple[str, int], int] = {}  # of digests, where a prompt has more parts
        self.report = Report([], [], [], [], [])

    def see(self, batch: Any) -> None:
        real = [row for row, length in enumerate(batch.lengths) if length]
        self.compare(batch, real)
        self.report.criterion.append(float(batch["criterion"][real].mean()))
        staleness = batch.live_version - batch.versions
        self.report.staleness.append(float(staleness[real].mean()))
        weights = batch.weights
        self.report.zeroed.append(int((weights == 0).sum()))
        wanted = min(self.most, int((staleness > 0).sum()), len(weights) - 1)
        if self.report.zeroed[-1] != wanted or batch.zeroed != wanted:
            self.note(f"step {batch.step} has {self.report.zeroed[-1]} rows of weight 0, and "
                      f"{wanted} are to be")
        elif wanted and staleness[weights == 0].min() < staleness[weights != 0].max():
            self.note(f"step {batch.step} has a row of weight 0 that is not among the most stale")

    def compare(self, batch: Any, real: List[int]) -> None:
        producers, numbers, flags = batch.producers, batch.numbers, batch.flags
        for row in real:
            length, name = batch.lengths[row], (producers[row], int(numbers[row]))
            total = self.sums.pop(name, 0) + digest(batch["derivatives"][row, :length],
                                                    batch["features"][row, :length])
            if not flags[row] & 2:
                self.sums[name] = total
            elif total == batch["digest"][row]:
                self.report.compared.append(name[1])
            else:
                self.note(f"prompt {name[1]} of {name[0]} is not what was pushed")

    def note(self, problem: str) -> None:
        self.report.problems.append(problem)
