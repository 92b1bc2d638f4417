"""Sequences that are pushed to a live feed, as tables of the C library's structs.

One sequence at a time goes through the slots of `_writer_values`, and its arrays are read where they
lie. Of many, each field is a column: short values are put one after the other by one call of NumPy,
which costs less than to ask each array where it is, and long ones stay where they are.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _abi
from .. import _storage_abi as storage
from .._writer_values import FieldSpec, Slot, ValueProblem
from ..errors import InvalidArgumentError, SchemaMismatchError
from ..values import Field
from .rows import Row

_VALUE = np.dtype([("data", "u8"), ("bytes", "u8"), ("length", "u8")])
_SEQUENCE = np.dtype([("key", "u8"), ("key_bytes", "u8"), ("values", "u8"), ("value_count", "u8")])
_ORIGIN = np.dtype([("struct_size", "u8"), ("version", "u8"), ("version_newest", "u8"),
                    ("group", "u8"), ("group_size", "u4"), ("weight", "f4"), ("of", "u8"),
                    ("epoch", "u8")])
_OF_BYTES = ctypes.sizeof(_abi.Of)
_LONG_BYTES = 16384  # of a value, from which on it is not copied together with others


class _Unlooked:
    """In place of a writer's look at numbers: the library has its own, while it copies them."""

    @staticmethod
    def look_at(array: Any, bfloat16: bool) -> None:
        return None


class Columns:
    """The fields of a live feed, and tables for what is pushed to it. Threads: one at a time."""

    def __init__(self, feed: str, fields: Sequence[Field]) -> None:
        self._feed = feed
        self.names = [field.name for field in fields]
        self._values = (storage.Value * len(fields))()
        unlooked: Any = _Unlooked()
        self._slots = [Slot(field.name, FieldSpec(field.dtype, field.shape, field.kind,
                                                  field.categories or ()), value, unlooked)
                       for field, value in zip(fields, self._values)]
        self._sequence = storage.Sequence(None, 0, self._values, len(fields))

    def one(self, values: Mapping[str, Any],
            key: Optional[bytes]) -> Tuple[ctypes.Structure, List[Any]]:
        """The struct of one sequence, and what keeps its bytes. Errors: SchemaMismatchError."""
        try:
            kept = [slot.fill(values[slot.name]) for slot in self._slots]
        except ValueProblem as problem:
            raise SchemaMismatchError(f'feed "{self._feed}": {problem}') from None
        except KeyError:
            raise self._wrong_names(values) from None
        if len(values) != len(kept):
            raise self._wrong_names(values)
        self._sequence.key, self._sequence.key_bytes = key, len(key or b"")
        return self._sequence, kept

    def many(self, given: Union[Sequence[Mapping[str, Any]], Mapping[str, Sequence[Any]]],
             keys: Optional[Sequence[Union[str, bytes]]]) -> Many:
        """The table of many sequences. Errors: SchemaMismatchError, InvalidArgumentError."""
        columns = given if isinstance(given, Mapping) else self._turned(given)
        if columns.keys() != set(self.names):
            raise self._wrong_names(columns)
        counts = {name: len(column) for name, column in columns.items()}
        count = counts[self.names[0]]
        if len(set(counts.values())) != 1:
            raise SchemaMismatchError(f'feed "{self._feed}": its fields have values of different '
                                      f"numbers of sequences: {counts}")
        if keys is not None and len(keys) != count:
            raise InvalidArgumentError(f"{len(keys)} keys, and {count} sequences")
        values = np.empty((count, len(self._slots)), _VALUE)
        made = Many(count, values)
        for place, slot in enumerate(self._slots):
            try:
                made.kept.append(_fill_column(slot, columns[slot.name], values[:, place]))
            except ValueProblem as problem:
                raise SchemaMismatchError(f'feed "{self._feed}": {problem}') from None
        made.name(keys)
        return made

    def _turned(self, sequences: Sequence[Mapping[str, Any]]) -> Dict[str, List[Any]]:
        names = set(self.names)
        for place, each in enumerate(sequences):
            if each.keys() != names:
                raise self._wrong_names(each, f"sequence {place}: ")
        return {name: [each[name] for each in sequences] for name in self.names}

    def _wrong_names(self, values: Mapping[str, Any], where: str = "") -> SchemaMismatchError:
        unknown = ", ".join(f'"{name}"' for name in values if name not in self.names)
        missing = ", ".join(f'"{name}"' for name in self.names if name not in values)
        found = [f"the feed has no field {unknown}"] * bool(unknown)
        found += [f"a value is missing for field {missing}"] * bool(missing)
        return SchemaMismatchError(f'{where}feed "{self._feed}": {", and ".join(found)}; its fields '
                                   f"are {', '.join(self.names)}")


