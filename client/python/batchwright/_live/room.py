"""A sequence that is written in place."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np

from .. import _abi
from .._memory.slot import slot_type
from .._own import Own, Owned
from ..tensor import NUMPY, array_over
from ..values import DTYPES, Field

_CODES = {name: code for code, name in DTYPES.items()}


class Room(Own):
    """A sequence that is written in place; see `Producer.reserve()`. `room[name]` is the array of a
    field, to be filled. `number` is the sequence's, once the block has ended; None: the feed has.

    What is written to an array after the block's end may be in another sequence by then."""

    def __init__(self, owned: Owned, fields: Sequence[Field], lengths: Sequence[int],
                 commit: Callable[[], Optional[int]]) -> None:
        """Takes ownership of a bw_room, which `commit` pushes."""
        self._owned: Optional[Owned] = owned
        self._commit = commit
        self.number: Optional[int] = None
        self._arrays: Dict[str, np.ndarray[Any, Any]] = {}
        size = ctypes.c_uint64()
        for i, (field, length) in enumerate(zip(fields, lengths)):
            address = _abi.room_field(owned.handle, i, ctypes.byref(size))
            memory = slot_type(max(size.value, 1), False).from_address(address)
            memory.give_back = functools.partial(_abi.memory_release,
                                                 _abi.room_memory(owned.handle))
            memory.writable, memory.views = True, []
            shape = field.shape if field.kind == "scalar" else (length, *field.shape)
            self._arrays[field.name] = array_over(memory, address, NUMPY[_CODES[field.dtype]], shape,
                                                  field.name)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._arrays[name]

    def __enter__(self) -> Room:
        return self

    def __exit__(self, kind: Any = None, *_: Any) -> None:
        self._arrays = {}
        try:
            if kind is None:
                self.number = self._commit()
        finally:
            self._owned = None  # gives it up, unless it was pushed
