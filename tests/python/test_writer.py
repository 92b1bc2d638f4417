"""What Python writes is what LMDB holds, read here by the layout in the storage room's README."""

import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
import threading

import lmdb
import numpy as np
import pytest

import batchwright
from batchwright import _storage_abi, errors
from batchwright.writer import DatasetWriter, FieldSpec

FIELDS = {
    "features": FieldSpec("float32", shape=(3,)),
    "targets": FieldSpec("int16", kind="aligned"),
    "tokens": FieldSpec("int32", kind="independent"),
    "speaker": FieldSpec("uint8", kind="scalar", categories=("ann", "bob")),
}


def sample(n):
    """The n-th made-up sequence: T = n % 50 + 1, U = n % 7."""
    frames = n % 50 + 1
    return {
        "features": np.full((frames, 3), n, np.float32),
        "targets": np.arange(n, n + frames, dtype=np.int16),
        "tokens": np.full(n % 7, n, np.int32),
        "speaker": np.uint8(n % 2),
    }


def add_samples(writer, first, end):
    for n in range(first, end):
        assert writer.add(f"key/{n}", **sample(n)) == n


def read(path):
    """Key and raw values of every sequence, in order. No writer may be open in this process."""
    found = []
    with lmdb.open(str(path), readonly=True, max_dbs=4) as env, env.begin() as transaction:
        table = env.open_db(b"sequences", transaction, integerkey=True, create=False)
        for _, record in transaction.cursor(table):
            fields, key_bytes = struct.unpack_from("<HI", record, 10)
            (entries,) = struct.unpack_from("<Q", record, 32)
            values = []
            for i in range(fields):
                at, size, length = struct.unpack_from("<QQI", record, entries + 24 * i)
                values.append((record[at:at + size], length))
            found.append((record[entries - key_bytes:entries].decode(), values))
    return found


def holds_samples(path, count):
    found = read(path)
    assert len(found) == count
    for n, (key, values) in enumerate(found):
        expected = sample(n)
        assert key == f"key/{n}"
        assert [data for data, _ in values] == [each.tobytes() for each in expected.values()]
        assert [length for _, length in values] == [n % 50 + 1, n % 50 + 1, n % 7, 1]
    return True


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
    ({"a": "float32", "b": "int32"}, 'field "b" is but a dtype'),
    ({"a": "float32", "b": {"dtype": "int32"}}, 'field "b" has no kind'),
    ({"a": {"dtype": "int32", "size": 3}}, "field \"a\" has no 'size'"),
    ({"a": FieldSpec("float32", shape=(0,))}, "each from 1"),
    ({"a": FieldSpec("float32", shape=(1 << 30,))}, "16 MiB"),
    ({"a": FieldSpec("float32"), "b": FieldSpec("float32")}, "exactly one primary field, found 2"),
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
    ({"features": "two frames"}, 'field "features" is str'),
    ({"features": object()}, "a object, which is no array"),
    ({"features": np.ma.masked_array(FRAMES)}, "a masked array"),
    ({"features": FRAMES[:0]}, "no frames; a sequence has at least one"),
    ({"targets": np.zeros(3, np.int16)}, 'field "targets" has length 3, not 2'),
    ({"targets": [1, 2.5]}, "numbers that NumPy takes for float64; allowed: int16 of shape [T]"),
    ({"targets": [1, 70000]}, "numbers from 1 to 70000; allowed: int16"),
    ({"speaker": 256}, "numbers from 256 to 256; allowed: uint8 of shape []"),
    ({"speaker": np.zeros(2, np.uint8)}, "uint8 of shape [2]; allowed: uint8 of shape []"),
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
        with pytest.raises(errors.SchemaMismatchError, match="as a tensor of torch or as uint16"):
            writer.add("k", a=a, b=np.zeros((4, 3), np.float32))
    values = [(a.detach().numpy().tobytes(), 4), (patterns.tobytes(), 4)]
    assert [found for _, found in read(tmp_path / "d")] == [values] * 3


def test_commit_makes_visible_and_abort_drops_the_rest(tmp_path):
    writer = DatasetWriter(tmp_path / "d", FIELDS)
    add_samples(writer, 0, 5)
    writer.commit()
    writer.commit()
    add_samples(writer, 5, 9)
    writer.abort()
    assert holds_samples(tmp_path / "d", 5)
    for call in (writer.commit, lambda: writer.add("k"), lambda: writer.sequences):
        with pytest.raises(errors.ClosedError, match="closed"):
            call()
    writer.close()
    writer.abort()


def test_a_block_that_raises_drops_what_was_not_committed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with DatasetWriter(tmp_path / "d", FIELDS, commit_sequences=4) as writer:
            add_samples(writer, 0, 6)
            raise KeyboardInterrupt
    assert writer.closed
    assert holds_samples(tmp_path / "d", 4)


def test_a_writer_that_nobody_closes_says_so_and_lets_the_dataset_go(tmp_path):
    writer = DatasetWriter(tmp_path / "d", FIELDS)
    with pytest.warns(ResourceWarning, match="was not closed"):
        del writer
    DatasetWriter(tmp_path / "d", FIELDS).close()


