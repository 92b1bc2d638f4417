"""One tensor of a batch, and how an array is laid over a slot."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from . import _abi
from ._memory import dlpack
from ._memory.slot import copied, note
from ._own import Own
from .values import DTYPES, KINDS

if TYPE_CHECKING:
    import torch

# bfloat16 has no type in NumPy: its patterns are seen as uint16.
NUMPY: Dict[int, np.dtype[Any]] = {
    _abi.FLOAT32: np.dtype("<f4"), _abi.FLOAT16: np.dtype("<f2"), _abi.BFLOAT16: np.dtype("<u2"),
    _abi.INT64: np.dtype("<i8"), _abi.INT32: np.dtype("<i4"), _abi.INT16: np.dtype("<i2"),
    _abi.UINT8: np.dtype("u1")}
_LENGTH = np.dtype("<u4")
_LENGTHS = np.dtype("i8")  # as they are shown: torch has no unsigned ones, and differences are below 0
_torch_view: Any = None  # filled in by the first call that needs torch


def torch_over(slot: Any, address: int, code: int, shape: Tuple[int, ...],
               name: str) -> torch.Tensor:
    """A tensor over a part of the slot, which it keeps. Errors: ModuleNotFoundError without torch,
    which says what to install."""
    global _torch_view
    if _torch_view is None:
        from ._memory.torch_views import view
        _torch_view = view
    made: torch.Tensor = _torch_view(slot, address, code, shape, name)
    return made


def array_over(slot: Any, address: int, dtype: np.dtype[Any], shape: Tuple[int, ...],
               name: str) -> np.ndarray[Any, Any]:
    """An array over a part of the slot, which it keeps; read-only unless the slot is writable."""
    count = 1
    for size in shape:
        count *= size
    writable = getattr(slot, "writable", True)
    if count == 0:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = writable
        return empty
    memory = memoryview(slot) if writable else memoryview(slot).toreadonly()
    # The base of each array that is made of it, and of theirs.
    flat = np.frombuffer(memory, dtype, count, address - ctypes.addressof(slot))
    note(slot, flat, f'["{name}"]')
    return flat.reshape(shape)


def lengths_at(address: int, rows: int) -> np.ndarray[Any, Any]:
    """A copy, int64 [rows]: it is smaller than the slot that a view would hold."""
    return np.frombuffer(ctypes.string_at(address, 4 * rows), _LENGTH).astype(_LENGTHS)


def mask_over(lengths: np.ndarray[Any, Any], longest: int, layout: str) -> np.ndarray[Any, Any]:
    """Where frames are real: bool [B, longest] or, time-major, [longest, B]."""
    frames = np.arange(longest)
    if layout == "time-major":
        return frames[:, None] < lengths[None, :]
    return frames[None, :] < lengths[:, None]


def place_of(slot: Any, raw: _abi.Tensor) -> Tuple[Any, int]:
    """The memory that a tensor is laid over, and its address there: a scalar field has a value a
    row, and is copied."""
    if raw.kind != _abi.SCALAR:
        return slot, raw.data
    own = copied(raw.data, raw.bytes)
    return own, ctypes.addressof(own)


class Tensor(Own):
    """One tensor of a batch, without a copy, for NumPy, torch, or any library that knows DLPack.
    Row-major, [B, L, ...] or, time-major, [L, B, ...]; [B] for a scalar field.

    Lifetime: it keeps the batch's memory, also after the batch's release(); a scalar field's is a
    copy.
    """

    __slots__ = ("name", "dtype", "kind", "shape", "nbytes", "_slot", "_address", "_code",
                 "_lengths", "__weakref__")

    def __init__(self, slot: Any, raw: _abi.Tensor, rows: int) -> None:
        self.name = _abi.text(raw.name)
        self.dtype = DTYPES[raw.dtype]
        self.kind = KINDS[raw.kind]
        self.shape: Tuple[int, ...] = tuple(raw.shape[:raw.ndim])
        self.nbytes: int = raw.bytes
        self._slot, self._address = place_of(slot, raw)
        self._code = raw.dtype
        self._lengths = lengths_at(raw.row_lengths, rows) if raw.row_lengths else None
        note(self._slot, self, f'tensor("{self.name}")')

    @property
    def lengths(self) -> Optional[np.ndarray[Any, Any]]:
        """Real frames of each row, int64 [B]; None for a scalar field."""
        return self._lengths

    def numpy(self) -> np.ndarray[Any, Any]:
        """The tensor as a NumPy array, read-only unless the batch is writable. bfloat16 appears as
        uint16."""
        return array_over(self._slot, self._address, NUMPY[self._code], self.shape, self.name)

    def torch(self) -> torch.Tensor:
        """The tensor for torch, never to be written to unless the batch is writable."""
        return torch_over(self._slot, self._address, self._code, self.shape, self.name)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        """Errors: ValueError for a conversion that may not copy."""
        found = self.numpy()
        if dtype is None or np.dtype(dtype) == found.dtype:
            return found.copy() if copy else found
        if copy is False:
            raise ValueError(f'tensor("{self.name}") is {found.dtype}, and a copy as {dtype}')
        return found.astype(dtype)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """A DLPack capsule. Errors: BufferError for a request that needs a copy."""
        if copy or dl_device not in (None, dlpack.CPU):
            raise BufferError("a batch is shown where it lies, without a copy")
        return dlpack.capsule(self._slot, self._address, self._code, self.shape, self.name)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return dlpack.CPU

    def __repr__(self) -> str:
        return f"<batchwright.Tensor {self.name!r} {self.dtype} {list(self.shape)}>"
