"""Connections to daemons, and the feeds that they serve."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from typing import (
    Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple, Union,
)

from . import _abi, _fork, _ranks
from ._memory import in_flight
from ._memory.homes import Homes
from ._endpoints import absolute, encoded, program_name
from ._live import Limits, LiveFeed
from ._own import Own, Owned
from ._waits import interruptible, milliseconds, warn
from .batch import Batch
from .errors import (
    ClosedError, Error, InvalidArgumentError, NotFoundError, StoreUnavailableError,
)
from .subscription import Batches, Subscription
from .values import LAYOUTS, Field, Position, fingerprint_of

MODES = {"replica": _abi.REPLICA, "sharded": _abi.SHARDED, "queue": _abi.QUEUE}
_LOOK_SECONDS = 1.0  # for the daemon's answer to why a feed is waited for


class ConnectionInfo:
    """State of a connection."""

    __slots__ = ("reconnects", "servers", "inline", "inline_reason")

    def __init__(self, raw: _abi.ConnectionInfo) -> None:
        self.reconnects: int = raw.reconnects  #: how often a daemon was lost and found again
        self.servers: int = raw.servers  #: endpoints
        self.inline = bool(raw.inline_batches)  #: batches of a server at least come as messages
        reason = raw.inline_reason
        self.inline_reason = _abi.text(reason) if reason is not None else None  #: why


class _Look(NamedTuple):
    """What a feed looks like."""

    sequences: int
    world: int
    layout: str
    fields: Tuple[Field, ...]
    limits: Optional[Limits]

    @classmethod
    def of(cls, raw: _abi.Feed) -> _Look:
        return cls(raw.sequences, raw.world, LAYOUTS[raw.layout],
                   tuple(Field.of(raw.fields[i].contents) for i in range(raw.field_count)),
                   Limits(raw.max_length, raw.max_bytes, bool(raw.allow_nan), raw.pushed_count,
                          _abi.text(raw.joins) if raw.joins else None) if raw.live else None)


class Feed(Own):
    """A stream of batches that can be subscribed to. Iterating it is an endless run over epochs.

    A feed that could not be served when the connection was made is waited for: by subscribe(), and
    by what says how it looks, up to the connection's `timeout` and the daemon's `feed_grace`. After
    a second a RuntimeWarning has the daemon's reason, and in the end the error.
    """

    def __init__(self, connection: Connection, name: str, look: Optional[_Look]) -> None:
        self._connection = connection
        self.name = name
        self._look = look  # None: it was not served

    def _known(self) -> _Look:
        if self._look is None:
            self._look = self._connection._await_feed(self.name)
        return self._look

    @property
    def sequences(self) -> int:
        """Of the dataset, when the connection was made."""
        return self._known().sequences

    @property
    def world(self) -> int:
        """Batches of a global step."""
        return self._known().world

    @property
    def layout(self) -> str:
        """"batch-major" or "time-major"."""
        return self._known().layout

    @property
    def fields(self) -> Tuple[Field, ...]:
        """Its fields, in the order of the dataset."""
        return self._known().fields

    @property
    def limits(self) -> Optional[Limits]:
        """What a live feed's sequences are held to; None for a feed that has a dataset."""
        return self._known().limits

    @property
    def _is_live(self) -> bool:
        return self._look is not None and self._look.limits is not None

    @property
    def live(self) -> LiveFeed:
        """Its producers and versions. Errors: InvalidArgumentError for a feed that has a dataset."""
        return LiveFeed(self._connection, self)

    def field(self, name: str) -> Field:
        """Errors: NotFoundError, which lists the fields."""
        for each in self.fields:
            if each.name == name:
                return each
        raise NotFoundError(f'feed "{self.name}" has no field "{name}"; it has ' +
                            ", ".join(f'"{each.name}"' for each in self.fields))

    def subscribe(self, *, mode: Optional[str] = None, rank: Optional[int] = None,
                  ranks: Optional[int] = None, window: int = 4, epoch: int = 0, step: int = 0,
                  epochs: int = 0, position: Optional[Position] = None,
                  fingerprint: Optional[str] = None, terms: str = "", worst_first: int = 0,
                  writable: bool = False, timeout: float = 60.0,
                  ranks_here: Optional[int] = None, until_epoch: int = 0) -> Subscription:
        """Subscribes; the daemon starts to prepare batches at once.

        mode: "replica", every batch; "sharded", of each global step the share of `rank` of `ranks`,
          which must divide `world`; "queue", whatever batch is next. None: sharded when `rank` and
          `ranks` are given, otherwise replica. Sharded without them takes them from where
          `batchwright.torch.BatchDataset` does.
        window: batches that are held at most. A `for` loop holds one while it waits for the next.
          A RuntimeWarning says so when the feed grants fewer.
        epoch, step: where to start. position: the same, and its plan must be the daemon's, else
          FingerprintMismatchError says what differs; `fingerprint` alone asks for that, too.
        terms: `Subscription.terms` of where the fingerprint is from; the error then names each
          setting that is another, with both values.
        epochs: how many, the first one counts however late it is begun; 0: no end.
        until_epoch: how many epochs a queue has, however late its workers begin; 0: no such end.
        worst_first: so many batches of the first epoch, the largest, come before all others.
        writable: True lets arrays and tensors be written to in place. No other subscription or process
          sees what is written, and it goes with the batch. Each batch is a copy,
          in memory for as many as are held at once and one, kept until the subscription is closed.
          They are not page-locked for a GPU: `to("cuda")` copies them to pinned memory first.
        timeout: seconds that `next()` and iterating wait for a batch.
        ranks_here: how many of the ranks are on this host, whose daemon keeps a slot for each. None:
          LOCAL_WORLD_SIZE, SLURM_STEP_TASKS_PER_NODE, SLURM_NTASKS_PER_NODE or
          OMPI_COMM_WORLD_LOCAL_SIZE, and without these it is unknown.

        Errors: InvalidArgumentError, NotFoundError, DoesNotFitError (fewer slots than ranks here and
        one more; it says how many are needed), FingerprintMismatchError, TimedOutError, and
        what the feed itself failed with.
        """
        if mode is None:
            mode = "replica" if rank is None and ranks is None else "sharded"
        if mode not in MODES:
            raise InvalidArgumentError(f"mode is {mode!r}; it is one of {', '.join(MODES)}")
        milliseconds(timeout, "timeout")
        if position is not None:
            epoch, step, fingerprint = position.epoch, position.step, position.fingerprint
        if mode == "sharded" and rank is None and ranks is None:
            rank, ranks = _ranks.resolve(None, None)
        expected = fingerprint_of(fingerprint) if fingerprint is not None else None
        options = _abi.SubscribeOptions(
            ctypes.sizeof(_abi.SubscribeOptions), self.name.encode("utf-8", "surrogateescape"),
            MODES[mode], _abi.AUTO if rank is None else rank, _abi.AUTO if ranks is None else ranks,
            _unsigned("window", window, 32), _unsigned("epoch", epoch), _unsigned("step", step),
            _unsigned("epochs", epochs), ctypes.pointer(expected) if expected is not None else None,
            _unsigned("worst_first", worst_first, 32), 0, 1 if writable else 0,
            _unsigned("ranks_here", ranks_here or 0, 32),
            terms.encode("utf-8", "surrogateescape") or None, _unsigned("until_epoch", until_epoch))
        connection = self._connection
        made = Subscription(connection._subscribe(options), connection, connection._homes, timeout,
                            in_queue=mode == "queue", feed=self)
        _explain_faults()
        asked = window * connection._servers
        if made.grant.window < asked:
            warn(f'feed "{self.name}" grants a window of {made.grant.window}, and {asked} were asked '
                 "for: its max_window, or its slots, allow no more")
        return made

    def epoch(self, number: int, **options: Any) -> Iterator[Batch]:
        """The batches of one epoch. `options` are those of `subscribe()`.

            for batch in feed.epoch(0):
                train(batch["features"], batch.lengths)
        """
        subscription = self.subscribe(epoch=number, epochs=1, **options)
        return Batches(subscription, one_epoch=True, owns=True)

    def __iter__(self) -> Iterator[Batch]:
        """Every batch of epoch 0, then of epoch 1, without end."""
        return Batches(self.subscribe(), one_epoch=False, owns=True)

    def __repr__(self) -> str:
        if self._look is None:
            return f"<batchwright.Feed {self.name!r}: not served when this connection was made>"
        fields = ", ".join(f"{each.name} {each.dtype}" for each in self.fields)
        what = "live," if self._look.limits else f"{self.sequences} sequences of"
        return f"<batchwright.Feed {self.name!r}: {what} {fields}>"


