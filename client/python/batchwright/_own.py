"""Owners of the C library's objects: a copy would give the object back a second time, and none is
lost by an exception of a signal's handler, wherever it is raised."""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable

from .errors import UnsupportedError


class Own:
    """Refuses `copy` and `pickle`, and so a transfer to another process."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise UnsupportedError(f"a batchwright.{type(self).__name__} is not copied or pickled: "
                               "another process connects by itself, and numbers travel as arrays")


class Owned:
    """One object of the C library: `free(handle)` is called when the last reference to this is gone.

    It is called without an instruction of Python's: a handler of a signal that ran within a `__del__`
    would raise KeyboardInterrupt where nothing catches it, and the object would be lost. So the
    caller that gives the object back drops this. Errors of `free` are not heard of. In a forked child it does
    nothing, for the object is the parent's."""

    __slots__ = ("handle", "free")
    __del__ = property(operator.attrgetter("free"))

    def __init__(self, handle: Any, free: Callable[[Any], Any]) -> None:
        """A ctypes pointer as `handle` is looked at when it is freed."""
        self.handle = handle
        self.free = functools.partial(free, handle)
