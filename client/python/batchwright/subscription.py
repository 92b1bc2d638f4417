"""A claim on a feed: the batches one after the other."""

from __future__ import annotations

import ctypes
import re
import threading
import time
import weakref
from typing import Any, Iterator, Optional, Union

from . import _abi, _fork
from ._memory import in_flight
from ._memory.credits import Credits
from ._memory.homes import Homes
from ._own import Own
from ._waits import SLICE_MS, milliseconds, warn
from .batch import Batch
from .errors import BusyError, ClosedError, TimedOutError
from .values import EpochEnd, Grant, Position

_next = _abi.next_event
_LAST_SLICE_MS = 150  # the last one is long enough for the daemon to be asked what it waits for
_PATIENCE_SECONDS = 1.0  # without a credit, before a warning says what is alive
_SHORT_MS = 1  # while copies to a GPU are under way: slots go back when they are done


class Subscription(Own):
    """Made by `Feed.subscribe()`. Iterating yields batches, epoch after epoch, until the counted
    epochs are over.

    Asking for the next batch does not release the one before: a batch is held until it is released,
    or its last reference is gone. In a `for` loop that is the loop's variable, and what the body
    keeps. A wait of more than a second with all credits out gives a RuntimeWarning that names,
    once, what of each batch is alive. A queue's batch counts as done with once the loop asks for
    the next one, whatever views of it are alive; with `next()` alone, once it was released, or by
    `batch.done()`.

    Lifetime: its batches outlive it. Threads: one at a time is in `next()`, of all subscriptions of
    a connection; `close()` from any.
    """

    def __init__(self, raw: int, connection: Own, homes: Homes, timeout: float,
                 in_queue: bool = False) -> None:
        """Takes ownership of a bw_subscription. `homes` are those of the connection, which it
        keeps open."""
        self._in_queue = in_queue
        self._raw: Optional[int] = raw
        self._connection = connection
        self._homes = homes
        self._lock = threading.Lock()  # held during a call with the handle
        self._closed = False
        self._generation = _fork.generation
        self._out = ctypes.c_void_p()
        self._epoch = ctypes.c_uint64()
        self._out_place = ctypes.byref(self._out)
        self._epoch_place = ctypes.byref(self._epoch)
        self.timeout = timeout
        self.grant = Grant.of(_abi.subscription_grant(raw).contents)
        #: What the granted fingerprint's settings and seed are, a `key = value` a line. It belongs
        #: into a checkpoint, beside the position.
        self.terms = _abi.text(_abi.subscription_terms(raw))
        self._credits = Credits(self.grant.window)
        self._warned = False

    # ---- batches ----------------------------------------------------------------------------

    def next(self, timeout: Optional[float] = None) -> Union[Batch, EpochEnd, None]:
        """The next batch; or EpochEnd behind the last one of an epoch; or None, when the counted
        epochs are over. Waits up to `timeout` seconds (None: `self.timeout`; 0: looks once), and
        can be interrupted.

        Errors: TimedOutError, which says what was waited for: call again, or give up.
        DisconnectedError, when the daemon is gone for longer than `reconnect`, or the connection
        was closed. FingerprintMismatchError, when it came back with another plan. BusyError,
        ForkedError, ClosedError, and what the feed failed with.
        """
        if timeout is None:
            timeout = self.timeout
        if self._generation != _fork.generation:
            raise _fork.refuse("this subscription")
        self._refuse_second()
        try:
            with self._lock:
                return self._take(timeout)
        finally:
            if self._closed:
                self._free()

    def _refuse_second(self) -> None:
        """Raises if the lock is taken. The caller then takes it by `with`, since Ctrl-C can leave a
        call of acquire() with the lock taken for ever."""
        if self._lock.locked():
            raise BusyError("another thread waits for this subscription's next batch. One thread at a "
                            "time uses a connection: let each thread that waits connect() once")

    def _take(self, timeout: float) -> Union[Batch, EpochEnd, None]:
        if self._closed:
            raise ClosedError("this subscription was closed")
        try:
            if in_flight.pending:
                in_flight.reap()
            status = _next(self._raw, SLICE_MS if timeout > 0.1 and not in_flight.pending else 0,
                           self._out_place, self._epoch_place)
            if status == _abi.TIMED_OUT:
                status = self._wait(timeout)
            if status == _abi.OK:
                batch = Batch(self._out, self._homes)
                self._credits.note(batch._slot)
                return batch
            if status == _abi.EPOCH_END:
                return EpochEnd(self._epoch.value)
            _abi.check(status)
            return None
        finally:
            if self._out.value is not None:  # interrupted before the batch had an owner
                self._drop_arrived()

    def _wait(self, timeout: float) -> int:
        """Waits in slices, between which Python's signal handlers run."""
        left = milliseconds(timeout, "timeout")
        started = time.monotonic()
        end = started + left / 1000
        status = _abi.TIMED_OUT
        while status == _abi.TIMED_OUT:
            if self._closed:
                raise ClosedError("this subscription was closed")
            if in_flight.pending:
                in_flight.reap()
                part = min(left, _SHORT_MS)
            else:
                part = left if left <= _LAST_SLICE_MS else SLICE_MS
            status = _next(self._raw, part, self._out_place, self._epoch_place)
            left = max(0, int((end - time.monotonic()) * 1000))
            if status == _abi.TIMED_OUT and left == 0:
                raise TimedOutError(self._why_nothing_came(timeout))
            if not self._warned and time.monotonic() - started > _PATIENCE_SECONDS:
                self._warn_of_credits()
        return status

    def _why_nothing_came(self, timeout: float) -> str:
        words = re.sub(r"within \d+ ms", f"within {timeout:g} s", _abi.message(), count=1)
        return f"{words}; {self._credits.advice()}" if self._credits.all_out() else words

    def _warn_of_credits(self) -> None:
        if self._credits.all_out():
            self._warned = True
            warn(f"a batch is waited for since {_PATIENCE_SECONDS:g} s: {self._credits.advice()}")

    def _drop_arrived(self) -> None:
        raw, self._out.value = self._out.value, None
        _abi.release(raw)

    def __iter__(self) -> Iterator[Batch]:
        """Batches, across the ends of epochs; each says its `epoch`."""
        while True:
            event = self.next()
            if event is None:
                return
            if isinstance(event, Batch):
                slot = self._slot_to_finish(event)
                yield event
                self._finish(slot)
            del event  # the generator holds no batch while it waits

    def epoch(self) -> Iterator[Batch]:
        """Batches up to the next end of an epoch."""
        while True:
            event = self.next()
            if not isinstance(event, Batch):
                return
            slot = self._slot_to_finish(event)
            yield event
            self._finish(slot)
            del event

    def _slot_to_finish(self, batch: Batch) -> Any:
        """The slot of a queue's batch, by a weak reference that does not hold it."""
        return weakref.ref(batch._slot) if self._in_queue else None

    @staticmethod
    def _finish(slot: Any) -> None:
        """Another worker may wait for the end of a queue's epoch, and so for this batch."""
        held = slot() if slot is not None else None
        if held is not None:
            _abi.check(_abi.batch_done(held.handle))

    # ---- place ------------------------------------------------------------------------------

    def _with_handle(self, call: Any) -> Any:
        """Reads something of the handle, which close() must not free meanwhile."""
        if self._generation != _fork.generation:
            raise _fork.refuse("this subscription")
        self._refuse_second()
        try:
            with self._lock:
                if self._closed:
                    raise ClosedError("this subscription was closed")
                return call(self._raw)
        finally:
            if self._closed:
                self._free()

    @property
    def position(self) -> Position:
        """The position of the first batch that was not handed out. For a checkpoint take
        `batch.position` of the last batch that was finished, or `batchwright.torch.BatchDataset`,
        which does."""
        raw = _abi.Position()
        self._with_handle(
            lambda handle: _abi.check(_abi.subscription_position(handle, ctypes.byref(raw))))
        return Position.of(raw)

    @property
    def steps(self) -> int:
        """The number of global steps of the epoch that `position` names."""
        steps = ctypes.c_uint64()
        self._with_handle(
            lambda handle: _abi.check(_abi.subscription_steps(handle, None, ctypes.byref(steps))))
        return steps.value

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the subscription; a `next()` in another thread raises ClosedError. Batches that are
        held stay good. Calling it twice is fine."""
        self._closed = True
        self._free()

    def _free(self) -> None:
        if not self._lock.acquire(False):
            return  # the call that is under way does it when it ends
        try:
            raw, self._raw = self._raw, None
        finally:
            self._lock.release()
        if raw is not None:
            _abi.unsubscribe(raw)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._generation == _fork.generation:  # a child that leaves the block has nothing to end
            self.close()

    def __del__(self, unsubscribe: Any = _abi.unsubscribe) -> None:
        raw, self._raw = getattr(self, "_raw", None), None
        if raw is not None:
            unsubscribe(raw)