def _explain_faults() -> None:
    """A write to what may only be read ends the process; at least it says why."""
    if os.environ.get("BATCHWRIGHT_FAULT_HANDLER") != "0":
        _abi.explain_faults()  # without it all else works


def _unsigned(what: str, value: int, bits: int = 64) -> int:
    """ctypes cuts numbers off in silence. Errors: InvalidArgumentError."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not (
            0 <= value.__index__() < 1 << bits):
        raise InvalidArgumentError(f"{what} is {value!r}; it is a whole number, 0 and up")
    return value.__index__()


class Connection(Own):
    """A connection to a daemon, or to several that serve shards of a dataset. Made by `connect()`.

    Lifetime: closing it ends its subscriptions; batches that are held stay good.
    Threads: one at a time subscribes or waits for a batch. `close()` from any, at any time: a call
    of another thread that is under way ends first, or with ClosedError or DisconnectedError.
    """

    def __init__(self, owned: Owned, asking: Callable[..., Connection]) -> None:
        """Takes over a bw_connection. `asking` makes another to the same daemons, by which batches
        come as messages: what only asks takes no slot from those that train."""
        self._owned: Optional[Owned] = owned
        self._raw: Optional[int] = owned.handle.value
        self._asking = asking
        self._generation = _fork.generation
        self._lock = threading.Lock()  # guards the three around it, for moments
        self._subscribing = threading.Lock()  # by the main thread, interrupted calls included
        self._closed = False
        self._users = 0  # calls with the handle; the last one out frees it when it is closed
        self._servers = self.info.servers
        self._homes = Homes(self._servers)
        self.feeds: Dict[str, Feed] = {}  #: by name, those that are served
        self._absent: Dict[str, Feed] = {}
        #: Feeds that are configured and were not served when the connection was made: why not, by
        #: name. feed() knows them as well.
        self.absent: Dict[str, str] = {}
        self._read_feeds(owned.handle)

    def _read_feeds(self, raw: ctypes.c_void_p) -> None:
        for i in range(_abi.feed_count(raw)):
            feed = _abi.feed_at(raw, i).contents
            name = _abi.text(feed.name)
            self.feeds[name] = Feed(self, name, _Look.of(feed))
        for i in range(_abi.absent_feed_count(raw)):
            absent = _abi.absent_feed_at(raw, i).contents
            name = _abi.text(absent.name)
            self._absent[name] = Feed(self, name, None)
            self.absent[name] = _abi.text(absent.reason)

    def feed(self, name: str) -> Feed:
        """The feed of this name, served or not: subscribing waits for one that is not. Errors:
        NotFoundError, which lists the feeds."""
        found = self.feeds.get(name) or self._absent.get(name)
        if found is None:
            listed = [f'"{each}"' for each in self.feeds]
            listed += [f'"{each}", not served ({why})' for each, why in self.absent.items()]
            raise NotFoundError(f'the daemon has no feed "{name}"; it has ' +
                                (", ".join(listed) or "none"))
        return found

    def live(self, name: str) -> LiveFeed:
        """The live feed of this name: its producers and versions. Errors: NotFoundError, which lists
        the feeds; InvalidArgumentError for one that has a dataset."""
        return self.feed(name).live

    def _await_feed(self, name: str) -> _Look:
        """What a feed looks like that was not served: waits until it is. Errors: as
        Feed.subscribe()."""
        with self._asking() as asking:
            if name not in asking.feeds:
                asking.feed(name).subscribe(window=1, epochs=1).close()
        with self._asking() as asking:
            look = asking.feed(name)._look
            if look is None:
                raise StoreUnavailableError(f'feed "{name}" is not served: {asking.absent[name]}')
            return look

    @property
    def info(self) -> ConnectionInfo:
        """Whether batches lie in shared memory, and how often a daemon was found again."""
        raw = _abi.ConnectionInfo(ctypes.sizeof(_abi.ConnectionInfo))
        with self._handle() as handle:
            _abi.check(_abi.connection_get_info(handle, ctypes.byref(raw)))
            return ConnectionInfo(raw)  # it copies a text that is the connection's

    @contextlib.contextmanager
    def _handle(self) -> Iterator[int]:
        """The handle, which close() leaves alone until the block ends."""
        if self._generation != _fork.generation:
            raise _fork.refuse("this connection")
        with self._lock:
            raw = self._raw
            if raw is None or self._closed:
                raise ClosedError("this connection was closed")
            self._users += 1
        try:
            yield raw
        finally:
            with self._lock:
                self._users -= 1
            self._free()

    def _free(self) -> None:
        with self._lock:
            if not self._closed or self._users > 0:
                return
            self._raw = None
            owned, self._owned = self._owned, None  # the lock is free when it goes

    def _subscribe(self, options: _abi.SubscribeOptions) -> Owned:
        def ask() -> Owned:
            made = ctypes.c_void_p()
            owned = Owned(made, _abi.unsubscribe)
            with self._handle() as raw:
                _abi.check(_abi.subscribe(raw, ctypes.byref(options), ctypes.byref(made)))
            return owned

        name = _abi.text(options.feed)
        return interruptible(ask, self._subscribing, lambda: self._warn_of_absent(name))

    def _warn_of_absent(self, name: str) -> None:
        """Says why a subscription is waited for: a feed may be absent by now that was served."""
        try:
            with self._asking(timeout=_LOOK_SECONDS) as asking:
                why = asking.absent.get(name)
        except Error:
            return  # the wait itself says what it ends with
        if why is not None:
            warn(f'feed "{name}" is not served, and is waited for: {why}')

    def close(self) -> None:
        """Ends the connection. Waits for copies to a GPU that are under way. Twice is fine."""
        if self._closed:
            return
        if self._generation != _fork.generation:
            raise _fork.refuse("this connection")
        self._closed = True
        in_flight.drain()
        self._homes.clear()
        self._free()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._generation == _fork.generation:  # a child that leaves the block has nothing to end
            self.close()


def connect(endpoint: Union[str, Sequence[str], None] = None, *, timeout: float = 10.0,
            reconnect: float = 60.0, program: Optional[str] = None,
            server_key: Optional[str] = None, public_key: Optional[str] = None,
            secret_key: Optional[str] = None, inline: bool = False) -> Connection:
    """Connects to the daemon at `endpoint`, and waits for one that is still starting.

    endpoint: "ipc://" and the path of its socket, or "tcp://HOST:PORT"; several, as a list or with
      commas between, are daemons that serve shards of one dataset. None: what the environment's
      BATCHWRIGHT_ENDPOINT says, otherwise the default one.
    timeout: seconds to wait for it, and for each answer to a subscription.
    reconnect: seconds for which a daemon that goes away is looked for; 0: not at all.
    program: how the daemon's logs call this client; None: the script's name.
    server_key, public_key, secret_key: CURVE keys as Z85 text; all or none.
    inline: True has batches come as messages, with a copy, where memory could be shared.

    Errors: TimedOutError, which names the endpoint; InvalidArgumentError, UnsupportedVersionError,
    UnsupportedError, SystemRefusedError.
    """
    if endpoint is None:
        endpoint = os.environ.get("BATCHWRIGHT_ENDPOINT") or None
    if isinstance(endpoint, str):
        endpoint = endpoint.split(",")
    place = None if endpoint is None else ",".join(map(absolute, endpoint))
    named = encoded("endpoint", place)
    options = _abi.ConnectOptions(
        ctypes.sizeof(_abi.ConnectOptions), encoded("program", program) or program_name(),
        milliseconds(timeout, "timeout", 1), milliseconds(reconnect, "reconnect"),
        encoded("server_key", server_key), encoded("public_key", public_key),
        encoded("secret_key", secret_key), 1 if inline else 0, 0)

    def ask() -> Owned:
        made = ctypes.c_void_p()
        owned = Owned(made, _abi.close)
        _abi.check(_abi.connect(named, ctypes.byref(options), ctypes.byref(made)))
        return owned

    asking = functools.partial(
        connect, place, timeout=timeout, reconnect=0.0, program=program, server_key=server_key,
        public_key=public_key, secret_key=secret_key, inline=True)
    return Connection(interruptible(ask), asking)
