"""A connection is closed beside calls of other threads."""

import os
import subprocess
import sys
import threading

import pytest

import batchwright
import served


def test_closing_beside_other_threads_calls_is_safe(daemon):
    """In a process of its own, for what goes wrong here is a crash."""
    program = f"""
import sys, threading, time, batchwright
sys.setswitchinterval(1e-6)
wrong = []

def call(connection, what):
    while True:
        try:
            what(connection)
        except (batchwright.ClosedError, batchwright.DisconnectedError):
            return
        except batchwright.BusyError:
            pass
        except BaseException as error:
            wrong.append(error)
            return

def subscribe(connection):
    connection.feed("train").subscribe(window=1).close()

end = time.monotonic() + 4
rounds = 0
while time.monotonic() < end and not wrong:
    connection = batchwright.connect({daemon.endpoint!r})
    threads = [threading.Thread(target=call, args=(connection, what))
               for what in (subscribe, subscribe, subscribe, lambda each: each.info)]
    for each in threads:
        each.start()
    time.sleep(rounds % 7 * 1e-3)
    connection.close()
    connection.close()
    for each in threads:
        each.join()
    rounds += 1
assert not wrong, wrong
assert rounds > 5
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=served.environment(), stderr=subprocess.PIPE,
                           timeout=served.SECONDS * 4)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_last_call_out_frees_what_was_closed(daemon):
    connection = batchwright.connect(daemon.endpoint)
    with connection._handle() as handle:
        thread = threading.Thread(target=connection.close)
        thread.start()
        thread.join(served.SECONDS)
        assert connection._raw == handle  # still there for the call that is under way
        with pytest.raises(batchwright.ClosedError):
            connection.feed("train").subscribe()
    assert connection._raw is None
    connection.close()


@pytest.mark.parametrize("what", ["connection", "subscription", "dataset", "writer"])
def test_a_child_that_leaves_a_with_block_of_its_parents_goes_on(daemon, tmp_path, what):
    made = {
        "connection": lambda: batchwright.connect(daemon.endpoint),
        "subscription": lambda: batchwright.connect(daemon.endpoint).feed("train").subscribe(),
        "dataset": lambda: _dataset(daemon.endpoint),
        "writer": lambda: batchwright.DatasetWriter(tmp_path / "data", {"features": "float32"}),
    }[what]()
    with made:
        child = os.fork()
        if child == 0:
            left = 1
            try:
                made.__exit__(None, None, None)
                left = 0
            finally:
                os._exit(left)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _dataset(endpoint):
    from batchwright.torch import BatchDataset
    return BatchDataset(endpoint)


@pytest.fixture
def dataset(tmp_path):
    return served.make_dataset(tmp_path)


COMMAND = served.BIN / "batchwright"


def test_a_block_has_a_daemon_of_its_own(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with batchwright.serve(dataset, program=COMMAND, order="sorted", size=7, seed=3,
                           feed={"slots": 6, "padding": {"features": -1.0}},
                           daemon={"memory": "32MiB"}) as endpoint:
        with batchwright.connect(endpoint) as connection:
            feed = connection.feed("train")
            assert [batch.sequences for batch in feed.epoch(0)] == [7] * 8 + [4]
        with batchwright.serve([dataset], program=COMMAND, name="other", size=4) as other:
            assert other != endpoint
            with batchwright.connect(other) as connection:
                assert connection.feed("other").sequences == served.SEQUENCES
    assert not list(tmp_path.glob("batchwright-*")), "nothing stays behind"


def test_what_a_daemon_refuses_is_the_blocks_error(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for wrong, words in [
        ({"sise": 3}, "sise"), ({"order": "sorted", "bins": 3}, "bins"),
        ({"features": {"like": "kladi"}}, "kladi"), ({"styles": [{"weight": -1}]}, "weight"),
    ]:
        with pytest.raises(batchwright.BadConfigurationError, match=words):
            with batchwright.serve(dataset, program=COMMAND, **wrong):
                pytest.fail("it was served")
    with pytest.raises(batchwright.InvalidArgumentError, match="seed is of type object"):
        with batchwright.serve(dataset, program=COMMAND, seed=object()):
            pass
    with pytest.raises(batchwright.NotFoundError, match="no-such-program"):
        with batchwright.serve(dataset, program="no-such-program"):
            pass


def test_a_daemon_of_a_block_ends_with_a_process_that_is_killed(dataset, tmp_path):
    program = f"""
import os, signal, batchwright
with batchwright.serve({str(dataset)!r}, program={str(COMMAND)!r}, size=4) as endpoint:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-B", "-c", program], check=False,
                          env={**served.environment(), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert done.returncode == -9
    served.eventually(lambda: not list(tmp_path.glob("batchwright-*")), "the daemon's end")