class Many:
    """The table of many sequences, and what keeps their bytes."""

    def __init__(self, count: int, values: np.ndarray[Any, Any]) -> None:
        self.count = count
        self.kept: List[Any] = [values]
        self.table = np.zeros(count, _SEQUENCE)
        self.table["value_count"] = values.shape[1]
        self.table["values"] = _address(values) + np.arange(
            count, dtype=np.uint64) * np.uint64(_VALUE.itemsize * values.shape[1])

    def name(self, keys: Optional[Sequence[Union[str, bytes]]]) -> None:
        if keys is None or not self.count:
            return
        encoded = [storage.key_bytes(key) for key in keys]
        joined = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
        sizes = np.fromiter(map(len, encoded), np.uint64, len(encoded))
        self.table["key_bytes"] = sizes
        self.table["key"] = _address(joined) + np.cumsum(sizes) - sizes
        self.kept.append(joined)

    @property
    def address(self) -> int:
        return _address(self.table)


def origins(count: int, version: Any, newest: Any, group: Any, size: Any,
            weight: Any) -> np.ndarray[Any, Any]:
    """A bw_origin for each of `count`; each argument is one for all or one each. Errors:
    InvalidArgumentError."""
    table = np.zeros(count, _ORIGIN)
    table["struct_size"] = _ORIGIN.itemsize
    for name, given in (("version", version), ("version_newest", newest), ("group", group),
                        ("group_size", size), ("weight", weight)):
        try:
            table[name] = _checked(name, given)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"{name} is {given!r}; one for all, or {count} of them, is "
                                       f"allowed: {error}") from None
    return table


def name_rows(table: np.ndarray[Any, Any], of: Sequence[Row]) -> Any:
    """Has each of the table's origins name a row; returns what keeps these. Errors:
    InvalidArgumentError."""
    if len(of) != len(table):
        raise InvalidArgumentError(f"{len(of)} rows (of), and {len(table)} sequences")
    rows = (_abi.Of * len(of))(*[raw_row(each) for each in of])
    table["of"] = ctypes.addressof(rows) + np.arange(len(of), dtype=np.uint64) * np.uint64(_OF_BYTES)
    return rows


def raw_row(of: Any) -> _abi.Of:
    """Errors: InvalidArgumentError."""
    if isinstance(of, Row):
        return of._raw()
    raise InvalidArgumentError(f"of is {of!r}; it is batch.row(i), of a batch of the feed whose rows "
                               "are joined")


def _checked(name: str, given: Any) -> Any:
    if type(given) is int and given >= 0 or type(given) is float:
        return given
    found = np.asarray(given)
    if name == "weight":
        return found
    if found.dtype.kind not in "iu":
        raise ValueError("whole numbers are wanted")
    if found.dtype.kind == "i" and found.size and int(found.min()) < 0:
        raise ValueError("below 0")
    return found


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _fill_column(slot: Slot, column: Any, values: np.ndarray[Any, Any]) -> Any:
    """Fills in a field's values, and returns what keeps their bytes. Errors: ValueProblem."""
    count, field = len(column), slot.field
    if count == 0:
        return None
    if field.kind == "scalar":
        array = slot.fill_many(column)
        values["data"] = _address(array) + np.arange(count, dtype=np.uint64) * np.uint64(
            array.itemsize)
        values["bytes"], values["length"] = array.itemsize, 1
        return array
    together = _together(slot, column) if not slot.has_no_content else None
    if together is None:
        return _fill_apart(slot, column, values)
    array, lengths = together
    sizes = lengths * np.uint64(array.itemsize * math.prod(field.shape))
    values["length"], values["bytes"] = lengths, sizes
    values["data"] = _address(array) + np.cumsum(sizes) - sizes
    return array


def _together(slot: Slot,
              column: Any) -> Optional[Tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Short arrays of the field's dtype, one after the other, and their lengths. None for values
    that are looked at one by one. Errors: ValueProblem."""
    if isinstance(column, np.ndarray) and column.ndim > 1:  # of one length
        array = slot.fill_many(column.reshape(-1, *column.shape[2:]))
        return array, np.full(len(column), column.shape[1], np.uint64)
    if any(type(each) is not np.ndarray for each in column):
        return None
    if sum(each.nbytes for each in column) > _LONG_BYTES * len(column):
        return None
    try:
        # Of arrays in Fortran's order, such as transposed ones, it makes another such.
        array = np.ascontiguousarray(np.concatenate(column, dtype=slot.dtype, casting="no"))
        lengths = np.fromiter(map(len, column), np.uint64, len(column))
    except (TypeError, ValueError):
        return None  # what is wrong is said of the one that it is
    if array.shape[1:] != slot.field.shape:
        return None
    slot.check_numbers(array)
    return array, lengths


def _fill_apart(slot: Slot, column: Any, values: np.ndarray[Any, Any]) -> List[Any]:
    kept = []
    for place, each in enumerate(column):
        try:
            kept.append(slot.fill(each))
        except ValueProblem as problem:
            raise ValueProblem(f"sequence {place}: {problem}") from None
        value = slot.value
        values[place] = (value.data or 0, value.bytes, value.length)
    return kept
