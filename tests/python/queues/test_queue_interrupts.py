"""What a wait that is interrupted leaves, and what a damaged journal does, at a queue and beside it."""

import gc
import opcode
import random
import signal
import subprocess
import sys

import pytest

import batchwright
import batchwright.subscription as package
import served

BATCHES = 15


@pytest.fixture
def queue(serve, tmp_path):
    return serve(feed=f'journal = "{tmp_path}/journal"')


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.fixture
def interrupted():
    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def next_in_spite_of(take, draw):
    """What `take` returns, interrupted again and again; and how often it was."""
    interrupts = 0
    while True:
        event = interrupt  # nothing came
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.003))
            # A function of Python's, as good as a `for` loop's step: a handler that ran once a call of
            # C had returned would lose what that gave.
            event = take()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except StopIteration:
            event = None
        except KeyboardInterrupt:
            interrupts += 1
        if event is not interrupt:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            return event, interrupts


@pytest.mark.parametrize("mode", ["replica", "queue"])
@pytest.mark.parametrize("taking", ["next", "iterate", "epoch"])
def test_a_wait_that_is_interrupted_has_no_effect(queue, interrupted, mode, taking):
    draw, epochs, interrupts, got = random.Random(5), 8, 0, []
    options = {} if mode == "replica" else {"mode": "queue"}
    with batchwright.connect(queue.endpoint) as connection:
        subscription = connection.feed("train").subscribe(epochs=epochs, timeout=served.SECONDS,
                                                          **options)
        loop = iter(subscription)
        for epoch in range(epochs):
            if taking == "epoch":
                loop = subscription.epoch()
            take = subscription.next if taking == "next" else loop.__next__
            while True:
                event, more = next_in_spite_of(take, draw)
                interrupts += more
                if not isinstance(event, batchwright.Batch):
                    break
                got.append((event.epoch, event.index))
                if taking == "next":
                    event.release()
                del event
            if taking == "iterate":
                break
    assert got == [(epoch, index) for epoch in range(epochs) for index in range(BATCHES)]
    assert queue.counter("queue_returns") == 0
    assert interrupts > 0


@pytest.mark.parametrize("share", [{}, {"rank": 1, "ranks": 3}, {"worst_first": 2}])
def test_a_position_is_that_of_the_event_that_an_interrupted_wait_has_left(serve, monkeypatch,
                                                                           share):
    daemon = serve(world=3, size=1)
    wait = package._next

    def interrupted_behind_success(*place):
        if wait(*place) == package._abi.TIMED_OUT:
            return package._abi.TIMED_OUT
        raise KeyboardInterrupt

    with batchwright.connect(daemon.endpoint) as connection:
        subscription = connection.feed("train").subscribe(epochs=2, timeout=served.SECONDS, **share)
        events = []
        while not events or events[-1] is not None:
            monkeypatch.setattr(package, "_next", interrupted_behind_success)
            with pytest.raises(KeyboardInterrupt):
                subscription.next()
            due = subscription.position
            monkeypatch.setattr(package, "_next", wait)
            events.append(subscription.next())
            if isinstance(events[-1], batchwright.Batch) and not events[-1].rehearsal:
                assert (due.epoch, due.step) == (events[-1].epoch, events[-1].step)
                events[-1] = events[-1].index
            elif events[-1] is not None:
                events[-1] = repr(type(events[-1]))
    batches = 20 * (1 if "rank" in share else 3)
    assert len(events) == 2 * (batches + 1) + 1 + share.get("worst_first", 0)


