"""The bytes of a batch that is held, as an object of Python's memory protocol.

A slot is a ctypes array laid over the memory that the batch lies in, which for an arena is the
whole mapping. Making one copies nothing and looks at nothing. NumPy arrays and tensors are made
from it with an offset and keep it alive; when the last of them is gone, so is the slot, and the
batch goes back. That is all the bookkeeping there is: no registry, no lock, no weak reference.

The batch goes back from whichever thread drops the last view, or from the garbage collector; the
library allows both. In a forked child it does nothing, for the parent still holds the batch.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict

from . import _abi

_MESSAGE_TYPES = 64  # sizes of messages whose types are kept; they differ from batch to batch

_shared_types: Dict[int, Any] = {}
_message_types: Dict[int, Any] = {}


def _end(slot: Any, release: Any = _abi.release) -> None:
    release(slot.handle)


def _slot_type(size: int) -> Any:
    """Arrays of `size` bytes that remember what to give back, and what keeps it page-locked."""
    return type("Slot", (ctypes.Array,), {
        "_type_": ctypes.c_uint8, "_length_": size, "__del__": _end,
        "__slots__": ("handle", "header", "homes", "pagelock")})


def slot_type(size: int, shared: bool) -> Any:
    """The type for memory of that size. Making one costs 20 us, so they are kept: for each arena,
    and for as many messages as fit."""
    types = _shared_types if shared else _message_types
    found = types.get(size)
    if found is None:
        if not shared and len(types) >= _MESSAGE_TYPES:
            types.clear()
        found = types[size] = _slot_type(size)
    return found
