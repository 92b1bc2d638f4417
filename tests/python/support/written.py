"""Made-up sequences, written, and read again by the layouts in
formats/README.md and storage/dataset/FORMAT.md."""

import os
import struct
import subprocess
import sys

import lmdb
import numpy as np

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


def other_process(path, *lines):
    """A process that opens a writer, runs `lines`, and says so as it goes."""
    code = "\n".join([
        "import sys", f"sys.path[:0] = {sys.path!r}", "from written import *",
        f"writer = DatasetWriter({str(path)!r}, FIELDS, commit_sequences=20)", *lines])
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE, text=True, cwd=os.path.dirname(__file__))