def test_a_damaged_journal_is_refused_and_what_is_sound_of_it_goes_on(queue, tmp_path):
    journal, mended = tmp_path / "journal", tmp_path / "mended"
    with batchwright.connect(queue.endpoint) as connection:
        subscription = connection.feed("train").subscribe(mode="queue")
        done = []
        for _ in range(6):
            with subscription.next() as batch:
                done.append(batch.index)
        subscription.close()
    queue.stop()
    content = bytearray(journal.read_bytes())
    last = len(content) // 32 - 1
    for record in (0, 1, last // 2, last - 1):
        content[32 * record + 9] ^= 1
        journal.write_bytes(content)
        queue.start()  # its feed is absent, and the daemon stays up
        with batchwright.connect(queue.endpoint) as connection:
            assert connection.feeds == {}
            reason = connection.absent["train"]
        assert f"journal {journal}: it is damaged" in reason
        assert f'"batchwright journal {journal}" shows what it holds' in reason
        assert reason in queue.log.read_text()
        queue.stop()
        assert journal.read_bytes() == bytes(content)
        content[32 * record + 9] ^= 1
    # The record that says that a batch is done: it is given again, and no other.
    kinds = [int.from_bytes(content[at + 4:at + 8], "little") for at in range(0, len(content), 32)]
    content[32 * kinds.index(3) + 9] ^= 1
    journal.write_bytes(content)
    queue.start()
    subprocess.run([served.BIN / "batchwright", "journal", journal, "--salvage", mended],
                   check=True, stdout=subprocess.DEVNULL)
    assert journal.read_bytes() == bytes(content)
    mended.replace(journal)
    served.eventually(lambda: "feed train: served again" in queue.log.read_text(), "the daemon to serve it")
    with batchwright.connect(queue.endpoint) as connection:
        subscription = connection.feed("train").subscribe(mode="queue", until_epoch=1)
        left = [batch.index for batch in subscription]
    assert sorted(set(done) & set(left)) == [done[0]]
    assert sorted(set(done) | set(left)) == list(range(BATCHES))


HANDLES_SIGNALS = ("CALL", "RESUME", "JUMP_BACKWARD")  # instructions at which Python does


def interrupted_at(number, call):
    """Calls, and interrupts at this one of the instructions of the package's at which a signal's
    handler may run; whether there are as many."""
    left, before = [number], {}

    def trace(frame, event, _):
        frame.f_trace_opcodes = True
        if event == "opcode" and "/batchwright/" in frame.f_code.co_filename:
            name, before[frame] = before.get(frame, ""), opcode.opname[
                frame.f_code.co_code[frame.f_lasti]]
            left[0] -= name.startswith(HANDLES_SIGNALS)
            if left[0] < 0:
                before.clear()
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    others = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(others)
    return left[0] < 0


@pytest.mark.parametrize("within", ["_breaks", "warn"])
def test_no_interrupt_keeps_the_batch_of_a_loop_that_was_left(queue, monkeypatch, within):
    def leave():
        for batch in subscription:
            left.append(batch.index)
            break

    monkeypatch.setattr(package, within, interrupt)
    ignored, left = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda why: ignored.append(why.exc_type))
    with batchwright.connect(queue.endpoint) as connection:
        subscription = connection.feed("train").subscribe(mode="queue", window=1, epochs=1,
                                                          timeout=served.SECONDS)
        gc.collect()
        gc.disable()
        try:
            leave()
            batch = subscription.next()  # with a window of one it comes once the loop has none
            indices = [batch.index]
            batch.release()
        finally:
            gc.enable()
        assert (len(left), ignored) == (1, [KeyboardInterrupt])
        for batch in subscription:
            indices.append(batch.index)
            del batch  # of the one credit
    assert sorted(indices) == list(range(BATCHES))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ending", ["close", "del", "connection"])
def test_no_interrupt_leaves_a_subscription_behind(queue, ending):
    def subscribe():
        subscription = connection.feed("train").subscribe(mode="queue", window=1)
        subscription.next(timeout=served.SECONDS)
        if ending == "close":
            subscription.close()

    def connect():
        one = batchwright.connect(queue.endpoint)
        one.close()

    def left():
        page = queue.stats()
        return len(page["feeds"][0]["subscribers"]), page["sessions"]

    with batchwright.connect(queue.endpoint) as connection:
        number = 0
        while interrupted_at(number, connect if ending == "connection" else subscribe):
            number += 1
        assert number > 20
        gc.collect()
        served.eventually(lambda: left() == (0, 1), "no subscription and one session to be there")
