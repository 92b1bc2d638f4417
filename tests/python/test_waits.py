"""Every wait has a limit, says what it waited for, and can be interrupted."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import batchwright
import served


@pytest.fixture
def full(feed):
    """A subscription all of whose credits are out: its next batch never comes."""
    with feed.subscribe(window=1) as subscription:
        subscription.kept = subscription.next()
        yield subscription
        subscription.kept.release()


def test_no_daemon_is_a_timeout_that_names_the_endpoint(tmp_path):
    endpoint = f"ipc://{tmp_path}/nobody"
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="nobody.*is batchwrightd running") as caught:
        batchwright.connect(endpoint, timeout=0.2)
    assert 0.2 <= time.monotonic() - started < served.SECONDS
    assert endpoint in str(caught.value)


def test_an_endpoint_of_no_kind_is_refused():
    with pytest.raises(batchwright.UnsupportedError, match="http"):
        batchwright.connect("http://localhost")


@pytest.mark.parametrize("limit", [0, 0.02, 0.5])
def test_a_wait_ends_with_its_limit_and_says_why(full, limit):
    started = time.monotonic()
    with pytest.raises(batchwright.TimedOutError) as caught:
        full.next(timeout=limit)
    assert limit <= time.monotonic() - started < served.SECONDS
    assert f'no batch of feed "train" within {limit:g} s' in str(caught.value)
    assert "all 1 credits are out: release a batch" in str(caught.value)


def test_a_timeout_leaves_the_subscription_as_it_was(full):
    with pytest.raises(TimeoutError):
        full.next(timeout=0)
    full.kept.release()
    assert full.next(timeout=served.SECONDS).index == 1


def test_a_limit_that_is_none_is_refused(full):
    for limit in (-1, float("nan"), float("inf"), "1"):
        with pytest.raises((batchwright.InvalidArgumentError, TypeError)):
            full.next(timeout=limit)


def interrupted(program):
    """Starts a program that prints a line before it waits, sends it SIGINT, and returns how it
    ended and how long that took."""
    process = subprocess.Popen([sys.executable, "-u", "-c", program], env=served.environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n", process.stderr.read()
    state = f"/proc/{process.pid}/stat"

    def sleeps():
        with open(state) as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "S"

    served.eventually(sleeps, "the program to wait")
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=served.SECONDS)
    return process.returncode, said, time.monotonic() - started


def test_ctrl_c_interrupts_a_wait_for_a_batch(daemon):
    code, said, seconds = interrupted(f"""
import batchwright
feed = batchwright.connect({daemon.endpoint!r}).feed("train")
subscription = feed.subscribe(window=1)
kept = subscription.next()
print("waiting")
subscription.next(timeout=300)
""")
    assert code == -signal.SIGINT and "KeyboardInterrupt" in said
    assert seconds < 10


def test_ctrl_c_interrupts_connecting(tmp_path):
    code, said, seconds = interrupted(f"""
import batchwright
print("waiting")
batchwright.connect("ipc://{tmp_path}/nobody", timeout=300)
""")
    assert code == -signal.SIGINT and "KeyboardInterrupt" in said
    assert seconds < 10


def test_after_an_interruption_the_next_batch_is_the_next(feed):
    """A signal's handler raises in the middle of a wait; no batch is lost by it."""
    class Interruption(Exception):
        pass

    def handler(*_):
        raise Interruption

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with feed.subscribe(window=1) as subscription:
            for index in range(5):
                batch = subscription.next()
                assert batch.index == index
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with pytest.raises(Interruption):
                    subscription.next(timeout=300)
                batch.release()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_a_thread(call):
    """Starts `call`; the list gets what it raises."""
    raised = []

    def run():
        try:
            call()
        except batchwright.Error as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def waits(subscription):
    served.eventually(subscription._lock.locked, "a thread to wait")


def test_closing_a_subscription_ends_a_wait_in_another_thread(full):
    thread, raised = in_a_thread(lambda: full.next(timeout=300))
    waits(full)
    full.close()
    thread.join(served.SECONDS)
    assert [type(error) for error in raised] == [batchwright.ClosedError]
    with pytest.raises(batchwright.ClosedError):
        full.next()


def test_closing_the_connection_ends_a_wait_in_another_thread(daemon):
    connection = batchwright.connect(daemon.endpoint)
    subscription = connection.feed("train").subscribe(window=1)
    kept = subscription.next()
    thread, raised = in_a_thread(lambda: subscription.next(timeout=300))
    waits(subscription)
    connection.close()
    thread.join(served.SECONDS)
    assert [type(error) for error in raised] == [batchwright.DisconnectedError]
    assert kept["features"].shape[0] == 4


def polls(thread):
    """Whether a thread waits in the library, which it reaches behind the package's own lock."""
    return "poll" in pathlib.Path(f"/proc/self/task/{thread.native_id}/wchan").read_text()


def test_a_second_thread_is_told_that_the_first_one_waits(full):
    thread, raised = in_a_thread(lambda: full.next(timeout=300))
    waits(full)
    served.eventually(lambda: polls(thread), "it to wait in the library")
    for ask in (full.next, lambda: full.position):
        with pytest.raises(batchwright.BusyError, match="another thread.*connect"):
            ask()
    with pytest.raises(batchwright.BusyError, match=r"next\(\) or subscribe\(\).*connect\(\) once"):
        full._connection.feed("train").subscribe()
    full.close()
    thread.join(served.SECONDS)
    assert len(raised) == 1


def test_who_waits_sleeps(full):
    """A wait costs next to nothing: no loop spins meanwhile."""
    before = os.times()
    with pytest.raises(TimeoutError):
        full.next(timeout=1)
    after = os.times()
    assert (after.user + after.system) - (before.user + before.system) < 0.2


def test_ctrl_c_at_any_moment_is_heard_and_loses_no_batch(feed, monkeypatch):
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts = 0
    try:
        with feed.subscribe(window=2) as subscription:
            while interrupts < 500:
                try:
                    # Anywhere in some dozen batches; again, in case that one is not heard.
                    signal.setitimer(signal.ITIMER_REAL, 5e-5 + interrupts % 100 * 2e-6, 0.05)
                    while True:
                        batch = subscription.next(timeout=served.SECONDS)
                        del batch
                except KeyboardInterrupt:
                    interrupts += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            held = [subscription.next(timeout=served.SECONDS) for _ in range(2)]
            assert all(isinstance(each, (batchwright.Batch, batchwright.EpochEnd)) for each in held)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not lost
