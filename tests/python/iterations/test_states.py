"""Threads beside an iteration, and states that are told at any time."""

import itertools
import queue
import random
import signal
import threading
import time

import pytest
import torch
from torch.utils.data import DataLoader

import batchwright
import served
from batchwright.torch import BatchDataset
from epochs import STEPS, WHOLE, place, rest


# ---- threads --------------------------------------------------------------------------------------


class Ahead:
    """Fetches ahead in a thread, as such generators do, and is left by `break`."""

    def __init__(self, batches):
        self.queue = queue.Queue(1)
        self.left = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(batches,))
        self.thread.start()

    def _run(self, batches):
        try:
            for batch in batches:
                self._put(batch)
            self._put(None)
        except Exception as error:
            self._put(error)

    def _put(self, event):
        while not self.left.is_set():
            try:
                return self.queue.put(event, timeout=0.01)
            except queue.Full:
                pass

    def __iter__(self):
        for event in iter(self.queue.get, None):
            if isinstance(event, Exception):
                raise event
            yield event

    def end(self):
        self.left.set()
        self.thread.join(served.SECONDS)
        assert not self.thread.is_alive()
        while not self.queue.empty():
            self.queue.get()


def test_an_epoch_that_is_set_beside_a_thread_that_fetches_ahead_is_whole(dataset):
    left = None
    for number in range(20):
        epoch = number % 4
        dataset.set_epoch(epoch)
        ahead = Ahead(iter(dataset))
        for index, batch in enumerate(ahead):
            assert place(batch) == (epoch, index)
            if index == number % 5:
                break
        del batch
        if left is not None:
            left.end()  # it was alive beside the next one, with what it held
        left = ahead
    dataset.set_epoch(3)
    assert rest(Ahead(iter(dataset))) == WHOLE[3 * STEPS:]
    left.end()


def test_a_wait_in_another_thread_ends_with_its_iterator(daemon):
    with BatchDataset(daemon.endpoint, window=2, timeout=300) as dataset:
        batches = iter(dataset)
        held = [next(batches), next(batches)]
        raised = []

        def wait():
            try:
                next(batches)
            except batchwright.ClosedError as error:
                raised.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        served.eventually(dataset._stream.subscription._lock.locked, "the thread to wait")
        started = time.monotonic()
        dataset.set_epoch(2)
        for batch in held:
            batch.release()
        assert rest(dataset) == WHOLE[2 * STEPS:3 * STEPS]
        thread.join(served.SECONDS)
        assert len(raised) == 1 and "set_epoch(2)" in raised[0]
        assert time.monotonic() - started < 10


# ---- a state at any time --------------------------------------------------------------------------


def test_a_state_is_told_at_any_time_by_any_thread(dataset):
    """A thread reads states without a pause; each is one that goes on somewhere."""
    ended, states, failures = threading.Event(), set(), []

    def save():
        while not ended.is_set():
            try:
                state = dataset.state_dict()
                states.add((state["epoch"], state["step"], state["done"], state["ended"]))
                dataset.state_dict(finished=True)
            except Exception as error:
                failures.append(error)
                return

    thread = threading.Thread(target=save)
    thread.start()
    for epoch in (0, 3, 1):
        dataset.set_epoch(epoch)
        assert rest(dataset) == WHOLE[epoch * STEPS:][:STEPS]
    ended.set()
    thread.join(served.SECONDS)
    assert not failures
    assert states <= {(epoch, step, 0, ended) for epoch in range(4) for step in range(STEPS + 1)
                      for ended in (False, True) if not ended or step == STEPS}


def test_a_state_is_told_in_a_handler_of_signals_within_a_wait(daemon):
    states = []
    with BatchDataset(daemon.endpoint, window=2, timeout=0.4) as dataset:
        batches = iter(dataset)
        held = [next(batches), next(batches)]
        before = signal.signal(signal.SIGALRM, lambda *_: states.append(dataset.state_dict()))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(batchwright.TimedOutError):
                next(batches)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert [state["step"] for state in states] == [2]
        del held