def test_the_map_grows_by_itself(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS, map_bytes=1 << 17, commit_sequences=100) as writer:
        add_samples(writer, 0, 3000)
    assert (tmp_path / "d" / "data.mdb").stat().st_size > 1 << 17
    assert holds_samples(tmp_path / "d", 3000)


def test_a_full_disk_is_an_error_that_keeps_what_was_added(tmp_path):
    writer = DatasetWriter(tmp_path / "d", FIELDS)
    add_samples(writer, 0, 2000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # To its caller, a file that may not grow looks like a disk that is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, before[1]))
    try:
        with pytest.raises(errors.SystemRefusedError, match=str(tmp_path / "d")):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not writer.closed
    writer.close()
    assert holds_samples(tmp_path / "d", 2000)


def other_process(path, *lines):
    """A process that opens a writer, runs `lines`, and says so as it goes."""
    code = "\n".join([
        "import sys", f"sys.path[:0] = {sys.path!r}", "from test_writer import *",
        f"writer = DatasetWriter({str(path)!r}, FIELDS, commit_sequences=20)", *lines])
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE, text=True, cwd=os.path.dirname(__file__))


@pytest.mark.parametrize("commits", [1, 4])
def test_a_writer_killed_half_way_leaves_whole_commits_to_append_to(tmp_path, commits):
    child = other_process(tmp_path / "d", "for n in range(1 << 30):",
                          "    writer.add(f'key/{n}', **sample(n))", "    print(n, flush=True)")
    for line in child.stdout:
        if int(line) == 20 * commits + 7:
            break
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    there = len(read(tmp_path / "d"))
    assert there >= 20 * commits and there % 20 == 0
    with DatasetWriter(tmp_path / "d", FIELDS, mode="append") as writer:
        assert writer.sequences == there
        add_samples(writer, there, there + 10)
    assert holds_samples(tmp_path / "d", there + 10)


def test_another_process_is_waited_for_and_ctrl_c_ends_the_wait(tmp_path):
    with other_process(tmp_path / "d", "print('open', flush=True)", "sys.stdin.readline()",
                       "add_samples(writer, 0, 3)", "writer.close()") as child:
        assert child.stdout.readline() == "open\n"
        with pytest.raises(errors.TimedOutError, match="another process writes it, .* than 0.1 s"):
            DatasetWriter(tmp_path / "d", FIELDS, timeout=0.1)

        def interrupt(*_):
            raise KeyboardInterrupt

        previous = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(KeyboardInterrupt):
                DatasetWriter(tmp_path / "d", FIELDS)
        finally:
            signal.signal(signal.SIGALRM, previous)
        child.stdin.write("go on\n")
        child.stdin.flush()
        with DatasetWriter(tmp_path / "d", FIELDS) as writer:
            add_samples(writer, 3, 5)
    assert holds_samples(tmp_path / "d", 5)


def test_a_second_writer_of_this_process_is_refused(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS):
        with pytest.raises(errors.BusyError, match="this process has a writer of it open already"):
            DatasetWriter(tmp_path / "d", FIELDS)


def test_a_forked_child_is_refused_and_opens_its_own(tmp_path):
    writer = DatasetWriter(tmp_path / "d", FIELDS)
    add_samples(writer, 0, 1)
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (lambda: writer.add("k"), writer.commit, writer.close, writer.abort,
                     lambda: "k" in writer):
            try:
                call()
            except errors.ForkedError:
                refused += 1
        os._exit(0 if refused == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0
    writer.close()
    child = os.fork()
    if child == 0:
        with DatasetWriter(tmp_path / "d", FIELDS, timeout=0) as own:
            add_samples(own, 1, 2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert holds_samples(tmp_path / "d", 2)


def test_threads_take_turns(tmp_path):
    with DatasetWriter(tmp_path / "d", FIELDS, commit_sequences=50) as writer:
        def work(first):
            for n in range(first, first + 200):
                writer.add(str(n), **sample(n))

        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 200, 400, 600)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = dict(read(tmp_path / "d"))
    assert len(found) == 800
    assert all(values[0][0] == sample(int(key))["features"].tobytes()
               for key, values in found.items())


def test_torch_is_not_imported(tmp_path):
    with other_process(tmp_path / "d", "add_samples(writer, 0, 1)", "writer.close()",
                       "print('torch' in sys.modules)") as child:
        assert child.stdout.read() == "False\n"


def test_structs_are_those_of_the_header():
    """Their sizes and places; the header's are held by header_is_c11.c in the storage tests."""
    assert ctypes.sizeof(_storage_abi.Field) == 96
    assert ctypes.sizeof(_storage_abi.Options) == 80
    assert ctypes.sizeof(_storage_abi.Value) == 24
    assert ctypes.sizeof(_storage_abi.Sequence) == 32
    assert _storage_abi.Options.opening.offset == 40
    assert _storage_abi.Options.timeout_ms.offset == 72


def test_a_library_that_is_not_there_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n"
         "from batchwright.writer import DatasetWriter\nDatasetWriter('d', {'a': 'int32'})"],
        env={**os.environ, "BATCHWRIGHT_STORAGE_LIBRARY": "/no/lib.so"}, stderr=subprocess.PIPE,
        text=True, cwd=tmp_path)
    assert "LibraryError: BATCHWRIGHT_STORAGE_LIBRARY names /no/lib.so" in done.stderr
