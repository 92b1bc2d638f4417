"""One tensor of a batch, and how an array is laid over a slot."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from . import _abi, _dlpack
from ._own import Own
from .values import DTYPES, KINDS

if TYPE_CHECKING:
    import torch

# bfloat16 has no type in NumPy: its patterns are seen as uint16.
NUMPY = {_abi.FLOAT32: np.dtype("<f4"), _abi.FLOAT16: np.dtype("<f2"),
          _abi.BFLOAT16: np.dtype("<u2"), _abi.INT64: np.dtype("<i8"), _abi.INT32: np.dtype("<i4"),
          _abi.INT16: np.dtype("<i2"), _abi.UINT8: np.dtype("u1")}
_LENGTH = np.dtype("<u4")
_torch_view: Any = None  # filled in by the first call that needs torch


def torch_over(slot: Any, address: int, code: int, shape: Tuple[int, ...]) -> torch.Tensor:
    """A tensor over a part of the slot, which it keeps. Errors: ModuleNotFoundError without torch,
    which says what to install."""
    global _torch_view
    if _torch_view is None:
        from ._torch_views import view
        _torch_view = view
    return _torch_view(slot, address, code, shape)


def array_over(slot: Any, address: int, dtype: np.dtype, shape: Tuple[int, ...]) -> np.ndarray:
    """A read-only array over a part of the slot, which it keeps."""
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    offset = address - ctypes.addressof(slot)
    return np.frombuffer(memoryview(slot).toreadonly(), dtype, count, offset).reshape(shape)


class Tensor(Own):
    """One tensor of a batch, without a copy, for whoever takes it: NumPy, torch, or any library
    that knows DLPack. Row-major, [B, L, ...] or, time-major, [L, B, ...]; [B] for a scalar field.

    Lifetime: it keeps the batch's memory, also behind the batch's release().
    """

    __slots__ = ("name", "dtype", "kind", "shape", "nbytes", "_slot", "_address", "_code",
                 "_lengths")

    def __init__(self, slot: Any, raw: _abi.Tensor, rows: int) -> None:
        self.name = _abi.text(raw.name)
        self.dtype = DTYPES[raw.dtype]
        self.kind = KINDS[raw.kind]
        self.shape: Tuple[int, ...] = tuple(raw.shape[:raw.ndim])
        self.nbytes: int = raw.bytes
        self._slot = slot
        self._address = raw.data
        self._code = raw.dtype
        self._lengths = (array_over(slot, raw.row_lengths, _LENGTH, (rows,))
                         if raw.row_lengths else None)

    @property
    def lengths(self) -> Optional[np.ndarray]:
        """Real frames of each row, uint32 [B]; None for a scalar field."""
        return self._lengths

    def numpy(self) -> np.ndarray:
        """Read-only. bfloat16 is seen as uint16."""
        return array_over(self._slot, self._address, NUMPY[self._code], self.shape)

    def torch(self) -> torch.Tensor:
        """Never to be written to."""
        return torch_over(self._slot, self._address, self._code, self.shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        found = self.numpy()
        return found if dtype is None and not copy else np.array(found, dtype)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """Errors: BufferError for a wish that takes a copy."""
        if copy or dl_device not in (None, _dlpack.CPU):
            raise BufferError("a batch is shown where it lies, without a copy")
        return _dlpack.capsule(self._slot, self._address, self._code, self.shape)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _dlpack.CPU

    def __repr__(self) -> str:
        return f"<batchwright.Tensor {self.name!r} {self.dtype} {list(self.shape)}>"
