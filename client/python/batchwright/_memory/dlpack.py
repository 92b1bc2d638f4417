"""DLPack capsules over a slot. NumPy has none for read-only arrays, so these are our own.

A DLManagedTensor is made with ctypes and kept in a table, together with its shape and the slot,
until its consumer calls the deleter. A capsule that was never consumed calls it itself, by a
destructor of the C library's: such a capsule is dropped while its consumer's exception is on its
way, which no callback in Python would leave alone.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint64, \
    c_void_p, py_object
from typing import Any, Dict, Tuple

from .. import _abi
from .slot import note

CPU = (1, 0)  # kDLCPU, and the device's number
_INT, _UINT, _FLOAT, _BFLOAT = 0, 1, 2, 4
_TYPES = {_abi.FLOAT32: (_FLOAT, 32), _abi.FLOAT16: (_FLOAT, 16), _abi.BFLOAT16: (_BFLOAT, 16),
          _abi.INT64: (_INT, 64), _abi.INT32: (_INT, 32), _abi.INT16: (_INT, 16),
          _abi.UINT8: (_UINT, 8)}
_UNUSED = b"dltensor"  # a capsule's name until it is consumed; kept: a capsule does not copy it


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


_lent: Dict[int, Tuple[Any, ...]] = {}

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, ctypes.c_char_p, c_void_p]


def _forget(managed: int) -> None:
    _lent.pop(managed, None)


_delete = CFUNCTYPE(None, c_void_p)(_forget)
# A consumer may call it after this module is gone, when the interpreter ends: it stays.
ctypes.pythonapi.Py_IncRef(py_object(_delete))
_DELETER = ctypes.cast(_delete, c_void_p).value
_DESTRUCTOR = ctypes.cast(_abi.dlpack_capsule_end, c_void_p).value


def capsule(slot: Any, address: int, code: int, shape: Tuple[int, ...], name: str) -> Any:
    """A capsule for `from_dlpack`. Its consumer keeps the slot."""
    sizes = (c_int64 * max(1, len(shape)))(*shape)
    managed = _Managed()
    tensor = managed.tensor
    tensor.data, tensor.ndim = address, len(shape)
    tensor.device_type, tensor.device_id = CPU
    tensor.code, tensor.bits = _TYPES[code]
    tensor.lanes = 1
    tensor.shape = ctypes.cast(sizes, POINTER(c_int64))
    managed.deleter = _DELETER
    place = ctypes.addressof(managed)
    memory = memoryview(slot)
    note(slot, memory, f'a DLPack capsule of "{name}"')
    _lent[place] = (managed, sizes, memory)
    return _new_capsule(place, _UNUSED, _DESTRUCTOR)
