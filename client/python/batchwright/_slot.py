"""The bytes of a batch that is held, as an object of Python's memory protocol.

A slot is a ctypes array laid over the memory that the batch lies in, which for an arena is the
whole mapping. Making one copies nothing and looks at nothing. NumPy arrays and tensors are made
from it with an offset and keep it alive; when the last of them is gone, so is the slot, and the
batch goes back. That is all the bookkeeping there is: no registry, no lock, no weak reference.

The batch goes back from whichever thread drops the last view, or from the garbage collector; the
library allows both. In a forked child it does nothing, for the parent still holds the batch.

What gives it back is called without an instruction of Python's: a handler of a signal that ran
within a `__del__` would raise KeyboardInterrupt where nobody gets it, and the batch would be lost.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any, Dict

_MESSAGE_TYPES = 64  # sizes of messages whose types are kept; they differ from batch to batch

_shared_types: Dict[int, Any] = {}
_message_types: Dict[int, Any] = {}


def _slot_type(size: int) -> Any:
    """Arrays of `size` bytes that have a `handle`, its `header`, and what keeps them page-locked.
    At the end `give_back` is called: the class's own does nothing, for a slot in the making."""
    return type("Slot", (ctypes.Array,), {
        "_type_": ctypes.c_uint8, "_length_": size, "give_back": int,
        "__del__": property(operator.attrgetter("give_back"))})


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
