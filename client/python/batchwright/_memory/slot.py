"""The bytes of a held batch, as an object of Python's buffer protocol.

A slot is a ctypes array laid over the memory that the batch lies in, which for an arena is the
whole mapping. Making one copies nothing and looks at nothing. NumPy arrays and tensors are made
from it with an offset and keep it alive; when the last of them is gone, so is the slot, and the
batch goes back. That is all the bookkeeping there is: no registry and no lock. A slot also notes
what views were made of it, by weak references, so that a warning about missing credits can name
what holds them; nothing else looks there.

The batch goes back from whichever thread drops the last view, or from the garbage collector; the
library allows both. In a forked child it does nothing, for the parent still holds the batch.

What gives it back is called without an instruction of Python's: a handler of a signal that ran
within a `__del__` would raise KeyboardInterrupt where nothing catches it, and the batch would be
lost.
"""

from __future__ import annotations

import ctypes
import operator
import weakref
from typing import Any, Dict, List, Tuple

from .. import _abi

_MESSAGE_TYPES = 64  # sizes of messages whose types are kept; they differ from batch to batch

_shared_types: Dict[int, Any] = {}
_message_types: Dict[int, Any] = {}


def _slot_type(size: int) -> Any:
    """Arrays of `size` bytes that have a `handle`, its `header`, what keeps them page-locked, and the
    `views` that were made of them. At the end `give_back` is called: the class's own does nothing,
    for a slot in the making. `keeper()` is what a loop over a queue keeps the slot by, if there is any
    such loop, and `done` says that the program is done with the batch."""
    return type("Slot", (ctypes.Array,), {
        "_type_": ctypes.c_uint8, "_length_": size, "give_back": int, "writable": False,
        "in_queue": False, "keeper": type(None), "done": False,
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


def finish(slot: Any) -> None:
    """The program is done with the batch of this slot, whatever views of it are alive. In a forked
    child nothing happens: the parent still holds it."""
    if not slot.done:
        _abi.batch_done(slot.handle)
        slot.done = True


class Kept(List[Any]):
    """The slot that a loop keeps, or none. The slot refers back by a weak reference, so that it goes
    with the loop, without an instruction of Python's."""

    __slots__ = ("__weakref__",)


def let_go(slot: Any) -> None:
    """A loop that keeps this slot does so no longer."""
    kept = slot.keeper() if slot is not None else None
    if kept and kept[0] is slot:
        kept.clear()


_Noted = Tuple[Any, str]  # a weak reference to what holds the slot, and what it is called
_MANY = 16  # views of one batch; a program that makes more drops some again


def note(slot: Any, holder: Any, what: str) -> None:
    """Notes that `holder` keeps the slot, under this name. Copies have no notes."""
    views: List[_Noted] = getattr(slot, "views", None)  # type: ignore[assignment]
    if views is None:
        return
    if len(views) >= _MANY:
        views[:] = [each for each in views if each[0]() is not None]
    views.append((weakref.ref(holder), what))


def holders(slot: Any) -> List[str]:
    """The names of the objects that keep the slot, each once."""
    return list(dict.fromkeys(what for holder, what in slot.views if holder() is not None))


def copied(address: int, size: int) -> Any:
    """A copy of these bytes as an array, over which views are made as over a slot."""
    own = (ctypes.c_uint8 * size)()
    ctypes.memmove(own, address, size)
    return own
