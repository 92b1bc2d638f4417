"""Global steps: what a rank takes before it updates the model."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from .iteration import Batches, Iteration


class Step(Batches):
    """This rank's batches of one global step, one after the other; each is taken when it is asked
    for, so that no more are held than a loop holds. A batch of worst_first is a step of its own.

    Threads: as the dataset's iterators.
    """

    def __init__(self, dataset: Any, iteration: Iteration, batches: int) -> None:
        super().__init__(dataset, iteration)
        #: How many they are, world / ranks: a loss that is summed up over them is divided by it. Where
        #: a checkpoint was taken within the step, fewer are left.
        self.batches = batches
        self._before = iteration.now.batches
        self._is_left = False

    def _is_over(self) -> bool:
        now = self._iteration.now
        return self._is_left or now.batches > self._before and now.place.done == 0

    def leave(self) -> None:
        """Passes over what is left of it."""
        for _ in self:
            pass
        self._is_left = True


class Steps:
    """The iterator over the steps of an iteration. What a loop leaves of a step is skipped."""

    def __init__(self, dataset: Any, iteration: Iteration, batches: int) -> None:
        self._dataset = dataset
        self._iteration = iteration
        self._batches = batches
        self._step: Optional[Step] = None

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        if self._step is not None:
            self._step.leave()
        if not Batches(self._dataset, self._iteration).has_next():
            raise StopIteration
        self._step = Step(self._dataset, self._iteration, self._batches)
        return self._step
