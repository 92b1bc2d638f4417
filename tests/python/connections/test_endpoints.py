"""How a daemon is named, and reached: relative paths, names that are no text, threads that cannot be
had, and Ctrl-C while a thread is started."""

import itertools
import os
import signal
import subprocess
import sys

import pytest

import batchwright
import served
from batchwright import _waits
from batchwright.torch import BatchDataset

COMMAND = served.BIN / "batchwright"


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_relative_endpoint_is_that_of_the_folder_it_was_given_in(serve, monkeypatch, tmp_path,
                                                                   by_environment):
    """Of frameworks that change the folder for each run, while the daemon is started again."""
    daemon = serve()
    folder, name = os.path.split(daemon.endpoint[len("ipc://"):])
    monkeypatch.chdir(folder)
    endpoint = f"ipc://{name}"
    if by_environment:
        monkeypatch.setenv("BATCHWRIGHT_ENDPOINT", endpoint)
        endpoint = None
    with BatchDataset(endpoint, timeout=served.SECONDS) as dataset:
        batches = iter(dataset)
        next(batches)
        monkeypatch.chdir(tmp_path)
        daemon.stop(signal.SIGKILL)
        daemon.start()
        assert [batch.index for batch in itertools.islice(batches, 3)] == [1, 2, 3]
        assert dataset.steps(2) == 30  # by another connection


def test_a_relative_endpoint_whose_folder_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(batchwright.InvalidArgumentError, match="there is no folder run here"):
        batchwright.connect("ipc://run/bw.sock", timeout=0.2)


@pytest.mark.parametrize("name", ["/x/tr\udcffain.py", "/x/tr\ud800ain.py", "/x/a\u00f6.py"])
def test_a_script_whose_name_is_no_text_connects(daemon, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", [name])
    with batchwright.connect(daemon.endpoint) as connection:
        assert next(iter(connection.feed("train"))).index == 0


@pytest.mark.parametrize("wrong", ["ipc:///tmp/\ud800", "ipc:///tmp/a\0b"])
def test_an_endpoint_that_is_no_text_is_an_error_of_the_package(wrong):
    with pytest.raises(batchwright.InvalidArgumentError, match="endpoint is '"):
        batchwright.connect(wrong, timeout=0.1)
    with pytest.raises(batchwright.InvalidArgumentError, match="program is '"):
        batchwright.connect(program=wrong, timeout=0.1)


def test_a_folder_whose_name_is_no_text_is_refused_by_name(tmp_path):
    folder = os.fsencode(tmp_path) + b"/b\xffd"
    os.mkdir(folder)
    for path in (folder, os.fsdecode(folder)):
        with pytest.raises(batchwright.InvalidArgumentError, match="dataset is '.*not UTF-8"):
            with batchwright.serve(path, program=COMMAND):
                pytest.fail("it was served")


@pytest.mark.parametrize("name", ["plain", "a\u00f6\u2028", "a\x7f\"'\\"])
def test_a_folder_of_any_other_name_is_served(stored, tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.symlink(stored, tmp_path / name)
    for path in (tmp_path / name, os.fsencode(tmp_path / name)):
        with batchwright.serve(path, program=COMMAND, size=4) as endpoint:
            with batchwright.connect(endpoint) as connection:
                assert connection.feed("train").sequences == served.SEQUENCES


def test_without_a_thread_the_error_says_what_bounds_them(monkeypatch, daemon):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    with batchwright.connect(daemon.endpoint) as connection:
        monkeypatch.setattr(_waits._thread, "start_new_thread", refuse)
        words = "can't start new thread.*ulimit -u"
        for ask in (lambda: batchwright.connect(daemon.endpoint), connection.feed("train").subscribe):
            with pytest.raises(batchwright.SystemRefusedError, match=words):
                ask()


def test_ctrl_c_while_a_thread_is_started_is_a_keyboard_interrupt():
    """And nothing else, at whatever moment it comes; what the call makes and no caller takes is freed."""
    program = """
import gc, itertools, random, signal, sys, time
from batchwright import _waits
from batchwright._own import Owned
sys.setswitchinterval(1e-6)
signal.signal(signal.SIGALRM, signal.default_int_handler)
random.seed(3)
count, freed, taken, interrupts = itertools.count(), [], [], 0
for _ in range(3000):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 2e-4))
        taken.append(_waits.interruptible(lambda: Owned(next(count), freed.append)))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert interrupts > 100, interrupts
made = next(count)
gc.collect()
known = [each.handle for each in taken]
while not set(range(made)) <= set(freed + known):
    time.sleep(0.001)
assert len(set(freed + known)) == len(freed + known)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=served.environment(), stderr=subprocess.PIPE,
                           timeout=served.SECONDS * 4)
    assert (ended.returncode, ended.stderr) == (0, "")
