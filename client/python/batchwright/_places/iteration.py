"""An iteration over a BatchDataset: its place, and its iterator."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .place import Place
from .stream import NOTHING, Event, Stream
from ..batch import Batch
from ..errors import ClosedError
from ..values import EpochEnd

_A_LOOK = 1  # so many batches may be looked at before a loop, and nobody is warned


class Now(NamedTuple):
    """Where an iteration is: what belongs together, and is replaced by one assignment."""

    finished: Place  # after the last batch that was released, or followed by the next
    place: Place  # after the last batch that was handed out
    latest: Optional[Batch] = None  # the batch between the two
    batches: int = 0  # that were handed out, those of worst_first included

    def settled(self) -> Now:
        """The same, when the batch between the two may have been released."""
        if self.latest is None or not self.latest.released:
            return self
        return self._replace(finished=self.place, latest=None)

    def after(self, event: Event, stream: Stream) -> Now:
        """The same after this event, which is the next one."""
        if isinstance(event, Batch):
            place = self.place.after(event, stream.subscription.terms, stream.share[1])
            return self._replace(place=place, latest=event, batches=self.batches + 1)
        place = self.place
        if isinstance(event, EpochEnd) and place.due_epoch != place.epoch:  # it had no batch
            place = Place(None, event.epoch, 0)
        place = place._replace(ended=True)
        return self._replace(finished=place, place=place, latest=None)


class Iteration:
    """The place of one iteration: where it began, and where it is.

    Threads: one at a time advances it. Any of them, and signal handlers, read it at any time.
    """

    __slots__ = ("start", "now", "is_taken", "steps", "ended_by")

    def __init__(self, start: Place) -> None:
        self.start = start
        self.now = Now(start, start)
        self.is_taken = False  # by an iterator
        self.steps: Optional[int] = None  # of its epoch; None: no batch was handed out
        self.ended_by = ""  # why its iterator is valid no longer

    @property
    def place(self) -> Place:
        return self.now.place

    @property
    def is_over(self) -> bool:
        """Whether it has come to its epoch's end."""
        return self.place.ended and self.place is not self.start

    @property
    def is_complete(self) -> bool:
        """Whether all batches of its epoch were handed out, whether or not its end was seen."""
        place = self.place
        return self.is_over or place is not self.start and (place.step, place.done) == (self.steps, 0)

    @property
    def begins_anew(self) -> bool:
        """Whether what was trained on, and not only looked at, comes again with follower()."""
        return self.now.batches > _A_LOOK and not self.is_complete

    def follower(self) -> Place:
        """Where the next iteration begins unless the program asks for something else: after the
        epoch, or in it where this iteration began."""
        if self.is_complete:
            return self.place if self.place.ended else self.place._replace(ended=True)
        if self.start.ended and self.place is not self.start:
            return Place(None, self.start.due_epoch, 0)  # whose data may be others by now
        return self.start

    def finish(self) -> None:
        """The program is done with the batch that was handed out last."""
        self.now = self.now._replace(finished=self.now.place, latest=None)

    def end(self, by: str) -> None:
        """Ends its iterator, and holds no batch from here on."""
        self.is_taken = True
        self.ended_by = self.ended_by or by
        self.now = self.now.settled()._replace(latest=None)

    def check_valid(self) -> None:
        """Errors: ClosedError, which says why."""
        if self.ended_by:
            raise ClosedError(f"this iterator ended with {self.ended_by}: of a dataset's iterators "
                              "only the latest one is valid. After resume() the next one goes on "
                              "where the last one was left")


class Batches:
    """The iterator of an iteration. After an error the next call tries again.

    Threads: one at a time; the iterators of a dataset wait for each other's calls to end.
    """

    def __init__(self, dataset: Any, iteration: Iteration) -> None:
        self._dataset = dataset
        self._iteration = iteration

    def __iter__(self) -> Batches:
        return self

    def _is_over(self) -> bool:
        return self._iteration.is_over

    def has_next(self) -> bool:
        """Whether a batch follows; waits for it, and leaves it where it is. Errors: as next()."""
        iteration = self._iteration
        while not iteration.is_over:
            stream, event, now = self._dataset._look(iteration)
            if now.latest is not None:
                return True
            if stream.coming is event and not iteration.ended_by:  # as below
                stream.at, stream.coming, iteration.now = now.place, NOTHING, now
        return False

    def __next__(self) -> Batch:
        iteration = self._iteration
        while not self._is_over():
            stream, event, now = self._dataset._look(iteration)
            # No call stands between these lines, so neither a signal's handler nor another thread
            # comes between: an event is handed out with its place, or stays the next one.
            if stream.coming is event and not iteration.ended_by:
                stream.at, stream.coming, iteration.now = now.place, NOTHING, now
                if now.latest is not None:
                    return event  # type: ignore[no-any-return]
        raise StopIteration
