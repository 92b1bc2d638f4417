"""A dataset for torch's DataLoader, and for loops without one.

    from batchwright.torch import BatchDataset, packed

    dataset = BatchDataset("ipc:///run/batchwright/batchwright.sock", "train")
    loader = DataLoader(dataset, batch_size=None, num_workers=0)  # or `dataset` itself
    for epoch in range(dataset.epoch, 10):
        dataset.set_epoch(epoch)
        for batch in loader:
            loss = criterion(model(packed(batch, "features")), batch.torch("label").long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "data": dataset.state_dict()}, path)

A checkpoint that was taken there goes on with the next batch, and a resumed run sees what an
undisturbed one sees.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Optional, Union

from ._memory import torch_views  # says what to install when torch is missing
from . import _abi, _fork, _labels
from ._collation import INSTEAD, refuse_collation
from ._places import STATE_VERSION, Place, place_of
from ._ranks import CHECKS, Choice, Share, Told, agree, is_checked
from ._waits import warn
from .batch import Batch
from .connection import Connection, connect
from .errors import ClosedError, InvalidArgumentError, UnsupportedError
from .layouts import Ragged, batch_major, lengths, packed, ragged, targets, time_major
from .subscription import Subscription
from .values import EpochEnd, fingerprint_text

import torch.utils.data

__all__ = ["BatchDataset", "Ragged", "batch_major", "lengths", "packed", "ragged", "targets",
           "time_major"]

del torch_views

refuse_collation()


class BatchDataset(torch.utils.data.IterableDataset):
    """Finished batches of a feed. Each iteration is one epoch, or what is left of it.

    An iteration goes on after the last batch that was requested: the next loop continues one that
    was left in the middle of an epoch. `set_epoch()` goes to an epoch's start.

    A batch that was yielded counts as done: a checkpoint that is taken in the loop's body goes on
    with the next one, as it does with other stateful loaders. Where batches are fetched ahead of the
    training, `state_dict(finished=True)` counts only those that were released or followed by the
    next.

    `rank` and `ranks` are those of the iteration that is under way, otherwise of one that began
    now.

    Threads: one at a time. Processes: a DataLoader's workers and forked children are refused.
    """

    def __init__(self, endpoint: Any = None, feed: str = "train", *, rank: Optional[int] = None,
                 ranks: Optional[int] = None, whole: bool = False, window: int = 4,
                 epoch: int = 0, epochs: int = 0, timeout: float = 60.0,
                 connect_timeout: float = 10.0, worst_first: int = 0, writable: bool = False,
                 labels: Optional[_labels.Labels] = None,
                 connection: Optional[Connection] = None, ranks_here: Optional[int] = None,
                 check: Optional[str] = None, **connecting: Any) -> None:
        """Connects to the daemon, and finds the feed; batches are prepared once they are requested.

        rank, ranks: this process's share of every global step; without them those of
          torch.distributed when it is initialised, otherwise RANK and WORLD_SIZE of the
          environment, otherwise those of Open MPI, PMI or Slurm, otherwise all of it. They are
          looked up when an iteration begins, so that the process group may be made after this
          object.
        whole: True takes all of it whatever the group, as for evaluation in each process.
        window: batches that may be held at once; at least 2, for a loop holds one while it waits.
        epoch: the first one. epochs: how many there are, counted from epoch 0: the daemon prepares
          nothing behind the last one; 0: no end. timeout: seconds that a batch is waited for;
          connect_timeout: that the daemon is.
        worst_first: so many batches of the first epoch, the largest, come before all others, but
          not behind a checkpoint.
        writable: True lets tensors be written to in place; see `Feed.subscribe()`.
        labels: names of the classes 0, 1, ... that the model was made for, as a list when one field
          has labels, or as a dict of lists by field. A different numbering, or more names, are
          refused.
        connection: an existing one; otherwise `endpoint` and the other arguments of `connect()`.
        ranks_here: as `Feed.subscribe()`, which knows it from the environment, too.
        check: "ranks" compares, when the first iteration begins, what all ranks of torch.distributed
          read: data, settings, seed, start and share. All of them are waited for, up to `timeout`.
          None does so where this share is one of that group's, and only warns of ranks that have
          not come; "none" does not.

        Errors: as `connect()`; NotFoundError, which lists the feeds; InvalidArgumentError;
        SchemaMismatchError: other labels.
        """
        super().__init__()
        if check not in CHECKS:
            raise InvalidArgumentError(f'check is {check!r}; it is "ranks", "none" or None')
        if window < 2:
            raise InvalidArgumentError(f"window is {window}; it is at least 2, for a loop holds "
                                       "one batch while it waits for the next")
        self._choice = Choice.of(rank, ranks, whole)
        self._check: Optional[str] = check
        self._checked = False  # the ranks were compared
        self._epochs = epochs
        self._check_epoch(epoch)
        self._owns = connection is None
        self._connection = connection or connect(endpoint, timeout=connect_timeout, **connecting)
        self.feed = self._connection.feed(feed)
        if labels is not None:
            _labels.check(self.feed, labels)
        self._worst_first = worst_first
        self._options = dict(window=window, timeout=timeout, writable=writable, ranks_here=ranks_here)
        self._subscription: Optional[Subscription] = None
        self._share: Optional[Share] = None  # the subscription's
        self._closed = False
        self._go_to(Place(None, epoch, 0))

    # ---- iterating --------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch that is due. Errors: as Subscription.next(); UnsupportedError in
        a DataLoader's worker, with what to write instead."""
        info = torch.utils.data.get_worker_info()
        if info is not None:
            raise UnsupportedError(f"num_workers is {info.num_workers}: {INSTEAD}")
        if self._is_over():
            warn(f"this iteration is empty: epochs is {self._epochs}, counted from 0, and all are "
                 "over. set_epoch() goes back to one")
            return iter(())
        self._look_at_the_group()
        return self._rest_of_epoch()

    def _is_over(self) -> bool:
        return bool(self._epochs) and not self._ahead and (
            self._handed_out.due_epoch >= self._epochs)

    def _look_at_the_group(self) -> None:
        """Compares the process group with the subscription's share: it may have come or gone
        since."""
        share = self._choice.resolve()
        if self._share is not None and self._share != share:
            if self._untouched():
                self._go_to(self._start)
            else:
                share = self._share  # a subscription goes on as it began
        self._choice.look_at_group(share, f'the dataset of feed "{self.feed.name}"')

    def _untouched(self) -> bool:
        """Whether the subscription has handed out nothing yet."""
        return self._handed_out is self._start and not self._touched

    @property
    def rank(self) -> int:
        return (self._share or self._choice.resolve())[0]

    @property
    def ranks(self) -> int:
        return (self._share or self._choice.resolve())[1]

    def _compare_ranks(self) -> None:
        """Has all ranks compare their plans, once: later iterations may begin on some only."""
        subscription, share = self._subscribed(), self._share or (0, 1)
        if self._checked or not is_checked(self._check, share, self._choice.whole):
            return
        self._checked = True
        grant = subscription.grant
        agree(Told(*share, grant.fingerprint, subscription.terms, self.feed.sequences, grant.epoch,
                   grant.step), self.feed.name, self._check, self._options["timeout"])

    def _rest_of_epoch(self) -> Iterator[Batch]:
        self._compare_ranks()
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
        """The next event; __len__() may have fetched it already."""
        if self._ahead:
            return self._ahead.pop()
        subscription = self._subscribed()
        self._catch_up(subscription)
        return subscription.next()

    def _catch_up(self, subscription: Subscription) -> None:
        """Skips the batches that were done at the checkpoint, since a subscription starts with a
        whole step."""
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
            self._handed_out = Place(after.fingerprint, after.epoch, after.step,
                                      (0 if last.ended else last.done) + 1 if same else 0)
        self._latest = batch
        return batch

    def _finish(self) -> None:
        """Marks the batch handed out last as finished."""
        self._finished, self._latest = self._handed_out, None

    # ---- places -----------------------------------------------------------------------------

    def _go_to(self, place: Place) -> None:
        """Lets the next subscription start there."""
        if self._subscription is not None:
            self._subscription.close()
        self._subscription = self._share = None
        self._start = self._handed_out = self._finished = place
        self._latest: Optional[Batch] = None
        self._ahead: List[Union[Batch, EpochEnd, None]] = []
        self._to_pass = place.done + (1 if place.ended else 0)
        self._touched = False

    def _subscribed(self) -> Subscription:
        if self._closed:
            raise ClosedError("this dataset was closed")
        if self._subscription is None:
            start, share = self._start, self._choice.resolve()
            self._check_share(share)
            shares = dict(rank=share[0], ranks=share[1]) if share[1] > 1 else {}
            made = self.feed.subscribe(
                epoch=start.epoch, step=start.step, fingerprint=start.plan, terms=start.terms,
                epochs=self._epochs - start.epoch if self._epochs else 0,
                worst_first=self._worst_first, **self._options, **shares)
            if made.grant.window < 2:
                made.close()
                raise InvalidArgumentError(f'feed "{self.feed.name}" grants a window of 1, and a loop '
                                           "holds one batch while it waits for the next: it needs "
                                           "more slots, or a larger max_window")
            self._subscription, self._share = made, share
        return self._subscription

    def _check_share(self, share: Share) -> None:
        """Errors: InvalidArgumentError, which says what to set."""
        ranks, world = share[1], self.feed.world
        if world % ranks:
            raise InvalidArgumentError(
                f'{ranks} ranks do not divide the world of {world} of feed "{self.feed.name}": set '
                f"world = {math.lcm(world, ranks)} in its [feed.plan] (a job may go on with any "
                "number of ranks that divides world, so take the most there will be), or have each "
                "rank read all of it, by whole=True")
        if self._start.done and self._start.ranks != ranks:
            raise InvalidArgumentError(
                f"the state is from the middle of a step that {self._start.ranks} ranks shared; "
                f"{ranks} can go on from a step's end only")

    def _check_epoch(self, epoch: int) -> None:
        if epoch < 0 or self._epochs and epoch >= self._epochs:
            raise InvalidArgumentError(f"epoch is {epoch}; it is 0 and up" + (
                f", and below epochs, which is {self._epochs}" if self._epochs else ""))

    @property
    def epoch(self) -> int:
        """The epoch that is due: the one that is iterated over, or behind its end the next one."""
        return self._finished.due_epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the start of an epoch. Where nothing was handed out since load_state_dict(), and
        the checkpoint is of this epoch, it stays where it is: training loops call it there, too."""
        self._check_epoch(epoch)
        if epoch == self._handed_out.due_epoch and (self._handed_out.ended or not self._touched):
            return
        self._worst_first = 0
        self._go_to(Place(None, epoch, 0))

    def __len__(self) -> int:
        """Batches of the epoch that is due, for this rank, also in its middle; 0 behind the last.
        Asks the daemon, and behind an epoch's end waits for the first batch of the next, whose plan
        may have more."""
        if self._is_over():
            return 0
        subscription = self._subscribed()
        if self._handed_out.ended and not self._ahead:
            self._ahead.append(self._coming())
        return subscription.steps * subscription.grant.batches_per_step

    def steps(self, epochs: int) -> int:
        """Batches of the epochs 0 to `epochs` - 1 for this rank: the length of a schedule over a
        whole run, such as OneCycleLR's total_steps. Epochs may differ in their number.

        The daemon is asked for the plan of each, one after the other: milliseconds an epoch, and
        what planning takes, over a connection of its own that takes no slot. A feed that follows a
        growing dataset is counted as it is now.
        Errors: as connect() and Feed.subscribe().
        """
        share, counted = self._share or self._choice.resolve(), 0
        self._check_share(share)
        if epochs <= 0:
            return 0
        with self.feed._connection._asking() as asking:
            feed = asking.feed(self.feed.name)
            for epoch in range(epochs):
                with feed.subscribe(epoch=epoch, epochs=1, window=1) as asked:
                    counted += asked.grant.steps
        return counted * (self.feed.world // share[1])

    # ---- checkpoints ------------------------------------------------------------------------

    def state_dict(self, finished: bool = False) -> Dict[str, Any]:
        """The place to resume from, after the last batch that was yielded: numbers and text.

        finished: True goes on behind the last batch that was released, or followed by the next one.
          For loops that take batches ahead of training on them, and release each when it is done.
        """
        if self._latest is not None and self._latest.released:
            self._finish()
        place = self._finished if finished else self._handed_out
        subscription = self._subscription
        plan = place.plan
        if plan is None:
            subscription = self._subscribed()
            plan = subscription.grant.fingerprint
        elif isinstance(plan, _abi.Fingerprint):
            plan = fingerprint_text(plan)
        terms = subscription.terms if subscription is not None else self._start.terms
        return {"version": STATE_VERSION, "feed": self.feed.name, "fingerprint": plan,
                "terms": terms, "epoch": place.epoch, "step": place.step, "done": place.done,
                "ended": place.ended, "ranks": self.ranks}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where `state_dict()` was taken. The number of ranks may differ, if the checkpoint
        is not from the middle of a step.

        Errors: FingerprintMismatchError, which says whether the data differ, and names each setting
        that does, with its value then and now; InvalidArgumentError for a state that is not of this
        feed.
        """
        place = place_of(state, self.feed.name)
        self._check_epoch(place.epoch)
        self._worst_first = 0
        self._go_to(place)
        self._subscribed()  # the daemon refuses it here, and not with the first batch

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the subscription, and the connection if it is this object's. Batches that are held
        stay good. Calling it twice is fine."""
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
        if self._connection._generation == _fork.generation:  # a child has nothing to end
            self.close()

    def __reduce__(self) -> Any:
        raise UnsupportedError(f"a dataset that is connected goes to no other process: {INSTEAD}")
