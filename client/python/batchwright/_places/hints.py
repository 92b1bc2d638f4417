"""Warnings of what a program may not have meant by its iterations."""

from __future__ import annotations

from typing import Set

from .iteration import Iteration
from .place import Place
from .._waits import warn


class Hints:
    """Of one dataset; each is given once."""

    __slots__ = ("_given", "_again")

    def __init__(self) -> None:
        self._given: Set[str] = set()
        self._again = 0  # times in a row that set_epoch() named the epoch which was just over

    def _give(self, which: str, text: str) -> None:
        if which not in self._given:
            self._given.add(which)
            warn(text)

    def of_beginning_anew(self, before: Iteration, start: Place) -> None:
        """A new iteration begins where the one before it began, which was left."""
        if before.begins_anew:
            where = f"step {start.step} of " if start.is_within_epoch() else ""
            self._give("anew", f"this iteration begins {where}epoch {start.due_epoch} anew, of which an "
                       f"earlier one handed out {before.now.batches} batches. To go on after these, "
                       "call resume() before the loop; set_epoch() says that it is meant")

    def of_the_same_epoch(self, before: Iteration, epoch: int) -> None:
        """set_epoch() names the epoch that was just gone through. Once is a cell that is run again;
        twice is a loop with a constant."""
        if not before.is_complete:
            return
        self._again = self._again + 1 if before.start.due_epoch == epoch else 0
        if self._again > 1:
            self._give("same", f"set_epoch({epoch}) begins epoch {epoch} once more, which was gone "
                       "through twice: the same batches come in the same order. Training names the next "
                       "epoch, as by `for epoch in range(dataset.epoch, N): "
                       "dataset.set_epoch(epoch)`; evaluation that wants the same each time says so "
                       "by whole=True")
