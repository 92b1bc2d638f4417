"""The C ABI of libbatchwright-storage, declared for ctypes: storage/dataset/c_abi/batchwright/writer.h
and storage/features/frontend/c_abi/batchwright/front_end.h."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p,
)
from typing import Optional, Union

from ._library import load
from .errors import Error, InvalidArgumentError, LibraryError, error_of

ABI_VERSION = 1  # of both headers
SONAME = "libbatchwright-storage.so.1"
VARIABLE = "BATCHWRIGHT_STORAGE_LIBRARY"
MAX_DIMENSIONS = 8

# bw_status
OK = 0
TIMED_OUT = 12

# bw_opening
OPENINGS = {"create_or_append": 0, "create": 1, "append": 2}

# bw_kind and bw_dtype, by their names
KINDS = {"primary": 0, "aligned": 1, "independent": 2, "scalar": 3}
DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3, "int64": 4, "int32": 5, "int16": 6,
          "uint8": 7}


class Field(Structure):
    """bw_field"""

    _fields_ = [("name", c_char_p), ("kind", c_int32), ("dtype", c_int32), ("ndim", c_uint32),
                ("category_count", c_uint32), ("shape", c_uint64 * MAX_DIMENSIONS),
                ("categories", POINTER(c_char_p))]


class Setting(Structure):
    """bw_setting"""

    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Options(Structure):
    """bw_writer_options"""

    _fields_ = [("struct_size", c_size_t), ("fields", POINTER(POINTER(Field))),
                ("field_count", c_size_t), ("settings", POINTER(Setting)),
                ("setting_count", c_size_t), ("opening", c_int32), ("reserved", c_int32),
                ("commit_bytes", c_uint64), ("commit_sequences", c_uint64),
                ("map_bytes", c_uint64), ("timeout_ms", c_int64)]


class Value(Structure):
    """bw_value"""

    _fields_ = [("data", c_void_p), ("bytes", c_uint64), ("length", c_uint64)]


class Sequence(Structure):
    """bw_sequence"""

    _fields_ = [("key", c_char_p), ("key_bytes", c_size_t), ("values", POINTER(Value)),
                ("value_count", c_size_t)]


class FrontEndOptions(Structure):
    """bw_front_end_options"""

    _fields_ = [("struct_size", c_size_t), ("like", c_char_p), ("features", c_char_p),
                ("settings", POINTER(Setting)), ("setting_count", c_size_t),
                ("sample_rate_hz", c_uint32), ("reserved", c_uint32)]


class Sound(Structure):
    """bw_sound"""

    _fields_ = [("samples", c_void_p), ("count", c_uint64), ("dtype", c_int32),
                ("reserved", c_int32)]


_SIGNATURES = {
    "bw_writer_abi_version": (c_uint32,),
    "bw_writer_library_version": (c_char_p,),
    "bw_writer_error_message": (c_char_p,),
    "bw_writer_status_name": (c_char_p, c_int32),
    "bw_writer_open": (c_int32, c_char_p, POINTER(Options), POINTER(c_void_p)),
    "bw_writer_field_count": (c_size_t, c_void_p),
    "bw_writer_field_at": (POINTER(Field), c_void_p, c_size_t),
    "bw_writer_add": (c_int32, c_void_p, POINTER(Sequence), POINTER(c_uint64)),
    "bw_writer_contains": (c_int32, c_void_p, c_char_p, c_size_t, POINTER(c_int32)),
    "bw_writer_sequences": (c_int32, c_void_p, POINTER(c_uint64)),
    "bw_writer_commit": (c_int32, c_void_p),
    "bw_writer_close": (c_int32, c_void_p),
    "bw_writer_abort": (c_int32, c_void_p),
    "bw_front_end_abi_version": (c_uint32,),
    "bw_front_end_open": (c_int32, POINTER(FrontEndOptions), POINTER(c_void_p)),
    "bw_front_end_close": (None, c_void_p),
    "bw_front_end_values": (c_uint32, c_void_p),
    "bw_front_end_frames": (c_uint64, c_void_p, c_uint64),
    "bw_front_end_setting_count": (c_size_t, c_void_p),
    "bw_front_end_setting_at": (POINTER(Setting), c_void_p, c_size_t),
    "bw_front_end_compute": (c_int32, c_void_p, POINTER(Sound), POINTER(c_float), c_uint64),
}

_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded when it is first needed. Errors: LibraryError."""
    global _loaded
    if _loaded is not None:
        return _loaded
    loaded = load(SONAME, VARIABLE)
    for name, (result, *arguments) in _SIGNATURES.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise LibraryError(f"{loaded._name} has no {name}: it is older than this package; "
                               "install both of one version") from None
        function.restype = result
        function.argtypes = arguments
    for found in (loaded.bw_writer_abi_version(), loaded.bw_front_end_abi_version()):
        if found != ABI_VERSION:
            raise LibraryError(f"{SONAME} has ABI version {found}; this package needs {ABI_VERSION}")
    _loaded = loaded
    return loaded


def failed(status: int) -> Error:
    """The error of this thread's last failed call of the library."""
    text = library().bw_writer_error_message()
    return error_of(status, text.decode("utf-8", "replace"))


def key_bytes(key: Union[str, bytes]) -> bytes:
    """A key as the libraries take it. Errors: InvalidArgumentError."""
    if isinstance(key, str):
        try:
            return key.encode("utf-8", "surrogateescape")  # as readers decode it
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"key {ascii(key)} is not text: {error.reason}") from None
    if isinstance(key, bytes):
        return key
    raise InvalidArgumentError(f"key {key!r} is of type {type(key).__name__}; str, and bytes, are "
                               "allowed")
