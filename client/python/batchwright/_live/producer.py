"""Producers, which push sequences to a live feed."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import secrets
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from .. import _abi, _fork
from .columns import Columns, name_rows, origins, raw_row
from .._own import Own, Owned
from .._storage_abi import key_bytes
from .room import Room
from .rows import Row
from .._waits import milliseconds
from ..errors import BusyError, ClosedError, Error, InvalidArgumentError
from ..values import Field

_CLOSE_MS = 10_000
_NO_LIMIT = 1 << 40  # ms


@dataclasses.dataclass(frozen=True)
class Claim:
    """So many sequences may be begun, with this version of the model."""

    version: int
    count: int


class Group(NamedTuple):
    """Sequences that belong together, such as the answers to one prompt."""

    id: int
    size: int


class ProducerInfo:
    """How a producer does."""

    __slots__ = ("name", "incarnation", "next", "version", "area_bytes", "area_used", "reconnects")

    def __init__(self, raw: _abi.ProducerInfo) -> None:
        self.name = _abi.text(raw.name)
        self.incarnation: int = raw.incarnation  #: of the feed; another one knows no earlier numbers
        self.next: int = raw.next  #: number of the next sequence that will be accepted
        self.version: int = raw.version  #: the last that the producer heard of
        self.area_bytes: int = raw.area_bytes  #: 0: sequences travel as messages
        self.area_used: int = raw.area_used
        self.reconnects: int = raw.reconnects  #: how often the daemon was lost and found again


class Producer(Own):
    """A producer of a live feed, made by `LiveFeed.producer()`.

    A push returns when the daemon has the sequence: what was accepted is delivered even if its
    producer ends. One that does not fit waits, which is how a slow trainer holds its producers back.
    When the daemon goes away, calls look for it for as long as the connection's `reconnect` says, and
    go on where they were.

    `timeout` is in seconds; None waits without end. A wait can be interrupted. After Ctrl-C in a push
    it is open whether the sequences are accepted: `info.next` tells after the next call.

    Threads: one at a time; another one gets BusyError. `close()` from any: a call that waits in
    another thread ends with ClosedError. Fork: a child gets ForkedError.
    """

    def __init__(self, owned: Owned, feed: str, fields: Sequence[Field]) -> None:
        """Takes ownership of a bw_producer."""
        self._owned: Optional[Owned] = owned
        self._limit_close(0)
        self._raw = owned.handle.value
        self._fields = tuple(fields)
        self._columns = Columns(feed, fields)
        self._generation = _fork.generation
        self._lock = threading.Lock()  # held during a call with the handle
        self._closed = False
        self._version: Optional[int] = None  # of the last claim
        self._number = ctypes.c_uint64()
        self._number_place = ctypes.byref(self._number)

    def _limit_close(self, limit: int) -> None:
        owned = self._owned
        if owned is not None:
            owned.free = functools.partial(_abi.producer_close, owned.handle, limit)

    # ---- the handle -------------------------------------------------------------------------

    def _with_handle(self, call: Callable[[int], Any]) -> Any:
        if self._generation != _fork.generation:
            raise _fork.refuse("this producer")
        if self._lock.locked():
            raise BusyError("another thread is in a call on this producer")
        try:
            with self._lock:
                if self._closed:
                    raise ClosedError("this producer was closed")
                return call(self._raw)
        finally:
            if self._closed:
                self._free()

    def _until_done(self, raw: int, call: Callable[[], Any]) -> int:
        """Makes a call again and again while it waits; between two of them signals' handlers run.
        Errors: those of the call, ClosedError."""
        try:
            while True:
                status: int = call()
                if status != _abi.PENDING:
                    return _abi.check(status)
                if self._closed:
                    raise ClosedError("this producer was closed")
        except Error:
            raise
        except BaseException:
            _abi.producer_forget(raw)
            raise

    # ---- pushing ----------------------------------------------------------------------------

    def claim(self, count: int = 1, timeout: Optional[float] = None) -> Optional[Claim]:
        """Waits until so many sequences more may be begun without growing too stale, and says with
        which version. None: the feed has ended. A push uses up the oldest claim; one that comes to
        nothing is given back by `abandon()`.

        Errors: TimedOutError, which says whether pool, staleness or trainer is waited for;
        DoesNotFitError: so many can never be claimed."""
        limit, version = _limit(timeout), ctypes.c_uint64()
        if not 0 < count < 1 << 32:
            raise InvalidArgumentError(f"count is {count}; it is 1 and up")
        place = ctypes.byref(version)
        status = self._with_handle(lambda raw: self._until_done(
            raw, lambda: _abi.claim(raw, count, limit, place)))
        if status == _abi.END:
            return None
        self._version = version.value
        return Claim(version.value, count)

    def push(self, values: Optional[Mapping[str, Any]] = None, /, *,
             key: Union[str, bytes, None] = None, version: Optional[int] = None,
             version_newest: Optional[int] = None, group: Optional[Group] = None,
             weight: float = 1.0, of: Optional[Row] = None, timeout: Optional[float] = None,
             **fields: Any) -> Optional[int]:
        """Pushes a sequence, a value for each field by its name, and returns its number. None: the
        feed has ended. Fields that are called as an argument is are given in a dict.

        Values are as `DatasetWriter.add()` takes them: contiguous arrays and tensors of the field's
        dtype are read where they lie, numbers of Python are converted, names of categories, too.
        key: None: the producer's name and the sequence's number.
        version, version_newest: of the model, the oldest and the newest that had a part in it. None:
          that of the last claim, else the last that was heard of.
        group: one of `group()`. weight: of its rows.
        of: `batch.row(i)`, the row that it was made for, where the feed joins rows (`limits.joins`):
          it has as many frames from its start on as the sequence, and the fields that are not pushed.

        Errors: SchemaMismatchError, which names the field, what was found and what is allowed, NaN
        and infinity included unless the feed allows them; DoesNotFitError (longer or larger than the
        feed takes, or a group that is too large); InvalidArgumentError (a version that was never
        announced; a row of another feed); FingerprintMismatchError: the row's feed has other data or
        settings by now; TimedOutError: there was no room for it."""
        limit = _limit(timeout)
        given = fields if values is None else {**values, **fields}
        named = None if key is None else key_bytes(key)

        def push(raw: int) -> int:
            sequence, kept = self._columns.one(given, named)
            origin = self._origin(raw, version, version_newest, group, weight, of)
            place, about = ctypes.byref(sequence), ctypes.byref(origin)
            status = self._until_done(
                raw, lambda: _abi.push(raw, place, about, limit, self._number_place))
            del kept
            return status

        return None if self._with_handle(push) == _abi.END else self._number.value

    def push_many(self, sequences: Union[Sequence[Mapping[str, Any]], Mapping[str, Sequence[Any]]],
                  *, keys: Optional[Sequence[Union[str, bytes]]] = None, version: Any = None,
                  version_newest: Any = None, group: Union[Group, Sequence[Group], None] = None,
                  weight: Any = 1.0, of: Optional[Sequence[Row]] = None,
                  timeout: Optional[float] = None) -> range:
        """Pushes many sequences, and returns their numbers: those of all, and of fewer where the
        feed has ended. A call for 64 short ones costs a tenth of 64 calls.

        sequences: dicts by field, or one dict that has for each field the values of all: a list, or
          an array whose first axis is theirs.
        version, version_newest, group, weight: as `push()`; one for all, or one for each.
        of: as `push()`, one for each.

        Errors: those of `push()`, which name the sequence by its place. What does not fit the fields
        is found before anything is pushed; with any other error the sequences before it are
        accepted, and `accepted` of the error is their number."""
        limit, accepted = _limit(timeout), ctypes.c_size_t()

        def push(raw: int) -> range:
            many = self._columns.many(sequences, keys)
            table = self._origins(raw, many.count, version, version_newest, group, weight)
            rows = None if of is None else name_rows(table, of)
            about = table.__array_interface__["data"][0]
            place, address = ctypes.byref(accepted), many.address
            try:
                self._until_done(raw, lambda: _abi.push_many(raw, address, many.count, about, limit,
                                                             place))
            except Error as error:
                error.accepted = accepted.value
                raise
            del rows
            after = self._info(raw).next
            return range(after - accepted.value, after)

        numbers: range = self._with_handle(push)
        return numbers

    def reserve(self, length: int, *, key: Union[str, bytes, None] = None,
                version: Optional[int] = None, version_newest: Optional[int] = None,
                group: Optional[Group] = None, weight: float = 1.0, of: Optional[Row] = None,
                timeout: Optional[float] = None, **lengths: int) -> Room:
        """Room for a sequence that is written in place, `length` frames long; an independent field's
        length is given by its name. Pushed at the end of the `with` block, and given up when that
        ends by an exception:

            with out.reserve(100, tokens=7, version=claim.version) as room:
                room["features"][:] = features

        Errors: SchemaMismatchError, DoesNotFitError, TimedOutError; ClosedError: the feed has ended.
        """
        limit, made = _limit(timeout), ctypes.c_void_p()
        wanted = (ctypes.c_uint32 * len(self._fields))()
        for i, field in enumerate(self._fields):
            given = {"scalar": 1, "independent": None}.get(field.kind, length)
            given = lengths.pop(field.name, None) if given is None else given
            if given is None or not 0 <= given < 1 << 32:
                raise InvalidArgumentError(f'the length of field "{field.name}" is {given}; it is 0 and '
                                           "up, and an independent field needs one of its own")
            wanted[i] = given
        if lengths:
            raise InvalidArgumentError(f'there is a length of "{min(lengths)}", which is no independent '
                                       "field")
        named = None if key is None else key_bytes(key)

        def reserve(raw: int) -> Room:
            owned = Owned(made, _abi.room_drop)
            origin = self._origin(raw, version, version_newest, group, weight, of)
            place = ctypes.byref(made)
            if self._until_done(raw, lambda: _abi.reserve(raw, wanted, len(wanted), limit,
                                                          place)) == _abi.END:
                raise ClosedError("the feed has ended")
            return Room(owned, self._fields, list(wanted),
                        functools.partial(self._commit, owned.handle, named, origin, limit))

        room: Room = self._with_handle(reserve)
        return room

    def _commit(self, handle: ctypes.c_void_p, named: Optional[bytes], origin: _abi.Origin,
                limit: int) -> Optional[int]:
        size, about = len(named or b""), ctypes.byref(origin)
        status = self._with_handle(lambda raw: self._until_done(
            raw, lambda: _abi.commit(handle, named, size, about, limit, self._number_place)))
        if status == _abi.END:
            return None
        handle.value = None  # the library has freed it
        return self._number.value

    def _origin(self, raw: int, version: Optional[int], newest: Optional[int],
                group: Optional[Group], weight: float, of: Optional[Row]) -> _abi.Origin:
        if group is not None and not isinstance(group, Group):
            raise InvalidArgumentError(f"group is {group!r}; it is one of group(size)")
        size = ctypes.sizeof(_abi.Origin)
        number = self._or_last(raw, version)
        for what, value in (("version", number), ("version_newest", newest or 0)):
            if not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << 64:
                raise InvalidArgumentError(f"{what} is {value!r}; it is a whole number, 0 and up")
        own, members = group if group is not None else (_abi.NO_GROUP, 0)
        row = None if of is None else ctypes.pointer(raw_row(of))
        return _abi.Origin(size, number, newest or 0, own, members, weight, row)

    def _origins(self, raw: int, count: int, version: Any, newest: Any,
                 group: Union[Group, Sequence[Group], None], weight: Any) -> Any:
        own: Any = _abi.NO_GROUP
        members: Any = 0
        if isinstance(group, Group):
            own, members = group
        elif group is not None:
            own = np.fromiter((each.id for each in group), np.uint64)
            members = np.fromiter((each.size for each in group), np.uint32)
        return origins(count, self._or_last(raw, version), 0 if newest is None else newest, own,
                       members, weight)

    def _or_last(self, raw: int, version: Any) -> Any:
        if version is not None:
            return version
        return self._version if self._version is not None else self._info(raw).version

    # ---- groups and outcomes ----------------------------------------------------------------

    def group(self, size: int) -> Group:
        """A group of `size` sequences, whose number no other producer draws. Another producer may
        push members of it, too."""
        if not 0 < size < 1 << 32:
            raise InvalidArgumentError(f"size is {size}; it is 1 and up")
        return Group(secrets.randbits(63), size)

    def abandon(self, group: Union[Group, int, None] = None, count: int = 0) -> None:
        """Says that `count` members of the group will not come; 0: all that are missing. Without a
        group, that `count` claimed sequences will not; 0: all."""
        own = _abi.NO_GROUP if group is None else group.id if isinstance(group, Group) else group
        self._with_handle(lambda raw: _abi.check(_abi.abandon(raw, own, count)))

    def abandon_number(self, number: int) -> None:
        """Takes a sequence back, if it still waits."""
        self._with_handle(lambda raw: _abi.check(_abi.abandon_number(raw, number)))

    def outcomes(self, timeout: float = 10.0) -> Dict[str, int]:
        """How many of the producer's sequences are waiting, delivered, done, dropped_stale,
        abandoned, lost or unknown; how many pushes found no room in time (refused_full), and how
        many sequences were offered again (duplicates)."""
        total = _abi.OutcomesTotal(ctypes.sizeof(_abi.OutcomesTotal))
        limit = milliseconds(timeout, "timeout")
        self._with_handle(lambda raw: _abi.check(_abi.outcomes(raw, limit, ctypes.byref(total))))
        return {name: getattr(total, name) for name, _ in total._fields_ if name != "struct_size"}

    def outcomes_of(self, first: int, count: int = 1, timeout: float = 10.0) -> List[str]:
        """What became of the sequences from number `first` on, at most `count` of them and 65,536.
        Older ones than the last 65,536 are "unknown"."""
        limit, found = milliseconds(timeout, "timeout"), ctypes.c_size_t(max(count, 0))
        states = (ctypes.c_uint8 * min(found.value, _abi.MAX_OUTCOMES))()
        self._with_handle(lambda raw: _abi.check(_abi.outcomes_of(raw, first, limit, states,
                                                                 ctypes.byref(found))))
        return [_abi.OUTCOMES[state] for state in states[:found.value]]

    @property
    def info(self) -> ProducerInfo:
        """Its name, its next number, and how it does."""
        info: ProducerInfo = self._with_handle(lambda raw: ProducerInfo(self._info(raw)))
        return info

    @staticmethod
    def _info(raw: int) -> _abi.ProducerInfo:
        info = _abi.ProducerInfo(ctypes.sizeof(_abi.ProducerInfo))
        _abi.check(_abi.producer_get_info(raw, ctypes.byref(info)))
        return info

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the producer. What is accepted stays, claims end. Twice is fine."""
        if self._closed:
            return
        if self._generation != _fork.generation:
            raise _fork.refuse("this producer")
        self._closed = True
        self._limit_close(_CLOSE_MS)
        self._free()

    def _free(self) -> None:
        if not self._lock.acquire(False):
            return  # the call that is under way does it when it ends
        try:
            self._raw = None
            gone, self._owned = self._owned, None
        finally:
            self._lock.release()
        del gone  # with the lock free

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._generation == _fork.generation:  # a child that leaves the block has nothing to end
            self.close()


def _limit(timeout: Optional[float]) -> int:
    return _NO_LIMIT if timeout is None else milliseconds(timeout, "timeout")
