"""Batches whose memory is the program's own: for notebooks, which keep what they show."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

from . import _abi, _fork
from ._memory.slot import slot_type
from .batch import Batch, Keys

_ALIGNMENT = 64  # of tensors, as in an arena


class CopiedBatch(Batch):
    """A copy of a batch, which holds no slot and no credit. Its arrays and tensors are copies, too,
    and may be written to; they stay valid for as long as they live, and it does when it is kept.

    Threads, fork: as Batch.
    """

    __slots__ = ()

    def __init__(self, batch: Batch) -> None:
        """The batch is left as it is."""
        source = batch._held()
        header = _abi.BatchHeader.from_buffer_copy(source.header)
        tensors = [_abi.Tensor.from_buffer_copy(batch._find(name)[1]) for name in batch.names]
        rows = header.sequences
        parts: List[Tuple[Any, str, int]] = [
            (each, "data", each.bytes) for each in tensors]
        parts += [(each, "row_lengths", 4 * rows) for each in tensors]
        parts += [(header, name, size * rows) for name, size in
                  (("lengths", 4), ("ordinals", 8), ("starts", 4), ("flags", 1), ("uses", 4),
                   ("versions", 8), ("versions_newest", 8), ("groups", 8), ("weights", 4),
                   ("producers", 4), ("numbers", 8), ("epochs", 8))]
        slot = slot_type(sum(size + _ALIGNMENT for _, _, size in parts), False)()
        place = ctypes.addressof(slot)
        header.memory, header.memory_bytes = place, len(slot)
        for struct, member, size in parts:
            address = getattr(struct, member)
            if not address:
                continue
            place += -place % _ALIGNMENT
            ctypes.memmove(place, address, size)
            setattr(struct, member, place)
            place += size
        for named in (*tensors, header):
            which = "feed" if named is header else "name"
            setattr(named, which, getattr(named, which))  # keeps the text, which was the library's
        header.shared, header.writable = 0, 1
        slot.header, slot.homes, slot.writable, slot.handle = header, source.homes, True, None
        slot.tensors = {_abi.text(each.name): each for each in tensors}
        slot.keys, slot.after = list(batch.keys), batch._after()
        slot.producers = batch._producer_names()
        self._slot: Any = slot
        self._generation = _fork.generation

    def _raw(self, slot: Any, name: str) -> Optional[_abi.Tensor]:
        tensors: Dict[str, _abi.Tensor] = slot.tensors
        return tensors.get(name)

    @property
    def names(self) -> List[str]:
        """As Batch.names."""
        return list(self._held().tensors)

    @property
    def keys(self) -> List[str]:
        """As Batch.keys."""
        return Keys(self._held().keys)

    def _after(self) -> _abi.Position:
        return _abi.Position.from_buffer_copy(self._held().after)

    def _producer_names(self) -> List[str]:
        names: List[str] = self._held().producers
        return names

    def done(self) -> None:
        """Does nothing: what was copied has gone back."""
        self._held()
