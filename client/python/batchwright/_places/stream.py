"""The subscription of a BatchDataset, which serves one iteration after the other."""

from __future__ import annotations

import math
from typing import Any, List, Union

from .place import Place
from .._copied import CopiedBatch
from .._ranks import Share
from ..batch import Batch
from ..errors import InvalidArgumentError
from ..subscription import Subscription
from ..values import EpochEnd, Grant, UpcomingBatch

Event = Union[Batch, EpochEnd, None]  # None: the counted epochs are over
NOTHING: Any = object()


def check_share(feed: str, world: int, share: Share, start: Place) -> None:
    """Errors: InvalidArgumentError, which says what to set."""
    ranks = share[1]
    if world % ranks:
        raise InvalidArgumentError(
            f'{ranks} ranks do not divide the world of {world} of feed "{feed}": set '
            f"world = {math.lcm(world, ranks)} in its [feed.plan] (a job may go on with any "
            "number of ranks that divides world, so take the most there will be), or have each "
            "rank read all of it, by whole=True")
    if start.done and start.ranks != ranks:
        raise InvalidArgumentError(
            f"the state is from the middle of a step that {start.ranks} ranks shared; "
            f"{ranks} can go on from a step's end only")


def _check_grant(feed: str, grant: Grant, start: Place) -> None:
    """Errors: InvalidArgumentError: there is no such place, or a loop cannot go on there."""
    if grant.window < 2:
        raise InvalidArgumentError(f'feed "{feed}" grants a window of 1, and a loop holds one batch '
                                   "while it waits for the next: it needs more slots, or a larger "
                                   "max_window")
    if start.done >= grant.batches_per_step:
        raise InvalidArgumentError(
            f'feed "{feed}": done is {start.done} in the state; it is 0 to '
            f"{grant.batches_per_step - 1}, for a step has {grant.batches_per_step} batches here")
    if start.ended and start.step != grant.steps:
        raise InvalidArgumentError(
            f'feed "{feed}": the state is of the end of epoch {start.epoch}, at step {start.step}; '
            f"the epoch has {grant.steps}")


class Stream:
    """A subscription, and the place of its next event.

    Threads: one at a time, but close() from any.
    """

    def __init__(self, subscription: Subscription, start: Place, share: Share, feed: str,
                 copies: bool) -> None:
        """Takes over the subscription, which is one to that place of the feed. `copies`: its batches
        are copied. Errors: InvalidArgumentError, and the subscription is closed."""
        try:
            _check_grant(feed, subscription.grant, start)
        except InvalidArgumentError:
            subscription.close()
            raise
        self.subscription = subscription
        self._copies = copies
        self.share = share
        self.at = start  # this very object until a batch is taken
        self.coming: Any = NOTHING  # the next event, which came and was not taken
        self._start = start
        # A subscription starts with a whole step, and before the end of an epoch.
        self._to_pass = start.done + (1 if start.ended else 0)
        self._closed = False

    @property
    def is_touched(self) -> bool:
        """Whether a batch was taken."""
        return self.at is not self._start

    def stands_at(self, place: Place) -> bool:
        """Whether the first event there is its next one, and no other than the end of an epoch
        comes before."""
        return not self._closed and (self.at is place or self._ends_at(place))

    def _ends_at(self, place: Place) -> bool:
        return place.ended and self.is_touched and self.at == place._replace(ended=False)

    def go_to(self, place: Place) -> None:
        """Passes the end of an epoch, should it lie before a place that it stands_at()."""
        if self.at is not place:
            self.at, self._to_pass = place, self._to_pass + 1

    def look(self) -> Event:
        """The next event, as Subscription.next() gives it. It stays the next one until it is taken:
        a wait that is interrupted has no effect."""
        while True:
            event = self.coming
            if event is NOTHING:
                self.coming = self.subscription.next()
            elif self._to_pass == 0 or event is None:
                if not self._copies or event.__class__ is not Batch:
                    return event  # type: ignore[no-any-return]
                self.coming = CopiedBatch(event)  # an interrupt leaves the batch, to be copied then
                event.release()
            else:
                if isinstance(event, Batch):
                    event.release()
                self.coming, self._to_pass = NOTHING, self._to_pass - 1

    def upcoming(self, n: int) -> List[UpcomingBatch]:
        """The next batches, as Subscription.upcoming() has them."""
        event = self.look() if self._to_pass else self.coming
        batches = self.subscription.upcoming(n)
        if isinstance(event, Batch):
            batches.insert(0, UpcomingBatch(event.epoch, event.step, event.index, event.sequences,
                                            event.batch_length, event.frames, event.rehearsal))
        return batches[:n]

    def close(self) -> None:
        """Ends it; a look() in another thread raises ClosedError. Twice is fine."""
        self._closed = True
        self.coming = NOTHING
        self.subscription.close()