def test_a_state_is_told_without_a_daemon(serve):
    daemon = serve()
    with BatchDataset(daemon.endpoint, connect_timeout=1) as dataset:
        first = dataset.state_dict()
        rest(itertools.islice(dataset, 3))
        daemon.stop()
        assert dataset.state_dict()["step"] == 3
        dataset.set_epoch(2)
        fresh = dataset.state_dict()
    daemon.start()
    with BatchDataset(daemon.endpoint) as dataset:
        for state, wanted in ((first, WHOLE[:STEPS]), (fresh, WHOLE[2 * STEPS:3 * STEPS])):
            assert state["fingerprint"] is None
            dataset.load_state_dict(state)
            assert rest(dataset) == wanted


def test_a_state_without_a_plan_goes_through_torch_save_and_gets_one(dataset, tmp_path):
    torch.save(dataset.state_dict(), tmp_path / "state")
    dataset.load_state_dict(torch.load(tmp_path / "state"))
    assert dataset.state_dict()["fingerprint"] == dataset._stream.subscription.grant.fingerprint
    assert rest(dataset) == WHOLE[:STEPS]


def test_a_state_that_is_refused_leaves_the_place(dataset):
    rest(itertools.islice(dataset, 3))
    state = dataset.state_dict()
    with pytest.raises(batchwright.FingerprintMismatchError):
        dataset.load_state_dict({**state, "fingerprint": "-".join(["0" * 16] * 3)})
    assert dataset.state_dict() == state
    assert next(iter(dataset.resume())).index == 3


@pytest.mark.parametrize("wrong, words", [
    (dict(done=1), "done is 1 in the state; it is 0 to 0, for a step has 1 batches"),
    (dict(done=-1), "done is -1; it is 0 and up"), (dict(epoch=-1), "epoch is -1"),
    (dict(step=-1), "step is -1"), (dict(ended=True), "end of epoch 0, at step 3; the epoch has 15"),
    (dict(ended=True, done=2), "epoch's end, and its done is 2")])
def test_a_state_of_no_place_is_refused(dataset, wrong, words):
    rest(itertools.islice(dataset, 3))
    with pytest.raises(batchwright.InvalidArgumentError, match=words):
        dataset.load_state_dict({**dataset.state_dict(), **wrong})


def test_done_is_below_a_ranks_batches_of_a_step(serve):
    daemon = serve(world=4)
    with BatchDataset(daemon.endpoint, rank=0, ranks=2) as dataset:
        next(iter(dataset))
        state = dataset.state_dict()
        assert state["done"] == 1
        with pytest.raises(batchwright.InvalidArgumentError, match="done is 2 .* it is 0 to 1"):
            dataset.load_state_dict({**state, "done": 2})
        dataset.load_state_dict(state)
        assert next(iter(dataset)).step == 0


# ---- loaders that collate -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 32])
def test_a_loader_that_collates_is_refused_at_once(dataset, size):
    with pytest.raises(batchwright.UnsupportedError, match="batch_size=None, num_workers=0"):
        iter(DataLoader(dataset, batch_size=size))
    assert dataset._stream is None  # nothing was asked for
    pairs = DataLoader(dataset, batch_size=2, collate_fn=lambda batches: [place(b) for b in batches])
    assert next(iter(pairs)) == WHOLE[:2]


# ---- interrupts -----------------------------------------------------------------------------------


def test_an_interrupted_iteration_goes_on_with_the_batch_that_is_due(daemon):
    """As a cell of a notebook that is interrupted, and run again: every batch comes once, in order,
    and a state that is taken between goes on with the next one."""
    armed, draw, got, interrupts = False, random.Random(7), [], 0

    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with BatchDataset(daemon.endpoint, epochs=4, timeout=served.SECONDS) as dataset:
            while len(got) < len(WHOLE):
                batches = None
                try:
                    while True:
                        armed, batch = True, None
                        signal.setitimer(signal.ITIMER_REAL, 10 ** draw.uniform(-5, -1))
                        if batches is None:
                            batches = iter(dataset.resume())
                        batch = batches.__next__()  # nothing of C's stands between it and the name
                        armed = False
                        got.append(place(batch))
                except StopIteration:
                    armed = False
                except KeyboardInterrupt:
                    interrupts += 1
                    if batch is not None:
                        got.append(place(batch))
                    state = dataset.state_dict()
                    assert STEPS * state["epoch"] + state["step"] == len(got)  # also at an end
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got == WHOLE
    assert interrupts > 0
