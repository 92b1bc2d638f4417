"""A base class for owners of the C library's objects: a copy would give the object back a second
time."""

from __future__ import annotations

from typing import Any

from .errors import UnsupportedError


class Own:
    """Refuses `copy` and `pickle`, and so a transfer to another process."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise UnsupportedError(f"a batchwright.{type(self).__name__} is not copied or pickled: "
                               "another process connects by itself, and numbers travel as arrays")
