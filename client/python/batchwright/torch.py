"""A dataset for torch's DataLoader, and for loops without one.

    from batchwright.torch import BatchDataset, packed

    dataset = BatchDataset("ipc:///run/batchwright/batchwright.sock", "train")
    loader = DataLoader(dataset, batch_size=None, num_workers=0)  # or `dataset` itself
    for epoch in range(dataset.epoch, 10):
        dataset.set_epoch(epoch)
        for batch in loader:
            loss = model(packed(batch, "features"), batch.torch("label"))
            ...
            torch.save({"model": model.state_dict(), "data": dataset.state_dict()}, path)
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

from . import _torch_views  # says what to install when torch is missing
from . import _abi
from ._ranks import resolve
from .batch import Batch
from .connection import Connection, connect
from .errors import ClosedError, InvalidArgumentError, UnsupportedError
from .layouts import Ragged, batch_major, lengths, packed, ragged, time_major
from .subscription import Subscription
from .values import EpochEnd, fingerprint_text

import torch.utils.data

__all__ = ["BatchDataset", "Ragged", "batch_major", "lengths", "packed", "ragged", "time_major"]

del _torch_views
_STATE_VERSION = 1
_INSTEAD = ("write DataLoader(dataset, batch_size=None, num_workers=0), or iterate over the "
            "dataset itself: the daemon is the worker, and another process could only add a copy")


class _Place(NamedTuple):
    """Where to go on."""

    plan: Any  # the epoch's fingerprint, as text or as the C library has it; None: whatever it is
    epoch: int
    step: int
    done: int = 0  # batches of this step that are done already
    ended: bool = False  # the epoch's end was passed: the next one is due

    @property
    def due_epoch(self) -> int:
        return self.epoch + 1 if self.ended else self.epoch


class BatchDataset(torch.utils.data.IterableDataset):
    """Finished batches of a feed. Each iteration is one epoch, or what is left of it.

    An iteration goes on behind the last batch that was asked for: a loop that was left in the
    middle of an epoch is carried on by the next one. `set_epoch()` goes to an epoch's start.

    A batch counts as finished when the next one is asked for, or when it was released: a checkpoint
    that is taken in the loop's body, before `batch.release()`, has that batch still to come.

    Threads: one at a time. Processes: a DataLoader's workers and forked children are refused.
    """

    def __init__(self, endpoint: Any = None, feed: str = "train", *, rank: Optional[int] = None,
                 ranks: Optional[int] = None, window: int = 4, epoch: int = 0,
                 epochs: int = 0, timeout: float = 60.0, worst_first: int = 0,
                 connection: Optional[Connection] = None, **connecting: Any) -> None:
        """Connects to the daemon, and finds the feed; batches are prepared once they are asked for.

        rank, ranks: this process's share of every global step; without them RANK and WORLD_SIZE of
          the environment, else those of torch.distributed when it is initialised, else all of it.
        window: batches that may be held at once; at least 2, for a loop holds one while it waits.
        epoch: the first one. epochs: how many there are, counted from epoch 0: the daemon prepares
          nothing behind the last one; 0: no end. timeout: seconds that a batch is waited for.
        worst_first: so many batches of the first epoch, the largest, come before all others, but
          not behind a checkpoint.
        connection: one that is there already; otherwise `endpoint` and what else `connect()` takes.

        Errors: as `connect()`; NotFoundError, which lists the feeds; InvalidArgumentError.
        """
        super().__init__()
        if window < 2:
            raise InvalidArgumentError(f"window is {window}; it is at least 2, for a loop holds "
                                       "one batch while it waits for the next")
        self.rank, self.ranks = resolve(rank, ranks)
        self._owns = connection is None
        self._connection = connection or connect(endpoint, **connecting)
        self.feed = self._connection.feed(feed)
        self._window, self._timeout, self._worst_first = window, timeout, worst_first
        self._epochs = epochs
        self._subscription: Optional[Subscription] = None
        self._closed = False
        self._go_to(_Place(None, epoch, 0))

    # ---- iterating --------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch that is due. Errors: as Subscription.next(); UnsupportedError in
        a DataLoader's worker, with what to write instead."""
        info = torch.utils.data.get_worker_info()
        if info is not None:
            raise UnsupportedError(f"num_workers is {info.num_workers}: {_INSTEAD}")
        return self._rest_of_epoch()

    def _rest_of_epoch(self) -> Iterator[Batch]:
        while True:
            batch = self._next()
            if batch is None:
                return
            yield batch
            del batch

    def _next(self) -> Optional[Batch]:
        self._finish()
        batch = self._coming()
        if batch is None:  # behind the last epoch
            return None
        if isinstance(batch, EpochEnd):
            self._finished = self._handed_out = self._handed_out._replace(ended=True)
            return None
        return self._hand_out(batch)

    def _coming(self) -> Union[Batch, EpochEnd, None]:
        """What comes next; __len__() may have it already."""
        if self._ahead:
            return self._ahead.pop()
        subscription = self._subscribed()
        self._catch_up(subscription)
        return subscription.next()

    def _catch_up(self, subscription: Subscription) -> None:
        """Passes over what a checkpoint has behind it, since a subscription starts with a step."""
        while self._to_pass:
            event = subscription.next()
            if isinstance(event, Batch):
                event.release()
            self._to_pass -= 1

    def _hand_out(self, batch: Any) -> Batch:
        self._touched = True
        if not batch.rehearsal:
            after, last = batch._after(), self._handed_out
            same = (after.epoch, after.step) == (last.due_epoch, 0 if last.ended else last.step)
            self._handed_out = _Place(after.fingerprint, after.epoch, after.step,
                                      (0 if last.ended else last.done) + 1 if same else 0)
        self._latest = batch
        return batch

    def _finish(self) -> None:
        """What was handed out is finished."""
        self._finished, self._latest = self._handed_out, None

    # ---- places -----------------------------------------------------------------------------

    def _go_to(self, place: _Place) -> None:
        """The next subscription starts there."""
        if self._subscription is not None:
            self._subscription.close()
        self._subscription = None
        self._start = self._handed_out = self._finished = place
        self._latest: Optional[Batch] = None
        self._ahead: List[Union[Batch, EpochEnd, None]] = []
        self._to_pass = place.done + (1 if place.ended else 0)
        self._touched = False

    def _subscribed(self) -> Subscription:
        if self._closed:
            raise ClosedError("this dataset was closed")
        if self._subscription is None:
            start = self._start
            left = self._epochs - start.epoch if self._epochs else 0
            if self._epochs and left < 1:
                raise InvalidArgumentError(f"epoch is {start.epoch}, and there are {self._epochs}, "
                                           "counted from 0")
            shares = dict(rank=self.rank, ranks=self.ranks) if self.ranks > 1 else {}
            self._subscription = self.feed.subscribe(
                window=self._window, timeout=self._timeout, epoch=start.epoch, step=start.step,
                epochs=left, fingerprint=start.plan, worst_first=self._worst_first, **shares)
        return self._subscription

    @property
    def epoch(self) -> int:
        """The epoch that is due: the one that is iterated over, or behind its end the next one."""
        return self._finished.due_epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of an epoch. Where nothing was handed out since load_state_dict(), and
        the checkpoint is of this epoch, it stays where it is: training loops call it there, too."""
        if epoch < 0:
            raise InvalidArgumentError(f"epoch is {epoch}; it is 0 and up")
        if epoch == self._handed_out.due_epoch and (self._handed_out.ended or not self._touched):
            return
        self._worst_first = 0
        self._go_to(_Place(None, epoch, 0))

    def __len__(self) -> int:
        """Batches of the epoch that is due, for this rank, also in its middle. Asks the daemon, and
        behind an epoch's end waits for the first batch of the next, whose plan may have more."""
        subscription = self._subscribed()
        if self._handed_out.ended and not self._ahead:
            self._ahead.append(self._coming())
        return subscription.steps * subscription.grant.batches_per_step

    # ---- checkpoints ------------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """Where to go on, behind the last batch that was finished: numbers and text."""
        if self._latest is not None and self._latest.released:
            self._finish()
        place = self._finished
        plan = place.plan
        if plan is None:
            plan = self._subscribed().grant.fingerprint
        elif isinstance(plan, _abi.Fingerprint):
            plan = fingerprint_text(plan)
        return {"version": _STATE_VERSION, "feed": self.feed.name, "fingerprint": plan,
                "epoch": place.epoch, "step": place.step, "done": place.done,
                "ended": place.ended, "ranks": self.ranks}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where `state_dict()` was taken. The number of ranks may be another, if the
        checkpoint is not from the middle of a step.

        Errors: FingerprintMismatchError, which says whether data, settings or seed are others;
        InvalidArgumentError for what is no state of this feed.
        """
        place = _place_of(state, self.feed.name)
        if place.done and state["ranks"] != self.ranks:
            raise InvalidArgumentError(
                f"the state is from the middle of a step that {state['ranks']} ranks shared; "
                f"{self.ranks} can go on from a step's end only")
        self._worst_first = 0
        self._go_to(place)
        self._subscribed()  # the daemon refuses it here, and not with the first batch

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the subscription, and the connection if it is this object's. Batches that are held
        stay good. Twice is fine."""
        self._closed = True
        if self._latest is not None and self._latest.released:
            self._finish()
        self._latest = None
        self._ahead.clear()
        if self._subscription is not None:
            self._subscription.close()
        if self._owns:
            self._connection.close()

    def __enter__(self) -> BatchDataset:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise UnsupportedError(f"a dataset that is connected goes to no other process: {_INSTEAD}")


def _place_of(state: Dict[str, Any], feed: str) -> _Place:
    """Errors: InvalidArgumentError."""
    try:
        version, of = state["version"], state["feed"]
        place = _Place(str(state["fingerprint"]), int(state["epoch"]), int(state["step"]),
                       int(state["done"]), bool(state["ended"]))
        int(state["ranks"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"this is no state of a BatchDataset: {error!r}") from None
    if version != _STATE_VERSION:
        raise InvalidArgumentError(
            f"the state is of version {version}; this package reads {_STATE_VERSION}")
    if of != feed:
        raise InvalidArgumentError(f'the state is of feed "{of}", and this one is "{feed}"')
    return place
