"""The C ABI of batchwright/client.h as ctypes sees it. A test compares it with the header.

Nothing here is for users: structs, enumerators, and the library's functions with their types.
Functions are module constants, so that a call costs one look-up.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t,
    c_uint32, c_uint64, c_void_p,
)

from typing import Any

from ._library import load
from .errors import LibraryError, error_of

ABI_VERSION = 1
SONAME = "libbatchwright.so.1"
VARIABLE = "BATCHWRIGHT_LIBRARY"

PENDING, END, EPOCH_END, OK = -3, -2, -1, 0
TIMED_OUT, BUSY = 12, 18
FLOAT32, FLOAT16, BFLOAT16, INT64, INT32, INT16, UINT8 = range(1, 8)
PRIMARY, ALIGNED, INDEPENDENT, SCALAR = range(4)
BATCH_MAJOR, TIME_MAJOR = range(2)
REPLICA, SHARDED, QUEUE = range(3)
AUTO = -1
MAX_DIMENSIONS = 8
FINGERPRINT_TEXT_BYTES = 51
MAX_UPCOMING = 1024
NO_GROUP = (1 << 64) - 1
MAX_OUTCOMES = 65536
OUTCOMES = ("unknown", "waiting", "delivered", "done", "dropped_stale", "abandoned", "lost")


class Fingerprint(Structure):
    _fields_ = [("data", c_uint64), ("settings", c_uint64), ("seed", c_uint64)]


class Position(Structure):
    _fields_ = [("fingerprint", Fingerprint), ("epoch", c_uint64), ("step", c_uint64)]


class ConnectOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("program", c_char_p), ("timeout_ms", c_int64),
        ("reconnect_ms", c_int64), ("server_key", c_char_p), ("public_key", c_char_p),
        ("secret_key", c_char_p), ("inline_batches", c_int32), ("reserved", c_int32),
    ]


class ConnectionInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("reconnects", c_uint64), ("servers", c_uint32),
        ("inline_batches", c_int32), ("inline_reason", c_char_p),
    ]


class Field(Structure):
    _fields_ = [
        ("name", c_char_p), ("kind", c_int32), ("dtype", c_int32), ("ndim", c_uint32),
        ("category_count", c_uint32), ("shape", c_uint64 * MAX_DIMENSIONS),
        ("categories", POINTER(c_char_p)),
    ]


class Feed(Structure):
    _fields_ = [
        ("name", c_char_p), ("sequences", c_uint64), ("world", c_uint32), ("layout", c_int32),
        ("field_count", c_size_t), ("fields", POINTER(POINTER(Field))), ("live", c_int32),
        ("max_length", c_uint32), ("max_bytes", c_uint64), ("allow_nan", c_int32),
        ("reserved", c_int32), ("pushed_count", c_size_t), ("joins", c_char_p),
    ]


class AbsentFeed(Structure):
    _fields_ = [("name", c_char_p), ("reason", c_char_p)]


class SubscribeOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("feed", c_char_p), ("mode", c_int32), ("rank", c_int32),
        ("ranks", c_int32), ("window", c_uint32), ("epoch", c_uint64), ("step", c_uint64),
        ("epochs", c_uint64), ("fingerprint", POINTER(Fingerprint)), ("worst_first", c_uint32),
        ("reserved", c_uint32), ("writable", c_uint32), ("ranks_here", c_uint32),
        ("terms", c_char_p), ("until_epoch", c_uint64),
    ]


class Grant(Structure):
    _fields_ = [
        ("fingerprint", Fingerprint), ("epoch", c_uint64), ("step", c_uint64),
        ("steps", c_uint64), ("batches_per_step", c_uint32), ("world", c_uint32),
        ("rank", c_uint32), ("ranks", c_uint32), ("window", c_uint32),
    ]


class Upcoming(Structure):
    _fields_ = [
        ("epoch", c_uint64), ("step", c_uint64), ("index", c_uint64), ("frames", c_uint64),
        ("rows", c_uint32), ("length", c_uint32), ("rehearsal", c_uint32), ("certain", c_uint32),
    ]


class BatchHeader(Structure):
    _fields_ = [
        ("feed", c_char_p), ("fingerprint", Fingerprint), ("epoch", c_uint64),
        ("step", c_uint64), ("index", c_uint64), ("world", c_uint32), ("layout", c_int32),
        ("sequences", c_uint32), ("batch_length", c_uint32), ("frames", c_uint64),
        ("step_sequences", c_uint64), ("step_frames", c_uint64), ("loss_weight", c_double),
        ("lengths", c_void_p), ("ordinals", c_void_p), ("starts", c_void_p), ("flags", c_void_p),
        ("bytes", c_uint64), ("tensor_count", c_size_t), ("rehearsal", c_uint32),
        ("shared", c_uint32), ("memory", c_void_p), ("memory_bytes", c_uint64),
        ("writable", c_uint32), ("rows_lost", c_uint32), ("attempt", c_uint32),
        ("reserved", c_uint32), ("versions", c_void_p), ("versions_newest", c_void_p),
        ("groups", c_void_p), ("weights", c_void_p), ("producers", c_void_p),
        ("numbers", c_void_p), ("live_version", c_uint64), ("producer_count", c_uint32),
        ("zeroed", c_uint32), ("uses", c_void_p), ("epochs", c_void_p),
    ]


class Tensor(Structure):
    _fields_ = [
        ("name", c_char_p), ("data", c_void_p), ("bytes", c_uint64), ("dtype", c_int32),
        ("kind", c_int32), ("ndim", c_uint32), ("shape", c_uint64 * MAX_DIMENSIONS),
        ("row_lengths", c_void_p),
    ]


class Value(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64), ("length", c_uint64)]


class Sequence(Structure):
    _fields_ = [
        ("key", c_char_p), ("key_bytes", c_size_t), ("values", POINTER(Value)),
        ("value_count", c_size_t),
    ]


class ProduceOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("feed", c_char_p), ("name", c_char_p),
        ("area_bytes", c_uint64), ("slice_ms", c_int64),
    ]


class ProducerInfo(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("name", c_char_p), ("incarnation", c_uint64),
        ("next", c_uint64), ("version", c_uint64), ("area_bytes", c_uint64),
        ("area_used", c_uint64), ("reconnects", c_uint64),
    ]


class Of(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("feed", c_char_p), ("fingerprint", Fingerprint),
        ("epoch", c_uint64), ("ordinal", c_uint64), ("start", c_uint32), ("use", c_uint32),
    ]


class Origin(Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("version", c_uint64), ("version_newest", c_uint64),
        ("group", c_uint64), ("group_size", c_uint32), ("weight", c_float), ("of", POINTER(Of)),
        ("epoch", c_uint64),
    ]


class OutcomesTotal(Structure):
    _fields_ = [("struct_size", c_size_t)] + [(name, c_uint64) for name in OUTCOMES + (
        "refused_full", "duplicates")]


# Structs by the names that the header gives them.
STRUCTS = {
    "bw_fingerprint": Fingerprint, "bw_position": Position, "bw_connect_options": ConnectOptions,
    "bw_connection_info": ConnectionInfo, "bw_field": Field, "bw_feed": Feed,
    "bw_absent_feed": AbsentFeed, "bw_subscribe_options": SubscribeOptions, "bw_grant": Grant,
    "bw_batch_header": BatchHeader,
    "bw_tensor": Tensor, "bw_upcoming": Upcoming, "bw_value": Value, "bw_sequence": Sequence,
    "bw_produce_options": ProduceOptions, "bw_producer_info": ProducerInfo, "bw_origin": Origin,
    "bw_of": Of,
    "bw_outcomes_total": OutcomesTotal,
}

# Functions: what they return, and what they take. Pointers to handles and to what a call fills in
# are plain addresses.
_FUNCTIONS = {
    "bw_abi_version": (c_uint32, []),
    "bw_library_version": (c_char_p, []),
    "bw_error_message": (c_char_p, []),
    "bw_fingerprint_text": (c_int32, [c_void_p, POINTER(c_char)]),
    "bw_fingerprint_parse": (c_int32, [c_char_p, c_void_p]),
    "bw_connect": (c_int32, [c_char_p, c_void_p, c_void_p]),
    "bw_connection_get_info": (c_int32, [c_void_p, c_void_p]),
    "bw_close": (c_int32, [c_void_p]),
    "bw_feed_count": (c_size_t, [c_void_p]),
    "bw_feed_at": (POINTER(Feed), [c_void_p, c_size_t]),
    "bw_absent_feed_count": (c_size_t, [c_void_p]),
    "bw_absent_feed_at": (POINTER(AbsentFeed), [c_void_p, c_size_t]),
    "bw_subscribe": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "bw_unsubscribe": (c_int32, [c_void_p]),
    "bw_subscription_grant": (POINTER(Grant), [c_void_p]),
    "bw_subscription_terms": (c_char_p, [c_void_p]),
    "bw_next": (c_int32, [c_void_p, c_int64, c_void_p, c_void_p]),
    "bw_subscription_position": (c_int32, [c_void_p, c_void_p]),
    "bw_subscription_steps": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "bw_subscription_upcoming": (c_int32, [c_void_p, c_int64, c_void_p, c_void_p]),
    "bw_release": (c_int32, [c_void_p]),
    "bw_return": (c_int32, [c_void_p]),
    "bw_batch_done": (c_int32, [c_void_p]),
    "bw_batch_get_header": (c_void_p, [c_void_p]),
    "bw_batch_key": (c_void_p, [c_void_p, c_size_t, c_void_p]),
    "bw_batch_row": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "bw_batch_tensor": (c_void_p, [c_void_p, c_size_t]),
    "bw_batch_tensor_named": (c_void_p, [c_void_p, c_char_p]),
    "bw_batch_position": (c_int32, [c_void_p, c_void_p]),
    "bw_batch_memory": (c_void_p, [c_void_p]),
    "bw_memory_release": (None, [c_void_p]),
    "bw_batch_producer": (c_void_p, [c_void_p, c_size_t, c_void_p]),
    "bw_advance": (c_int32, [c_void_p, c_char_p, c_uint64, c_int32, c_int32]),
    "bw_wait_version": (c_int32, [c_void_p, c_char_p, c_uint64, c_int64, c_void_p]),
    "bw_keep_from": (c_int32, [c_void_p, c_char_p, c_uint64]),
    "bw_end_feed": (c_int32, [c_void_p, c_char_p]),
    "bw_produce": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "bw_producer_get_info": (c_int32, [c_void_p, c_void_p]),
    "bw_claim": (c_int32, [c_void_p, c_uint32, c_int64, c_void_p]),
    "bw_push": (c_int32, [c_void_p, c_void_p, c_void_p, c_int64, c_void_p]),
    "bw_push_many": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_int64, c_void_p]),
    "bw_reserve": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_void_p]),
    "bw_room_field": (c_void_p, [c_void_p, c_size_t, c_void_p]),
    "bw_room_memory": (c_void_p, [c_void_p]),
    "bw_commit": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, c_int64, c_void_p]),
    "bw_room_drop": (c_int32, [c_void_p]),
    "bw_abandon": (c_int32, [c_void_p, c_uint64, c_uint32]),
    "bw_abandon_number": (c_int32, [c_void_p, c_uint64]),
    "bw_outcomes": (c_int32, [c_void_p, c_int64, c_void_p]),
    "bw_outcomes_of": (c_int32, [c_void_p, c_uint64, c_int64, c_void_p, c_void_p]),
    "bw_producer_forget": (c_int32, [c_void_p]),
    "bw_producer_close": (c_int32, [c_void_p, c_int64]),
    "bw_explain_faults": (c_int32, []),
    "bw_dlpack_capsule_end": (None, [c_void_p]),
}

library = load(SONAME, VARIABLE)


def _function(name: str) -> Any:
    function = getattr(library, name, None)
    if function is None:
        raise LibraryError(f"{library._name} has no {name}: it is older than this package")
    function.restype, function.argtypes = _FUNCTIONS[name]
    return function


def check_version(found: int) -> None:
    """Compares the library's ABI with the one declared here. Errors: LibraryError, when they
    differ."""
    if found != ABI_VERSION:
        raise LibraryError(f"{library._name} has ABI version {found}, and this package needs "
                           f"{ABI_VERSION}: install library and package of one version")


check_version(_function("bw_abi_version")())
library_version = _function("bw_library_version")
error_message = _function("bw_error_message")
fingerprint_text = _function("bw_fingerprint_text")
fingerprint_parse = _function("bw_fingerprint_parse")
connect = _function("bw_connect")
connection_get_info = _function("bw_connection_get_info")
close = _function("bw_close")
feed_count = _function("bw_feed_count")
feed_at = _function("bw_feed_at")
absent_feed_count = _function("bw_absent_feed_count")
absent_feed_at = _function("bw_absent_feed_at")
subscribe = _function("bw_subscribe")
unsubscribe = _function("bw_unsubscribe")
subscription_grant = _function("bw_subscription_grant")
subscription_terms = _function("bw_subscription_terms")
next_event = _function("bw_next")
subscription_position = _function("bw_subscription_position")
subscription_steps = _function("bw_subscription_steps")
subscription_upcoming = _function("bw_subscription_upcoming")
release = _function("bw_release")
return_undone = _function("bw_return")
batch_done = _function("bw_batch_done")
batch_get_header = _function("bw_batch_get_header")
batch_key = _function("bw_batch_key")
batch_tensor = _function("bw_batch_tensor")
batch_tensor_named = _function("bw_batch_tensor_named")
batch_position = _function("bw_batch_position")
batch_memory = _function("bw_batch_memory")
memory_release = _function("bw_memory_release")
batch_producer = _function("bw_batch_producer")
advance = _function("bw_advance")
wait_version = _function("bw_wait_version")
keep_from = _function("bw_keep_from")
end_feed = _function("bw_end_feed")
produce = _function("bw_produce")
producer_get_info = _function("bw_producer_get_info")
claim = _function("bw_claim")
push = _function("bw_push")
push_many = _function("bw_push_many")
reserve = _function("bw_reserve")
room_field = _function("bw_room_field")
room_memory = _function("bw_room_memory")
commit = _function("bw_commit")
room_drop = _function("bw_room_drop")
abandon = _function("bw_abandon")
abandon_number = _function("bw_abandon_number")
outcomes = _function("bw_outcomes")
outcomes_of = _function("bw_outcomes_of")
producer_forget = _function("bw_producer_forget")
producer_close = _function("bw_producer_close")
explain_faults = _function("bw_explain_faults")
dlpack_capsule_end = _function("bw_dlpack_capsule_end")

# What the library says in words of C's.
_OWN_WORDS = {BUSY: "another thread is in next() or subscribe() on this connection. One thread at a "
                    "time uses a connection: let each thread that waits for batches connect() once"}


def message() -> str:
    """The message of this thread's last failed call."""
    said: bytes = error_message()
    return said.decode(errors="replace")


def check(status: int) -> int:
    """Returns news and raises errors."""
    if status > OK:
        raise error_of(status, _OWN_WORDS.get(status) or message())
    return status


def text(value: bytes) -> str:
    """Names and keys are UTF-8; other bytes survive the way there and back."""
    return value.decode("utf-8", "surrogateescape")
