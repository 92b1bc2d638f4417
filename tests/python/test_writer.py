"""What Python writes is what LMDB holds, and what does not fit is refused by name."""

import os
import struct

import numpy as np
import pytest

import batchwright
from batchwright import errors
from batchwright.writer import DatasetWriter, FieldSpec

from written import FIELDS, add_samples, holds_samples, read, sample


def test_what_is_added_is_what_the_dataset_holds(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS, settings={"sample_rate_hz": 8000}) as writer:
        add_samples(writer, 0, 300)
        assert writer.sequences == 300
        assert not writer.closed
    assert writer.closed
    assert holds_samples(tmp_path / "d", 300)


def test_a_dataset_is_appended_to_with_its_own_fields(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS) as writer:
        add_samples(writer, 0, 10)
    with DatasetWriter(tmp_path / "d") as writer:
        assert writer.fields == FIELDS
        add_samples(writer, 10, 20)
    with DatasetWriter(tmp_path / "d", FIELDS, mode="append") as writer:
        assert "key/19" in writer and b"key/0" in writer and "key/20" not in writer
    assert holds_samples(tmp_path / "d", 20)


def test_a_path_that_exists_is_refused_when_it_shall_be_created(tmp_path):
    DatasetWriter(tmp_path / "d", FIELDS, mode="create").close()
    with pytest.raises(errors.AlreadyExistsError, match=str(tmp_path / "d")):
        DatasetWriter(tmp_path / "d", FIELDS, mode="create")
    (tmp_path / "music").mkdir()
    (tmp_path / "music" / "song.wav").write_text("la la la")
    with pytest.raises(errors.StoreUnavailableError, match="not empty"):
        DatasetWriter(tmp_path / "music", FIELDS)


def test_a_path_that_does_not_exist_is_refused_when_it_shall_be_appended_to(tmp_path):
    with pytest.raises(errors.NotFoundError, match="to append to"):
        DatasetWriter(tmp_path / "d", FIELDS, mode="append")
    with pytest.raises(errors.NotFoundError, match="without fields"):
        DatasetWriter(tmp_path / "d")
    with pytest.raises(errors.InvalidArgumentError, match="create_or_append, create, append"):
        DatasetWriter(tmp_path / "d", FIELDS, mode="w")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("fields, words", [
    ({}, "1 to 64 fields"),
    ({"a": FieldSpec("float64")}, 'field "a": dtype float64; allowed: float32'),
    ({"a": FieldSpec("float32", kind="main")}, "kind 'main'; allowed: primary, aligned"),
    ({"a": "float32", "b": "int32"}, 'field "b" is only a dtype'),
    ({"a": "float32", "b": {"dtype": "int32"}}, 'field "b" has no kind'),
    ({"a": {"dtype": "int32", "size": 3}}, "field \"a\" has no 'size'"),
    ({"a": FieldSpec("float32", shape=(-1,))}, "each from 0"),
    ({"a": FieldSpec("float32", shape=(1 << 30,))}, "16 MiB"),
    ({"a": FieldSpec("float32"), "b": FieldSpec("float32")}, "exactly one primary field, found 2"),
    ({"a": ("float32", (80,))}, 'is a tuple, (\'float32\', (80,)); write FieldSpec("float32"'),
    ({"a": "float32", "b": FieldSpec("float32", (192,), "scalar")},
     'shape=(192,), kind="independent"), and is given as [1, 192]'),
    ({"a": FieldSpec("float32", categories=("x",))}, "integer dtype"),
])
def test_fields_that_are_none_are_refused_and_named(tmp_path, fields, words):
    with pytest.raises(errors.InvalidArgumentError) as refused:
        DatasetWriter(tmp_path / "d", fields)
    assert words in str(refused.value)
    assert not (tmp_path / "d").exists()


def test_the_fields_of_a_feed_can_be_written(tmp_path):
    features = batchwright.Field("features", "primary", "float32", (3,), None)
    speaker = batchwright.Field("speaker", "scalar", "uint8", (), ("ann", "bob"))
    fields = {field.name: field for field in (features, speaker)}
    with batchwright.DatasetWriter(tmp_path / "d", fields) as writer:
        assert writer.fields == {name: FIELDS[name] for name in fields}


def test_other_fields_than_the_datasets_are_refused(tmp_path):
    DatasetWriter(tmp_path / "d", FIELDS).close()
    with pytest.raises(errors.SchemaMismatchError, match="features"):
        DatasetWriter(tmp_path / "d", {**FIELDS, "features": FieldSpec("float32", shape=(4,))})


