"""Commits, and whatever comes between: errors, kills, forks, threads, full disks."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading

import pytest

from batchwright import _storage_abi, errors
from batchwright.writer import DatasetWriter

from written import FIELDS, add_samples, holds_samples, other_process, read, sample


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
    with pytest.warns(RuntimeWarning, match="was not closed"):
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
