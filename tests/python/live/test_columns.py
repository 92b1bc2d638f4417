"""Sequences for a live feed as tables of the library's structs, without a daemon."""

import ctypes

import numpy as np
import pytest

import batchwright
from batchwright import _abi
from batchwright._live.columns import Columns, origins
from batchwright.values import Field

FIELDS = (Field("frames", "primary", "float32", (2,), None), Field("text", "independent", "uint8", (), None),
          Field("speaker", "scalar", "int32", (), ("ann", "bob")))


def read(raw):
    """The bytes of each value of a bw_sequence, its length, and the key."""
    values = [raw.values[i] for i in range(raw.value_count)]
    return ([ctypes.string_at(each.data, each.bytes) if each.bytes else b"" for each in values],
            [each.length for each in values], ctypes.string_at(raw.key, raw.key_bytes) if raw.key else None)


def rows(many):
    table = ctypes.cast(many.address, ctypes.POINTER(_abi.Sequence))
    return [read(table[i]) for i in range(many.count)]


def sequence(length, text=b"ab", speaker="bob"):
    return {"frames": np.full((length, 2), length, "float32"), "text": text, "speaker": speaker}


def expected(length, text=b"ab", key=None):
    return ([np.full((length, 2), length, "float32").tobytes(), text, np.int32(1).tobytes()],
            [length, len(text), 1], key)


def test_one_sequence_is_read_where_it_lies():
    given = sequence(3)
    raw, kept = Columns("f", FIELDS).one(given, b"key")
    assert read(_abi.Sequence.from_buffer(raw)) == expected(3, key=b"key")
    assert raw.values[0].data == given["frames"].ctypes.data
    assert len(kept) == 3


@pytest.mark.parametrize("lengths", [(3, 1, 2), (4000, 3000), (5,), ()])
def test_many_are_as_one_by_one_whatever_their_size(lengths):
    columns = Columns("f", FIELDS)
    given = [sequence(length) for length in lengths]
    keys = [f"k{i}" for i in range(len(given))]
    wanted = [expected(length, key=key.encode()) for length, key in zip(lengths, keys)]
    assert rows(columns.many(given, keys)) == wanted
    if lengths:
        turned = {name: [each[name] for each in given] for name in given[0]}
        assert rows(columns.many(turned, None)) == [(*each[:2], None) for each in wanted]


def test_transposed_arrays_are_pushed_in_the_order_of_their_frames():
    given = [np.arange(2 * length, dtype="float32").reshape(2, length).T for length in (3, 4)]
    many = Columns("f", FIELDS).many([{**sequence(1), "frames": each} for each in given], None)
    assert [each[0][0] for each in rows(many)] == [each.tobytes() for each in given]


def test_an_array_of_sequences_of_one_length_is_a_column():
    frames = np.arange(12, dtype="float32").reshape(2, 3, 2)
    found = rows(Columns("f", FIELDS).many({"frames": frames, "text": [b"", b"x"], "speaker": [0, 1]}, None))
    assert [each[0][0] for each in found] == [frames[0].tobytes(), frames[1].tobytes()]
    assert [each[1] for each in found] == [[3, 0, 1], [3, 1, 1]]


@pytest.mark.parametrize("change, words", [
    ({"frames": np.zeros((2, 3), "float32")}, 'sequence 1: field "frames" is float32 of shape [2, 3]'),
    ({"frames": np.zeros((2, 2))}, 'sequence 1: field "frames" is float64 of shape [2, 2]'),
    ({"speaker": "eve"}, 'field "speaker" has no category'),
    ({"other": 1}, 'sequence 1: feed "f": the feed has no field "other"'),
])
def test_a_bad_one_of_many_is_named(change, words):
    with pytest.raises(batchwright.SchemaMismatchError) as error:
        Columns("f", FIELDS).many([sequence(2), {**sequence(2), **change}], None)
    assert words in str(error.value)


def test_columns_and_keys_of_different_numbers_are_refused():
    columns = Columns("f", FIELDS)
    with pytest.raises(batchwright.SchemaMismatchError, match="different numbers of sequences"):
        columns.many({"frames": [np.zeros((1, 2), "float32")], "text": [], "speaker": [0]}, None)
    with pytest.raises(batchwright.InvalidArgumentError, match="2 keys, and 1 sequences"):
        columns.many([sequence(1)], ["a", "b"])


def test_origins_are_one_for_all_or_one_each():
    table = origins(2, np.array([3, 4]), 0, _abi.NO_GROUP, 0, [0.5, 1])
    found = (_abi.Origin * 2).from_buffer(table)
    assert [(each.struct_size, each.version, each.group, each.weight) for each in found] == [
        (ctypes.sizeof(_abi.Origin), 3, _abi.NO_GROUP, 0.5), (ctypes.sizeof(_abi.Origin), 4, _abi.NO_GROUP, 1)]
    for wrong in (-1, [1, 2, 3], "x", np.array([-1, 0])):
        with pytest.raises(batchwright.InvalidArgumentError):
            origins(2, wrong, 0, _abi.NO_GROUP, 0, 1.0)
