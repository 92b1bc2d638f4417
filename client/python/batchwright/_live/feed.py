"""Live feeds: sequences that are made while they are trained on.

    rollouts = batchwright.connect().live("rollouts")
    with rollouts.producer("actor-07") as out:
        while claim := out.claim(16, timeout=600):
            group = out.group(16)
            for tokens, reward in generate(prompt, claim.version):
                out.push(tokens=tokens, reward=reward, version=claim.version, group=group)

and the trainer, whose batches come as those of any feed:

    for batch in dataset:
        loss = (per_row(model(batch.torch("tokens"))) * torch.from_numpy(batch.weights)).sum()
        ...
        dataset.advance(version := version + 1)       # before the weights are sent out
"""

from __future__ import annotations

import ctypes
import time
from typing import Any, NamedTuple, Optional, Tuple

from .. import _abi
from .._own import Own, Owned
from .._waits import SLICE_MS, interruptible, milliseconds
from ..errors import InvalidArgumentError, TimedOutError, UnsupportedError
from .producer import Producer
from ..values import Field


class Limits(NamedTuple):
    """What a live feed's sequences are held to."""

    max_length: int  #: frames of the longest; 0: no limit
    max_bytes: int  #: of all fields of a sequence; 0: no limit
    allow_nan: bool  #: whether numbers may be NaN or infinite
    pushed: int  #: so many of the feed's fields, the first ones, are pushed
    joins: Optional[str]  #: the feed whose rows have the others; None: there are none


class LiveFeed(Own):
    """A live feed, for those that make its sequences and those that train on them. Made by
    `Connection.live()`. Its batches come by `feed`.

    Errors of its calls: UnsupportedError (an older daemon, or several endpoints), TimedOutError,
    DisconnectedError; BusyError, while another thread waits for a batch on the connection."""

    def __init__(self, connection: Any, feed: Any) -> None:
        """A Connection, and a Feed of it. Errors: InvalidArgumentError for a feed that has a dataset."""
        limits = feed.limits
        if limits is None:
            raise InvalidArgumentError(f'feed "{feed.name}" has a dataset; only live feeds have '
                                       "producers and versions")
        self._connection = connection
        self._name = feed.name.encode("utf-8", "surrogateescape")
        self.feed = feed
        self.limits: Limits = limits

    @property
    def name(self) -> str:
        name: str = self.feed.name
        return name

    @property
    def fields(self) -> Tuple[Field, ...]:
        """What a sequence that is pushed is made of, in the order of the feed."""
        fields: Tuple[Field, ...] = self.feed.fields[:self.limits.pushed]
        return fields

    def producer(self, name: Optional[str] = None, *, area_bytes: int = 1 << 26) -> Producer:
        """Becomes a producer, with a session of its own with the daemon.

        name: 1 to 64 bytes, the same after a restart, so that its numbers go on where they were; one
          producer at a time has it. None: one that is drawn at random.
        area_bytes: memory that is shared with a daemon on this machine, into which sequences are
          written; the daemon may grant less. 0: they travel as messages.

        Errors: BusyError (the name is in use), DoesNotFitError (too many producers), and those of
        `connect()`."""
        named = None if name is None else name.encode("utf-8", "surrogateescape")
        if area_bytes < 0:
            raise InvalidArgumentError(f"area_bytes is {area_bytes}; 0 and up is allowed")
        options = _abi.ProduceOptions(ctypes.sizeof(_abi.ProduceOptions), self._name, named,
                                      area_bytes, SLICE_MS)

        def ask() -> Owned:
            made = ctypes.c_void_p()
            owned = Owned(made, _abi.producer_close)
            with self._connection._handle() as raw:
                _abi.check(_abi.produce(raw, ctypes.byref(options), ctypes.byref(made)))
            return owned

        return Producer(interruptible(ask), self.name, self.fields)

    def advance(self, version: int, *, restored: bool = False, replays: bool = False) -> None:
        """Announces a version of the model, 0 to 2^62. Call it before the weights are sent out:
        producers may push the version from then on. A lower one than the last is ignored.

        restored: the model is one of a checkpoint, and the version may be lower.
        replays: then the trainer takes the steps behind the checkpoint once more, as it took them.
          Otherwise it goes on with new ones, and what was made with a later version is of a line
          that was given up."""
        if isinstance(version, bool) or not 0 <= version <= 1 << 62:
            raise InvalidArgumentError(f"version is {version!r}; it is 0 to 2^62")

        def ask() -> None:
            with self._connection._handle() as raw:
                _abi.check(_abi.advance(raw, self._name, version, restored, replays))

        interruptible(ask)

    def wait_version(self, above: int, timeout: float = 60.0) -> int:
        """The version that was announced last, once it is above `above`. Errors: TimedOutError."""
        end = time.monotonic() + milliseconds(timeout, "timeout") / 1000
        version = ctypes.c_uint64()
        while True:
            left = max(0, int((end - time.monotonic()) * 1000))
            with self._connection._handle() as raw:
                status = _abi.wait_version(raw, self._name, above, min(left, SLICE_MS),
                                           ctypes.byref(version))
            if status != _abi.TIMED_OUT:
                _abi.check(status)
                return version.value
            if left == 0:
                raise TimedOutError(f'no version of feed "{self.name}" above {above} within '
                                    f"{timeout:g} s; the last one is {version.value}")

    def keep_from(self, step: int) -> None:
        """Has steps from this one on kept, where a trainer may begin again: say it with each
        checkpoint. They are kept beside the pool, in as many bytes as it has, and the oldest go first. Errors:
        UnsupportedError (an older daemon)."""
        if isinstance(step, bool) or not 0 <= step < 1 << 64:
            raise InvalidArgumentError(f"step is {step!r}; it is 0 and up")

        def ask() -> None:
            with self._connection._handle() as raw:
                _abi.check(_abi.keep_from(raw, self._name, step))

        interruptible(ask)

    def end(self) -> None:
        """Ends the feed: claims and pushes that wait return None, what is there is delivered, and
        behind it the trainers' loops end."""

        def ask() -> None:
            with self._connection._handle() as raw:
                _abi.check(_abi.end_feed(raw, self._name))

        interruptible(ask)

    def __repr__(self) -> str:
        fields = ", ".join(f"{each.name} {each.dtype}" for each in self.fields)
        return f"<batchwright.LiveFeed {self.name!r} of {fields}>"


class Trained:
    """What a trainer says of a live feed, for objects that have its batches and know their feed."""

    feed: Any

    def _trained_feed(self) -> Any:
        return self.feed

    def _refuse_live(self, call: str) -> None:
        """Errors: UnsupportedError for a live feed."""
        feed = self._trained_feed()
        if feed._is_live:
            raise UnsupportedError(f'{call}: feed "{feed.name}" is live, and has one epoch, which goes '
                                   "on for as long as sequences come; a loop over it always goes on")

    def advance(self, version: int, *, restored: bool = False, replays: bool = False) -> None:
        """Announces a version of the model; see `LiveFeed.advance()`. Errors: InvalidArgumentError
        for a feed that has a dataset."""
        self._trained_feed().live.advance(version, restored=restored, replays=replays)

    def keep_from(self, step: int) -> None:
        """Has the feed keep its steps from this one on; see `LiveFeed.keep_from()`. Errors:
        InvalidArgumentError for a feed that has a dataset."""
        self._trained_feed().live.keep_from(step)