FRAMES = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("change, words", [
    ({"features": FRAMES.astype(np.float64)},
     'field "features" is float64 of shape [2, 3]; allowed: float32 of shape [T, 3]'),
    ({"features": FRAMES.astype(">f4")}, "float32, big-endian, of shape [2, 3]"),
    ({"features": FRAMES[:, :2]}, "float32 of shape [2, 2]; allowed: float32 of shape [T, 3]"),
    ({"features": FRAMES[0]}, "float32 of shape [3]; allowed"),
    ({"features": [[1, 2, 3], [4]]}, 'field "features" is ragged'),
    ({"features": "two frames"}, 'field "features" is a str; allowed: float32 of shape [T, 3]'),
    ({"features": FRAMES.astype(np.float64)}, '.astype("float32") converts it'),
    ({"tokens": np.zeros(3, np.int64)}, '.astype("int32") converts it'),
    ({"speaker": 2}, 'field "speaker" has the value 2; allowed: 0 to 1, for its categories are ann,'),
    ({"speaker": "eve"}, "no category 'eve'; it has ann, bob"),
    ({"speaker": np.uint8(255)}, "has the value 255"),
    ({"features": [[1, 2, np.nan], [np.inf, 0, 0]]},
     "has 2 values that are NaN or infinite, the first at [0, 2]"),
    ({"features": object()}, "a object, which is not an array"),
    ({"features": np.ma.masked_array(FRAMES)}, "a masked array"),
    ({"features": FRAMES[:0]}, "no frames; a sequence has at least one"),
    ({"targets": np.zeros(3, np.int16)}, 'field "targets" has length 3, not 2'),
    ({"targets": [1, 2.5]}, "numbers that NumPy takes for float64; allowed: int16 of shape [T]"),
    ({"targets": [1, 70000]}, "numbers from 1 to 70000; allowed: int16"),
    ({"speaker": 256}, "numbers from 256 to 256; allowed: uint8 of shape []"),
    ({"speaker": np.zeros(2, np.uint8)}, "uint8 of shape [2]; allowed: uint8 of shape []"),
    ({"features": [[1, 2, 1e39]] * 2}, "numbers from 1.0 to 1e+39; allowed: float32"),
    ({"tokens": np.zeros((2, 2), np.int32)}, "allowed: int32 of shape [U]"),
    ({"colour": 3}, 'the dataset has no field "colour"; its fields are features, targets'),
])
def test_a_value_that_does_not_fit_is_refused_by_key_and_field(tmp_path, change, words):
    good = {"features": FRAMES, "targets": [1, 2], "tokens": [], "speaker": 1}
    with DatasetWriter(tmp_path / "d", FIELDS) as writer:
        with pytest.raises(errors.SchemaMismatchError) as refused:
            writer.add("LJ1", **{**good, **change})
        assert 'key "LJ1": ' in str(refused.value) and words in str(refused.value)
        assert writer.add("LJ1", **good) == 0


def test_a_missing_value_is_refused_and_named(tmp_path):
    with DatasetWriter(tmp_path / "d", {"a": "int32"}) as writer:
        with pytest.raises(errors.SchemaMismatchError, match='missing for field "a"'):
            writer.add("k")
        with pytest.raises(errors.SchemaMismatchError, match='no field "b", and .* field "a"'):
            writer.add("k", b=[1])


def test_keys_that_are_taken_or_none_are_refused(tmp_path):
    with DatasetWriter(tmp_path / "d", {"a": "int32"}) as writer:
        assert writer.add("k", a=[1]) == 0
        with pytest.raises(errors.AlreadyExistsError, match='key "k" is already in dataset'):
            writer.add("k", a=[1])
        with pytest.raises(errors.SchemaMismatchError, match="a key has 1 to 511 bytes, found 0"):
            writer.add("", a=[1])
        with pytest.raises(errors.SchemaMismatchError, match="found 512"):
            writer.add("k" * 512, a=[1])
        with pytest.raises(errors.InvalidArgumentError, match="key 5 is of type int"):
            writer.add(5, a=[1])
        assert writer.add("日本", a=[1]) == 1
    assert [key for key, _ in read(tmp_path / "d")] == ["k", "日本"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "int16", "uint8"])
