"""A claim on a feed: the batches one after the other."""

from __future__ import annotations

import ctypes
import inspect
import opcode
import re
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any, Callable, List, Optional, Union

from . import _abi, _fork
from ._live import Trained
from ._memory import in_flight
from ._memory.credits import Credits
from ._memory.homes import Homes
from ._memory.slot import Kept, finish
from ._own import Own, Owned
from ._waits import PATIENCE_SECONDS, SLICE_MS, milliseconds, warn
from .batch import Batch
from .errors import BusyError, ClosedError, TimedOutError
from .values import EpochEnd, Grant, Position, UpcomingBatch

Event = Union[Batch, EpochEnd, None]

_next = _abi.next_event
_header_at = _abi.BatchHeader.from_address
_NO_EPOCH = (1 << 64) - 1  # while the library has put none into place
_LEAVES_LOOP = ("POP_TOP", "POP_ITER")
_LAST_SLICE_MS = 150  # the last one is long enough for the daemon to be asked what it waits for
_SHORT_MS = 1  # while copies to a GPU are under way: slots go back when they are done


class Subscription(Trained, Own):
    """Made by `Feed.subscribe()`. Iterating yields batches, epoch after epoch, until the counted
    epochs are over.

    Asking for the next batch does not release the one before: a batch is held until it is released,
    or its last reference is gone. In a `for` loop that is the loop's variable, and what the body
    keeps. A wait of more than a second with all credits out gives a RuntimeWarning that names,
    once, what of each batch is alive. A queue's batch counts as done with once the loop asks for
    the next one, whatever views of it are alive; with `next()` alone, once it was released, or by
    `batch.done()`. One that a loop leaves by an exception or `break` is undone, and goes to another
    worker; after `break` a RuntimeWarning says so, once.

    A wait that is interrupted, as by Ctrl-C, has no effect: what it would have returned comes with
    the next call.

    Lifetime: its batches outlive it. Threads: one at a time is in `next()`, of all subscriptions of
    a connection; `close()` from any.
    """

    def __init__(self, owned: Owned, connection: Own, homes: Homes, timeout: float,
                 in_queue: bool = False, feed: Any = None) -> None:
        """Takes ownership of a bw_subscription, of this Feed. `homes` are those of the connection, which it
        keeps open."""
        self._in_queue = in_queue
        self._owned: Optional[Owned] = owned
        raw = self._raw = owned.handle.value
        self._connection = connection
        self._feed = feed
        self._homes = homes
        self._lock = threading.Lock()  # held during a call with the handle
        self._closed = False
        self._generation = _fork.generation
        self._out = ctypes.c_void_p()
        self._unseen: Optional[Owned] = Owned(self._out, _abi.return_undone)
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
        self._warned_of_break = False
        self._loop: Callable[[], Optional[Batches]] = lambda: None  # the iterator that is valid
        self._back: Optional[List[Event]] = None  # what an interrupted call did not hand out
        self._epoch.value = _NO_EPOCH

    # ---- batches ----------------------------------------------------------------------------

    def next(self, timeout: Optional[float] = None) -> Event:
        """The next batch; or EpochEnd after the last one of an epoch; or None, when the counted
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
        arrived: List[Event] = []
        try:
            try:
                with self._lock:
                    self._take(timeout, arrived)
            finally:
                if self._closed:
                    self._free()
        except BaseException:
            if arrived:
                self._back = arrived  # no call in here, so no signal's handler runs
            raise
        return arrived[0]

    def _trained_feed(self) -> Any:
        return self._feed

    def _refuse_second(self) -> None:
        """Raises if the lock is taken. The caller then takes it by `with`, since Ctrl-C can leave a
        call of acquire() with the lock taken, and nobody to give it back."""
        if self._lock.locked():
            raise BusyError("another thread waits for this subscription's next batch. One thread at a "
                            "time uses a connection: let each thread that waits connect() once")

    def _take(self, timeout: float, arrived: List[Event]) -> None:
        """Puts the next event into `arrived`. What an interrupted call has left comes first: an
        event that it did not hand out, or what the library has put into place."""
        if self._closed:
            raise ClosedError("this subscription was closed")
        if self._back is not None:
            arrived.append(self._back[0])
            self._back = None
            return
        if in_flight.pending:
            in_flight.reap()
        if self._out.value is not None:
            status = _abi.OK
        elif self._epoch.value != _NO_EPOCH:
            status = _abi.EPOCH_END
        else:
            status = _next(self._raw, SLICE_MS if timeout > 0.1 and not in_flight.pending else 0,
                           self._out_place, self._epoch_place)
            if status == _abi.TIMED_OUT:
                status = self._wait(timeout)
        if status == _abi.OK:
            self._epoch.value = _NO_EPOCH
            Batch(self._out, self._homes, self._in_queue, arrived)
            batch: Any = arrived[0]
            self._credits.note(batch._slot)
        elif status == _abi.EPOCH_END:
            end = EpochEnd(self._epoch.value)
            self._epoch.value = _NO_EPOCH
            arrived.append(end)
        else:
            _abi.check(status)
            arrived.append(None)

    def _warn_of_break(self, frame: Optional[FrameType], header: Any) -> None:
        """What a loop that was left by `break` worked on may well be done."""
        if self._warned_of_break or self._generation != _fork.generation or not _breaks(frame):
            return
        self._warned_of_break = True
        warn(f"a loop over a queue ended by break with batch {header.index} of epoch {header.epoch} "
             "undone: it goes to another worker. Call batch.done() before break if it is done")

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
            if not self._warned and time.monotonic() - started > PATIENCE_SECONDS:
                self._warn_of_credits()
        return status

    def _why_nothing_came(self, timeout: float) -> str:
        words = re.sub(r"within \d+ ms", f"within {timeout:g} s", _abi.message(), count=1)
        return f"{words}; {self._credits.advice()}" if self._credits.all_out() else words

    def _warn_of_credits(self) -> None:
        if self._credits.all_out():
            self._warned = True
            warn(f"this loop has been waiting for a batch for {PATIENCE_SECONDS:g} s: "
                 f"{self._credits.advice()}")

    def __iter__(self) -> Batches:
        """Batches, across the ends of epochs; each says its `epoch`. They go on after the last
        batch that was handed out, and an iterator that was made before is valid no longer."""
        return Batches(self, False)

    def epoch(self) -> Batches:
        """Batches up to the next end of an epoch; otherwise as `iter()`."""
        return Batches(self, True)

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
        position: Position = self._with_handle(self._position)
        return position

    def _position(self, handle: int) -> Position:
        raw, arrived = _abi.Position(), self._arrived()
        if arrived is None:
            _abi.check(_abi.subscription_position(handle, ctypes.byref(raw)))
            return Position.of(raw)
        # The library has handed it out, and the program does not have it: a position is a whole
        # step, and the last batch of a step moves it.
        _abi.check(_abi.batch_position(arrived, ctypes.byref(raw)))
        after, header = Position.of(raw), _header_at(_abi.batch_get_header(arrived))
        grant = self.grant
        first = grant.rank * grant.batches_per_step if grant.ranks > 1 else 0
        ends_step = header.index % header.world == first + grant.batches_per_step - 1
        if header.rehearsal or self._in_queue or not ends_step:
            return after
        return after._replace(step=after.step - 1)

    def _arrived(self) -> Optional[int]:
        """The handle of a batch that an interrupted call has left."""
        if self._back is not None:
            return self._back[0]._slot.handle if isinstance(self._back[0], Batch) else None
        return self._out.value

    @property
    def steps(self) -> int:
        """The number of global steps of the epoch that `position` names."""
        steps = ctypes.c_uint64()
        self._with_handle(
            lambda handle: _abi.check(_abi.subscription_steps(handle, None, ctypes.byref(steps))))
        return steps.value

    def upcoming(self, n: int, timeout: Optional[float] = None) -> List[UpcomingBatch]:
        """The next `n` batches, 1 to 1024, in their order, as the plans have them: shapes and frames
        are known before any data are read. Fewer where an epoch is not planned yet, and none of an
        epoch after the next. Waits up to `timeout` seconds (None: `self.timeout`) for the daemon's
        answer, as a rule about a millisecond.

        Errors: InvalidArgumentError for another `n`; UnsupportedError: a daemon of version 0.2 or
        older, or several endpoints; TimedOutError, and those of `next()`.
        """
        limit = milliseconds(self.timeout if timeout is None else timeout, "timeout")
        count = ctypes.c_size_t(max(n, 0))
        batches = (_abi.Upcoming * min(count.value, _abi.MAX_UPCOMING))()
        self._with_handle(lambda handle: _abi.check(_abi.subscription_upcoming(
            handle, limit, batches, ctypes.byref(count))))
        return [UpcomingBatch.of(batches[i]) for i in range(count.value)]

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
            self._raw = self._back = None
            gone = self._unseen, self._owned
            self._unseen = self._owned = None
        finally:
            self._lock.release()
        del gone  # with the lock free

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._generation == _fork.generation:  # a child that leaves the block has nothing to end
            self.close()


class Batches:
    """The iterator of a loop over a subscription. An exception that ends one step, as of Ctrl-C,
    does not end it. Of a queue it keeps the batch that is worked on, until the next step says that
    it is done. A newer one of the same subscription ends it, and a queue's batch goes back undone.

    Errors: as Subscription.next(); ClosedError when there is a newer one.
    Threads: one at a time; a step that is under way in another thread ends as if it were alone."""

    __slots__ = ("_subscription", "_one_epoch", "_owns", "_kept", "_keeper", "_over",
                 "__weakref__")

    def __init__(self, subscription: Subscription, one_epoch: bool, owns: bool = False) -> None:
        """`owns`: the subscription ends with the last batch."""
        self._kept = Kept()
        self._keeper = weakref.ref(self._kept)
        self._subscription = subscription
        self._one_epoch = one_epoch
        self._owns = owns
        self._over = False
        older = subscription._loop()
        subscription._loop = weakref.ref(self)
        if older is not None:
            older._kept.clear()

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        subscription = self._subscription
        if subscription._loop() is not self and not self._over:
            self._kept.clear()
            raise ClosedError("this iterator ended with a newer one: of a subscription's iterators "
                              "only the latest one is valid, and it goes on after the last batch "
                              "that was handed out")
        if self._kept:
            finish(self._kept[0])
            self._kept.clear()
        while not self._over:
            event: Any = subscription.next()
            # No call until it is returned: between two of them no signal's handler runs.
            if event.__class__ is Batch:
                if subscription._in_queue:
                    slot = event._slot
                    slot.keeper = self._keeper
                    self._kept += slot,
                return event  # type: ignore[no-any-return]
            if event is None or self._one_epoch:
                self._over = True
        if self._owns:
            subscription.close()
        raise StopIteration

    def close(self) -> None:
        """Ends the loop: the batch that is worked on goes back, undone if it is a queue's."""
        self._over = True
        self._kept.clear()
        if self._owns:
            self._subscription.close()

    def __del__(self) -> None:
        # An interrupt may have ended what made this, and may end this: what is kept goes in any case.
        kept = getattr(self, "_kept", None)
        if kept and not kept[0].done and not sys.is_finalizing():
            self._subscription._warn_of_break(sys._getframe().f_back, kept[0].header)


def _breaks(frame: Optional[FrameType]) -> bool:
    """Whether this frame, or one that a generator in between was made by, leaves a loop by `break`
    or `return`: then it takes the loop's iterator off its stack, and an exception does not."""
    while frame is not None:
        name = opcode.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
        if name in _LEAVES_LOOP:
            return True
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            return False
        frame = frame.f_back
    return False
