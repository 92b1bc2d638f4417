"""What a batch of a live feed says of its rows. All of them are copies, one entry a row; None for a
batch of a feed that has a dataset, except for the weights of one with `order = "file"`."""

from __future__ import annotations

import ctypes
import operator
from typing import Any, List, NamedTuple, Optional

import numpy as np

from .. import _abi
from ..errors import NotFoundError
from ..values import fingerprint_of, fingerprint_text

_F4, _I8, _U4 = np.dtype("<f4"), np.dtype("<i8"), np.dtype("<u4")


class Row(NamedTuple):
    """A row of a batch of a feed that has a dataset, for `Producer.push(of=...)`. Values alone: it may
    be kept, and sent to another process."""

    feed: str
    fingerprint: str  #: that the batch came with
    epoch: int
    ordinal: int
    start: int
    use: int  #: how often it came before in the epoch

    def _raw(self) -> _abi.Of:
        return _abi.Of(ctypes.sizeof(_abi.Of), self.feed.encode("utf-8", "surrogateescape"),
                       fingerprint_of(self.fingerprint), *self[2:])


class LiveRows:
    """For classes that have a slot."""

    __slots__ = ()

    def _held(self) -> Any:
        raise NotImplementedError

    def _live(self, which: str, dtype: np.dtype[Any]) -> Optional[np.ndarray[Any, Any]]:
        header = self._held().header
        address = getattr(header, which)
        if not address:
            return None
        return np.frombuffer(bytearray(ctypes.string_at(
            address, dtype.itemsize * header.sequences)), dtype)

    def row(self, i: int) -> Row:
        """What a sequence that is made for row `i` names, where a live feed joins the rows of this
        batch's feed to what is pushed. Errors: NotFoundError."""
        header, i = self._held().header, operator.index(i)
        if not 0 <= i < header.sequences:
            raise NotFoundError(f"row {i}; the batch has {header.sequences}")

        def entry(which: str, kind: Any) -> int:
            address = getattr(header, which)
            value: int = kind.from_address(address + ctypes.sizeof(kind) * i).value if address else 0
            return value

        return Row(_abi.text(header.feed), fingerprint_text(header.fingerprint), header.epoch,
                   entry("ordinals", ctypes.c_uint64), entry("starts", ctypes.c_uint32),
                   entry("uses", ctypes.c_uint32))

    @property
    def versions(self) -> Optional[np.ndarray[Any, Any]]:
        """Of the model: the oldest version that had a part in the row, int64 [B]."""
        return self._live("versions", _I8)

    @property
    def versions_newest(self) -> Optional[np.ndarray[Any, Any]]:
        """And the newest, int64 [B]."""
        return self._live("versions_newest", _I8)

    @property
    def live_version(self) -> Optional[int]:
        """The version that was announced last when the step was cut: a row's staleness is this less
        its version."""
        header = self._held().header
        return header.live_version if header.versions else None

    @property
    def groups(self) -> Optional[np.ndarray[Any, Any]]:
        """Numbers of the rows' groups, int64 [B]; -1: in none."""
        return self._live("groups", _I8)

    @property
    def weights(self) -> Optional[np.ndarray[Any, Any]]:
        """float32 [B]; 0 for a row that is too stale, or that only fills up, and that counts in no total.
        Of an order file's rows, too."""
        return self._live("weights", _F4)

    @property
    def numbers(self) -> Optional[np.ndarray[Any, Any]]:
        """Numbers of the sequences, as their producers count them, int64 [B]."""
        return self._live("numbers", _I8)

    @property
    def epochs(self) -> Optional[np.ndarray[Any, Any]]:
        """Epochs of the plans that rows were forwarded from (`batchwright forward`), int64 [B]; 0 for
        others."""
        header = self._held().header
        if header.versions and not header.epochs:
            return np.zeros(header.sequences, _I8)
        return self._live("epochs", _I8)

    @property
    def producers(self) -> Optional[List[str]]:
        """Names of the rows' producers."""
        places = self._live("producers", _U4)
        if places is None:
            return None
        names = self._producer_names()
        return [names[place] for place in places]

    def _producer_names(self) -> List[str]:
        slot, size = self._held(), ctypes.c_size_t()
        names = []
        for i in range(slot.header.producer_count):
            name = _abi.batch_producer(slot.handle, i, ctypes.byref(size))
            names.append(_abi.text(ctypes.string_at(name, size.value)))
        return names

    @property
    def zeroed(self) -> int:
        """Rows of weight 0, since they are too stale."""
        zeroed: int = self._held().header.zeroed
        return zeroed