def test_arrays_of_every_dtype_are_taken_as_they_lie_or_copied_once(tmp_path, dtype):
    whole = np.arange(24).astype(dtype).reshape(4, 6)
    readonly = whole.copy()
    readonly.flags.writeable = False
    wide = np.arange(48).astype(dtype).reshape(4, 12)
    layouts = [whole, wide[:, ::2], whole[::-1], np.asfortranarray(whole), readonly]
    with DatasetWriter(tmp_path / "d", {"a": FieldSpec(dtype, shape=(6,))}) as writer:
        for n, layout in enumerate(layouts):
            writer.add(str(n), a=layout)
    assert [values[0][0] for _, values in read(tmp_path / "d")] == [
        layout.tobytes() for layout in layouts]


def test_lists_become_the_fields_dtype(tmp_path):
    fields = {"a": "float32", "b": FieldSpec("int64", kind="aligned"), "c": FieldSpec("uint8", (2,),
                                                                              "independent")}
    with DatasetWriter(tmp_path / "d", fields) as writer:
        writer.add("k", a=[1, 2.5], b=[-1, 1 << 40], c=[])
    assert read(tmp_path / "d") == [("k", [(struct.pack("<2f", 1, 2.5), 2),
                                           (struct.pack("<2q", -1, 1 << 40), 2), (b"", 0)])]


def test_bytes_are_values_of_uint8(tmp_path):
    with DatasetWriter(tmp_path / "d", {"a": "uint8"}) as writer:
        writer.add("one", a=b"one")
        writer.add("two", a=bytearray(b"two!"))
    with DatasetWriter(tmp_path / "e", {"a": "int16"}) as writer:
        with pytest.raises(errors.SchemaMismatchError, match="allowed: int16 of shape"):
            writer.add("one", a=b"one!")
    assert read(tmp_path / "d") == [("one", [(b"one", 3)]), ("two", [(b"two!", 4)])]


def test_text_is_given_as_bytes_and_says_so(tmp_path):
    with DatasetWriter(tmp_path / "d", {"a": "uint8"}) as writer:
        with pytest.raises(errors.SchemaMismatchError, match=r"text is given as bytes: \.encode\(\)"):
            writer.add("k", a="hello")


def test_names_of_categories_are_their_numbers(tmp_path):
    fields = {"a": FieldSpec("int16", categories=("x", "y", "z")),
              "who": FieldSpec("uint8", kind="scalar", categories=("ann", "bob"))}
    with DatasetWriter(tmp_path / "d", fields) as writer:
        writer.add("k", a=["z", "x"], who="bob")
    assert read(tmp_path / "d") == [("k", [(struct.pack("<2h", 2, 0), 2), (b"\1", 1)])]


def test_what_is_not_finite_is_taken_where_that_was_asked_for_and_counted(tmp_path):
    fields = {"a": "float32", "b": FieldSpec("bfloat16", (), "aligned"),
              "c": FieldSpec("float16", kind="independent")}
    bad = {"a": [1, np.nan], "b": np.array([0x7F80, 0x3F80], np.uint16),
           "c": np.array([np.inf, -np.inf, 65504], np.float16)}
    good = {"a": [3e38, -3e38], "b": np.array([0x7F7F, 0xFF7F], np.uint16),
            "c": np.array([65504, -65504], np.float16)}
    with DatasetWriter(tmp_path / "d", fields, non_finite="accept") as writer:
        writer.add("bad", **bad)
        assert writer.non_finite == 4
        writer.add("good", **good)
        assert writer.non_finite == 4
    with DatasetWriter(tmp_path / "e", fields) as writer:
        for name in fields:
            with pytest.raises(errors.SchemaMismatchError, match=f'field "{name}" has . values that'):
                writer.add("k", **{**good, name: bad[name]})
        writer.add("k", **good)
    with pytest.raises(errors.InvalidArgumentError, match="refuse, accept"):
        DatasetWriter(tmp_path / "f", fields, non_finite="skip")


def test_keys_that_are_no_utf_8_are_their_bytes(tmp_path):
    key = os.fsdecode(b"caf\xe9")
    with DatasetWriter(tmp_path / "d", {"a": "int32"}) as writer:
        writer.add(key, a=[1])
        assert key in writer and b"caf\xe9" in writer
        with pytest.raises(errors.AlreadyExistsError):
            writer.add(b"caf\xe9", a=[1])
        with pytest.raises(errors.InvalidArgumentError, match=r"key '\\ud800' is not text"):
            writer.add("\ud800", a=[1])
        with pytest.raises(errors.SchemaMismatchError, match=r"key 'caf\\udce9': "):
            writer.add(key, a=[1.5])


