"""Tensors of torch over a slot. The only file for which batches need torch."""

from __future__ import annotations

import ctypes
from typing import Any, Tuple

from .. import _abi
from .slot import note

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "torch is not installed, and batchwright's tensors need it: install python3-torch "
        "(Debian), or `pip install torch`. NumPy arrays, batch[\"...\"], work without it.",
        name="torch") from None

DTYPES = {_abi.FLOAT32: torch.float32, _abi.FLOAT16: torch.float16,
          _abi.BFLOAT16: torch.bfloat16, _abi.INT64: torch.int64, _abi.INT32: torch.int32,
          _abi.INT16: torch.int16, _abi.UINT8: torch.uint8}
_addressof = ctypes.addressof
_frombuffer = torch.frombuffer


def view(slot: Any, address: int, code: int, shape: Tuple[int, ...], name: str) -> torch.Tensor:
    """A tensor over a part of the slot, which it keeps. 5 us."""
    count = 1
    for size in shape:
        count *= size
    dtype = DTYPES[code]
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    # torch keeps this very object for as long as there is a tensor over it.
    memory = memoryview(slot)
    note(slot, memory, f'torch("{name}")')
    flat = _frombuffer(memory, dtype=dtype, count=count, offset=address - _addressof(slot))
    return flat.view(shape)
