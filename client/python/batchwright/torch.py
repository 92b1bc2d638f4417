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

A checkpoint that was taken there goes on with the next batch, as an undisturbed run does.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._memory import torch_views  # says what to install when torch is missing
from . import _abi, _fork, _labels
from ._collation import INSTEAD, refuse_collation, refuse_fetcher
from ._live import Trained
from ._places import (
    Batches, Event, Hints, Iteration, Now, Place, Step, Steps, Stream, check_share, place_of, state_of,
)
from ._ranks import CHECKS, Choice, Comparison, Share, Told
from ._waits import warn
from .batch import Batch
from .connection import Connection, connect
from .errors import BusyError, ClosedError, Error, InvalidArgumentError, TimedOutError, UnsupportedError
from .layouts import Ragged, batch_major, lengths, packed, ragged, targets, time_major
from .values import UpcomingBatch, fingerprint_text

import torch.utils.data

__all__ = ["BatchDataset", "Ragged", "batch_major", "lengths", "packed", "ragged", "targets",
           "time_major"]

del torch_views

refuse_collation()


class BatchDataset(Trained, torch.utils.data.IterableDataset[Batch]):
    """Finished batches of a feed. Each iteration is one epoch, or what is left of it.

    An iteration begins the epoch that is due: after one whose batches were all handed out the
    next one, otherwise the same one anew, so that what was looked at before a loop is not missing
    in it. `set_epoch()` names the epoch; `load_state_dict()` has the next iteration begin within
    it, and `resume()` where the last one was left. Of several iterators the latest is valid.

    A batch that was yielded counts as done: a checkpoint that is taken in the loop's body goes on
    with the next one, as it does with other stateful loaders. Where batches are fetched ahead of the
    training, `state_dict(finished=True)` counts only those that were released or followed by the
    next.

    `rank` and `ranks` are those of the iteration that is under way, otherwise of one that began
    now.

    Threads: one at a time; `state_dict()` in any, and in signal handlers, and what ends an iterator
    ends its wait in another thread. Processes: a DataLoader's workers and forked children are
    refused.
    """

    def __init__(self, endpoint: Any = None, feed: str = "train", *, rank: Optional[int] = None,
                 ranks: Optional[int] = None, whole: bool = False, window: int = 4,
                 epoch: int = 0, epochs: int = 0, timeout: float = 60.0,
                 connect_timeout: float = 10.0, worst_first: int = 0, writable: bool = False,
                 labels: Optional[_labels.Labels] = None,
                 connection: Optional[Connection] = None, ranks_here: Optional[int] = None,
                 check: Optional[str] = None, copy: bool = False, **connecting: Any) -> None:
        """Connects to the daemon, and finds the feed; batches are prepared once they are requested.

        rank, ranks: this process's share of every global step; without them those of
          torch.distributed when it is initialised, otherwise RANK and WORLD_SIZE of the
          environment, otherwise those of Open MPI, PMI or Slurm, otherwise all of it. They are
          looked up when an iteration begins, so that the process group may be made after this
          object.
        whole: True takes all of it whatever the group, as for evaluation in each process.
        window: batches that may be held at once; at least 2, for a loop holds one while it waits.
        epoch: the first one. epochs: how many, counted from 0, and no more are prepared; 0: no end.
        timeout, connect_timeout: seconds to wait for a batch, and for the daemon.
        worst_first: so many batches of the first epoch, the largest, come before all others, but
          not after a checkpoint.
        writable: True lets tensors be written to in place; see `Feed.subscribe()`.
        labels: names of the classes 0, 1, ... that the model was made for, as a list when one field
          has labels, or as a dict of lists by field. A different numbering, or more names, are
          refused.
        connection: an existing one; otherwise `endpoint` and the other arguments of `connect()`.
        ranks_here: as `Feed.subscribe()`, which knows it from the environment, too.
        check: "ranks" compares, with the first batch, what all ranks of torch.distributed read:
          data, settings, seed, start and share. All of them are waited for, up to `timeout`. None
          does so where this share is one of that group's, and only warns of ranks that have not
          come by the second batch; "none" does not.
        copy: True copies each batch into memory of this process, so that batches, arrays and tensors
          hold no slot: they may be kept, as notebooks do, and written to.

        Errors: as `connect()`; NotFoundError, which lists the feeds; InvalidArgumentError;
        SchemaMismatchError: other labels."""
        super().__init__()
        if check not in CHECKS:
            raise InvalidArgumentError(f'check is {check!r}; it is "ranks", "none" or None')
        if window < 2:
            raise InvalidArgumentError(f"window is {window}; it is at least 2, for a loop holds "
                                       "one batch while it waits for the next")
        self._choice = Choice.of(rank, ranks, whole)
        self._epochs = epochs
        self._check_epoch(epoch)
        self._owns = connection is None
        self._connection = connection or connect(endpoint, timeout=connect_timeout, **connecting)
        self.feed = self._connection.feed(feed)
        if labels is not None:
            _labels.check(self.feed, labels)
        self._comparison = Comparison(self.feed.name, check, timeout)
        self._worst_first, self._copy = worst_first, copy
        self._options: Dict[str, Any] = dict(
            window=window, timeout=timeout, writable=writable, ranks_here=ranks_here)
        self._closed = False
        self._first = Place(None, epoch, 0)  # the place that worst_first is for
        self._kept: Optional[Place] = None  # a place that set_epoch() of its epoch leaves as it is
        self._iteration = Iteration(self._first)
        self._hints = Hints()
        self._stream: Optional[Stream] = None
        self._turn = threading.RLock()  # held by the call that uses the stream

    # ---- iterating --------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch that is due; of a live feed, what comes after the last one. Ends the
        iterator before it. Errors: as Subscription.next(); UnsupportedError in a DataLoader's worker, or in one that
        collates, with what to write instead. The iterator's: ClosedError when it is valid no
        longer, which says why."""
        worker: Any = torch.utils.data.get_worker_info  # without annotations in torch 1.13
        info = worker()
        if info is not None:
            raise UnsupportedError(f"num_workers is {info.num_workers}: {INSTEAD}")
        refuse_fetcher(sys._getframe(1))
        self._check_open()
        before = self._iteration
        start = before.follower() if before.is_taken else before.start
        start = before.place if self.feed._is_live else start
        if self._is_over(start):
            warn(f"this iteration is empty: epochs is {self._epochs}, counted from 0, and all are "
                 "over. set_epoch() goes back to one")
            return iter(())
        if before.is_taken:
            if not self.feed._is_live:
                self._hints.of_beginning_anew(before, start)
            self._begin(start, "a newer one")
        self._choice.look_at_group(self._share_at(start), f'the dataset of feed "{self.feed.name}"')
        self._iteration.is_taken = True
        return Batches(self, self._iteration)

    def steps_of(self, ranks: Optional[int] = None) -> Iterator[Step]:
        """The batches of the epoch that is due by global steps, whatever the number of ranks: each
        step is an iterator over this rank's `step.batches` of it, which are world / ranks. A checkpoint
        between two steps goes on with any number of ranks.

            for step in dataset.steps_of(ranks):
                for batch in step:
                    (loss(batch) * batch.sequence_weight / step.batches).backward()
                optimizer.step()

        ranks: what the program takes for their number; None: whatever it is.
        Errors: InvalidArgumentError for another number; those of iterating."""
        found = self.ranks
        if ranks is not None and ranks != found:
            raise InvalidArgumentError(f"steps_of({ranks}), and {found} share this dataset's steps: give "
                                       "rank and ranks to BatchDataset, or leave it out here")
        if not isinstance(iter(self), Batches):
            return iter(())  # all epochs are over
        return Steps(self, self._iteration, self.feed.world // found)

    def _begin(self, start: Place, why: str) -> None:
        """Lets the next iteration begin there, and ends the iterator that is valid now."""
        self._iteration.end(why)
        if self._stream is not None and not self._stream.stands_at(start):
            self._stream.close()
        self._iteration = Iteration(start)

    def _is_over(self, place: Place) -> bool:
        return bool(self._epochs) and place.due_epoch >= self._epochs

    def _look(self, iteration: Iteration) -> Tuple[Stream, Event, Now]:
        """The next event of an iteration, the stream that it is to be taken from, and where the
        iteration is after it."""
        if self._connection._generation != _fork.generation:
            raise _fork.refuse("this dataset")
        iteration.check_valid()
        with self._turn:
            iteration.check_valid()
            try:
                iteration.finish()
                stream = self._stream_at(iteration.place)
                self._compare_ranks(iteration, stream)
                iteration.check_valid()
                event = stream.look()
                if iteration.steps is None and isinstance(event, Batch):
                    iteration.steps = stream.subscription.steps
                return stream, event, iteration.now.after(event, stream)
            except Error as error:
                iteration.check_valid()  # which may be why its wait ended
                if self._stream is not None and not isinstance(error, (BusyError, TimedOutError)):
                    self._stream.close()  # the next try begins anew, at the same place
                raise

    def _compare_ranks(self, iteration: Iteration, stream: Stream) -> None:
        if not self._comparison.is_due(stream.share, self._choice.whole, iteration.now.batches):
            return
        grant, start = stream.subscription.grant, iteration.start
        self._comparison.make(Told(*stream.share, grant.fingerprint, stream.subscription.terms,
                                   self.feed.sequences, start.due_epoch, start.due_step),
                              iteration.now.batches)

    # ---- the subscription -------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this dataset was closed")

    def _share_at(self, place: Place) -> Share:
        """The share of an iteration that goes on from there. The process group may have come or
        gone; what was taken by a share goes on with it."""
        stream = self._stream
        if stream is not None and stream.is_touched and stream.stands_at(place):
            return stream.share
        return self._choice.resolve()

    def _stream_at(self, place: Place) -> Stream:
        """The stream whose next batch is the first one there."""
        self._check_open()
        stream, share = self._stream, self._share_at(place)
        if stream is None or stream.share != share or not stream.stands_at(place):
            if stream is not None:
                stream.close()
            stream = self._stream = self._open(place, share)
        stream.go_to(place)
        return stream

    def _open(self, start: Place, share: Share) -> Stream:
        check_share(self.feed.name, self.feed.world, share, start)
        shares: Dict[str, Any] = dict(rank=share[0], ranks=share[1]) if share[1] > 1 else {}
        plan = fingerprint_text(start.plan) if isinstance(start.plan, _abi.Fingerprint) else start.plan
        made = self.feed.subscribe(
            epoch=start.epoch, step=start.step, fingerprint=plan, terms=start.terms,
            epochs=self._epochs - start.epoch if self._epochs else 0,
            worst_first=self._worst_first if start is self._first else 0, **self._options, **shares)
        return Stream(made, start, share, self.feed.name, self._copy)

    @property
    def rank(self) -> int:
        return self._share_at(self._iteration.place)[0]

    @property
    def ranks(self) -> int:
        return self._share_at(self._iteration.place)[1]

    # ---- places -----------------------------------------------------------------------------

    def _check_epoch(self, epoch: int) -> None:
        if epoch < 0 or self._epochs and epoch >= self._epochs:
            raise InvalidArgumentError(f"epoch is {epoch}; it is 0 and up" + (
                f", and below epochs, which is {self._epochs}" if self._epochs else ""))

    @property
    def epoch(self) -> int:
        """The epoch that is due: the one that is iterated over, or after its end the next one."""
        return self._iteration.place.due_epoch

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration begin at the start of this epoch. The first call after
        load_state_dict() or resume() leaves their place as it is, if that is in this epoch:
        training loops call it there, too. Ends the iterator that is valid now. The third
        time in a row that an epoch is gone through a RuntimeWarning says so, unless `whole` is True."""
        self._refuse_live("set_epoch()")
        self._check_epoch(epoch)
        if not self._choice.whole:
            self._hints.of_the_same_epoch(self._iteration, epoch)
        start = self._iteration.follower()
        is_kept = start is self._kept or not start.is_within_epoch()
        self._kept = None
        if epoch != start.due_epoch or not is_kept:
            start = Place(None, epoch, 0)
        self._begin(start, f"set_epoch({epoch})")

    def resume(self) -> BatchDataset:
        """Has the next iteration go on after the last batch that was handed out, and returns this
        dataset: `for batch in dataset.resume()` continues a loop that was left. Ends the iterator
        that is valid now."""
        place = self._iteration.place
        self._begin(place, "resume()")
        self._kept = place
        return self

    def __len__(self) -> int:
        """Batches of the epoch that is due, for this rank, also in its middle; 0 after the last. Asks
        the daemon, and after an epoch's end waits for the next one's first batch."""
        self._refuse_live("len()")
        place = self._iteration.place
        if self._is_over(place):
            return 0
        with self._turn:
            stream = self._stream_at(place)
            if place.ended:
                stream.look()
            return stream.subscription.steps * stream.subscription.grant.batches_per_step

    def steps(self, epochs: int) -> int:
        """Batches of the epochs 0 to `epochs` - 1 for this rank: the length of a schedule over a
        whole run, such as OneCycleLR's total_steps. Epochs may differ in their number.

        The daemon is asked for the plan of each, by a connection of its own that takes no slot: some
        milliseconds an epoch, and what planning takes. A feed that follows a growing dataset is counted
        as it is now. Errors: as connect() and Feed.subscribe()."""
        self._refuse_live("steps()")
        share, counted = self._share_at(self._iteration.place), 0
        check_share(self.feed.name, self.feed.world, share, self._first)
        if epochs <= 0:
            return 0
        with self.feed._connection._asking() as asking:
            feed = asking.feed(self.feed.name)
            for epoch in range(epochs):
                with feed.subscribe(epoch=epoch, epochs=1, window=1) as asked:
                    counted += asked.grant.steps
        return counted * int(self.feed.world // share[1])

    def upcoming(self, n: int) -> List[UpcomingBatch]:
        """The next `n` batches of this rank, as `Subscription.upcoming()` has them; none after the last."""
        place = self._iteration.place
        with self._turn:
            return [] if self._is_over(place) else self._stream_at(place).upcoming(n)

    # ---- checkpoints ------------------------------------------------------------------------

    def state_dict(self, finished: bool = False) -> Dict[str, Any]:
        """The place to resume from, after the last batch that was yielded: numbers and text. Asks
        nobody, so that any thread and signal handlers may call it, also when the daemon is away.
        Before the first batch of the first epoch it may have no fingerprint, as the plan is unknown.

        finished: True goes on after the last batch that was released, or followed by the next one.
          For loops that take batches ahead of training on them, and release each when it is done."""
        now, stream = self._iteration.now, self._stream
        place = now.settled().finished if finished else now.place
        if place.plan is None and stream is not None and stream.at is place:
            subscription = stream.subscription
            place = place._replace(plan=subscription.grant.fingerprint, terms=subscription.terms)
        return state_of(place, self.feed.name)

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where `state_dict()` was taken. The number of ranks may differ, if the checkpoint
        is not from the middle of a step. Ends the iterator that is valid now; where the state is
        refused, resume() goes on where that was.

        Errors: FingerprintMismatchError, which says whether the data differ, and names each setting
        that does, with its value then and now; InvalidArgumentError for a state that is not of this
        feed."""
        place = place_of(state, self.feed.name)
        self._check_epoch(place.epoch)
        self._iteration.end("load_state_dict()")
        if self._stream is not None:
            self._stream.close()
        with self._turn:
            self._stream_at(place)  # the daemon refuses it here, and not with the first batch
            self._iteration = Iteration(place)
            self._kept = place

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the subscription, and the connection if it is this object's. Batches stay good."""
        self._closed = True
        self._iteration.end("close()")
        if self._stream is not None:
            self._stream.close()
        if self._owns:
            self._connection.close()

    def __enter__(self) -> BatchDataset:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._connection._generation == _fork.generation:  # a child has nothing to end
            self.close()

    def __repr__(self) -> str:
        place, stream = self._iteration.place, self._stream
        share = "" if stream is None else "rank {} of {}, ".format(*stream.share)
        return (f"<batchwright.torch.BatchDataset{', closed' * self._closed}: {share}epoch "
                f"{place.due_epoch}, step {place.due_step}, of {self.feed!r}>")

    def __reduce__(self) -> Any:
        raise UnsupportedError("a dataset that is connected goes to no other process: make one in each "
                               f"process. For a DataLoader {INSTEAD}")