class Exporter:
    """An array of a library that speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **words):
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_what_exports_dlpack_is_taken(tmp_path):
    array = np.arange(5, dtype=np.int32)
    with DatasetWriter(tmp_path / "d", {"a": "int32"}) as writer:
        writer.add("k", a=Exporter(array))
    assert read(tmp_path / "d")[0][1] == [(array.tobytes(), 5)]


def test_tensors_are_taken_bfloat16_among_them(tmp_path):
    torch = pytest.importorskip("torch")
    fields = {"a": FieldSpec(torch.float32, (3,)), "b": FieldSpec(torch.bfloat16, (3,), "aligned")}
    a = torch.arange(12, dtype=torch.float32).reshape(4, 3).requires_grad_()
    b = (a * 0.5).to(torch.bfloat16)
    patterns = b.detach().view(torch.int16).numpy().view(np.uint16)
    with DatasetWriter(tmp_path / "d", fields) as writer:
        writer.add("rows", a=a, b=b)
        writer.add("columns", a=a.T.contiguous().T, b=b.T.contiguous().T)
        writer.add("patterns", a=a, b=patterns)
        with pytest.raises(errors.SchemaMismatchError, match=r"float64 of shape \[4, 3\]"):
            writer.add("k", a=a.double(), b=b)
        with pytest.raises(errors.SchemaMismatchError, match="bfloat16 of shape"):
            writer.add("k", a=b, b=b)
        with pytest.raises(errors.SchemaMismatchError, match="on meta.*use .cpu"):
            writer.add("k", a=torch.empty((4, 3), device="meta"), b=b)
        with pytest.raises(errors.SchemaMismatchError, match="that NumPy cannot take"):
            writer.add("k", a=torch.zeros(4, 3, dtype=torch.complex64).conj().imag, b=b)
        with pytest.raises(errors.SchemaMismatchError, match="as a tensor of torch or as uint16"):
            writer.add("k", a=a, b=np.zeros((4, 3), np.float32))
    values = [(a.detach().numpy().tobytes(), 4), (patterns.tobytes(), 4)]
    assert [found for _, found in read(tmp_path / "d")] == [values] * 3


# ---- a length alone -----------------------------------------------------------------------------

SOUND = {"audio": FieldSpec("int16"), "rate": FieldSpec("uint8", (0,), "independent")}


def test_a_field_without_content_takes_its_length(tmp_path):
    samples = np.arange(5, dtype=np.int16)
    with DatasetWriter(tmp_path / "d", SOUND) as writer:
        writer.add("number", audio=samples, rate=16000)
        writer.add("numpy's", audio=samples, rate=np.int32(16000))
        writer.add("array", audio=samples, rate=np.zeros((16000, 0), "uint8"))
        writer.add("none", audio=samples, rate=0)
        for wrong, words in [(-1, "rate\" is -1; allowed: its length, 0 to"), (1 << 32, "allowed: its"),
                             (True, "uint8 of shape"), (16000.0, "numbers that NumPy takes for float")]:
            with pytest.raises(errors.SchemaMismatchError, match=words):
                writer.add("wrong", audio=samples, rate=wrong)
    assert [values[1] for _, values in read(tmp_path / "d")] == [(b"", 16000)] * 3 + [(b"", 0)]


def test_a_length_is_no_value_of_a_field_with_content(tmp_path):
    with DatasetWriter(tmp_path / "d", {"a": FieldSpec("int16", (2,))}) as writer:
        with pytest.raises(errors.SchemaMismatchError, match=r"allowed: int16 of shape \[T, 2\]"):
            writer.add("k", a=3)


# ---- many sequences in one call -----------------------------------------------------------------

def many(first, end):
    """The arguments of add_many() for samples."""
    samples = [sample(n) for n in range(first, end)]
    values = {name: np.concatenate([np.atleast_1d(each[name]) for each in samples]) for name in FIELDS}
    return ([f"key/{n}" for n in range(first, end)], values,
            {"features": [len(each["features"]) for each in samples],
             "tokens": [len(each["tokens"]) for each in samples]})


def test_many_are_what_each_of_them_is(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS, commit_sequences=70) as writer:
        assert writer.add_many(*many(0, 200)) == range(0, 200)
        add_samples(writer, 200, 210)
        assert writer.add_many(*many(210, 211)) == range(210, 211)
        keys, values, lengths = many(211, 300)
        assert writer.add_many(keys, {**values, "features": np.asfortranarray(values["features"])},
                               {name: np.uint32(each) for name, each in lengths.items()}) == range(211, 300)
    assert holds_samples(tmp_path / "d", 300)


def test_none_of_many_adds_nothing(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS) as writer:
        none = {name: np.zeros((0, *field.shape), field.dtype) for name, field in FIELDS.items()}
        assert len(writer.add_many([], none, {"features": [], "tokens": []})) == 0
        assert writer.sequences == 0


@pytest.mark.parametrize("values", [np.arange(6, dtype=np.int32), {"ids": [0, 1, 2, 3, 4, 5]}])
@pytest.mark.parametrize("lengths, expected", [
    ([1, 2, 3], [1, 2, 3]), (2, [2, 2, 2]), ({"ids": np.array([3, 2, 1])}, [3, 2, 1])])
def test_a_dataset_of_one_field_needs_no_names(tmp_path, values, lengths, expected):
    with DatasetWriter(tmp_path / "d", {"ids": "int32"}) as writer:
        writer.add_many(["a", b"b", "c"], values, lengths)
    found = read(tmp_path / "d")
    assert [values[0][1] for _, values in found] == expected
    assert b"".join(values[0][0] for _, values in found) == np.arange(6, dtype=np.int32).tobytes()


def test_lengths_alone_and_names_of_categories_come_for_many(tmp_path):
    fields = {**SOUND, "speaker": FieldSpec("uint8", kind="scalar", categories=("ann", "bob"))}
    sound = np.arange(6, dtype=np.int16)
    with DatasetWriter(tmp_path / "d", fields) as writer:
        writer.add_many("ab", dict(audio=sound, rate=16000, speaker=["bob", "ann"]), [2, 4])
        writer.add_many("cd", dict(audio=sound, rate=[8000, 0xFFFFFFFF], speaker=[0, 1]), [3, 3])
    found = {key: [(data, length) for data, length in values] for key, values in read(tmp_path / "d")}
    assert [found[key][1][1] for key in "abcd"] == [16000, 16000, 8000, 0xFFFFFFFF]
    assert [found[key][2][0] for key in "abcd"] == [b"\1", b"\0", b"\0", b"\1"]
    assert found["b"][0] == (sound[2:].tobytes(), 4)


@pytest.mark.parametrize("change, words", [
    (dict(features=np.zeros((5, 3), np.float32)), '"features" has 5 frames, and its lengths are 6'),
    (dict(lengths=[1, 2, 3]), "is independent, and has no lengths"),
    (dict(lengths={"features": [1, 2], "tokens": [0, 0, 0]}), r"int64 of shape \[2\]; allowed: .*\[3\]"),
    (dict(lengths={"features": [1.0, 2, 3], "tokens": 0}), "float64 of shape"),
    (dict(lengths={"features": [-1, 4, 3], "tokens": 0}), "have -1; allowed: 0 to"),
    (dict(lengths={"features": [1, 2, 3], "tokens": 0, "x": 1}), 'lengths of "x", which is no field'),
    (dict(features=np.full((6, 3), np.nan, np.float32)), "18 values that are NaN"),
    (dict(features=np.zeros((6, 2), np.float32)), r"allowed: float32 of shape \[T, 3\]"),
    (dict(speaker=np.array([0, 1, 2], np.uint8)), 'field "speaker" has the value 2'),
    (dict(speaker=np.zeros((3, 1), np.uint8)), "for many sequences"),
    (dict(speaker=np.zeros(2, np.uint8)), '"speaker" has 2 frames, and its lengths are 3'),
    (dict(targets=None), 'a value is missing for field "targets"'), (dict(x=1), 'has no field "x"')])
def test_of_many_that_are_wrong_as_a_whole_none_is_added(tmp_path, change, words):
    values = {"features": np.zeros((6, 3), np.float32), "targets": np.zeros(6, np.int16),
              "tokens": np.zeros(0, np.int32), "speaker": np.zeros(3, np.uint8)}
    values = {name: each for name, each in {**values, **change}.items() if each is not None}
    lengths = values.pop("lengths", {"features": [1, 2, 3], "tokens": 0})
    with DatasetWriter(tmp_path / "d", FIELDS) as writer:
        with pytest.raises(errors.SchemaMismatchError, match=words):
            writer.add_many("abc", values, lengths)
        assert writer.sequences == 0


def test_of_many_those_before_a_key_that_is_there_are_added(tmp_path):
    with DatasetWriter(tmp_path / "d", {"ids": "int32"}) as writer:
        with pytest.raises(errors.AlreadyExistsError, match='"a"'):
            writer.add_many(["a", "b", "a", "c"], np.arange(4, dtype=np.int32))
        assert writer.sequences == 2
        with pytest.raises(errors.InvalidArgumentError, match="is of type int"):
            writer.add_many(["d", 3], np.arange(2, dtype=np.int32))
        assert "d" not in writer
