"""When arenas are page-locked, and when slots go back, with a CUDA made of paper: the calls it gets
are written down, and its events come when the test says so."""

import gc
import os
import warnings

import pytest
import torch

import batchwright
import served
from batchwright import gpu
from batchwright._memory import in_flight

GPU = "cuda:0"


class Event:
    def __init__(self):
        self.come = False

    def query(self):
        return self.come

    def synchronize(self):
        self.come = True


class PaperCuda:
    """Copies stay on the CPU."""

    def __init__(self, read_only=True, error=0):
        self.read_only, self.error = read_only, error
        self.registered, self.calls, self.events, self.staged = {}, [], [], 0

    def available(self):
        return True

    def synchronize(self, device):
        self.calls.append(f"synchronize {device}")

    def read_only_supported(self, device):
        return self.read_only

    def register(self, address, size):
        assert address not in self.registered
        self.calls.append("register")
        if self.error == 0:
            self.registered[address] = size
        return self.error

    def unregister(self, address):
        with open("/proc/self/maps") as maps:  # it is still there
            assert any(line.startswith(f"{address:x}-") for line in maps)
        del self.registered[address]
        self.calls.append("unregister")

    def stage(self, tensor):
        self.staged += 1
        return tensor.clone()

    def copy(self, tensor, device, non_blocking):
        if str(device) != GPU:
            self.calls.append(f"copy to {device}, " + ("later" if non_blocking else "now"))
        return tensor.clone()

    def event(self, device):
        self.events.append(Event())
        return self.events[-1]


@pytest.fixture
def cuda(monkeypatch):
    made = PaperCuda()
    monkeypatch.setattr(gpu, "cuda", made)
    monkeypatch.setattr(gpu, "_said", [])
    yield made
    in_flight.drain()
    gc.collect()
    assert not made.registered  # what registers also unregisters


@pytest.fixture
def connection(cuda, daemon):
    """Closed before the fixture `cuda` looks what is left."""
    with batchwright.connect(daemon.endpoint) as made:
        yield made


@pytest.mark.filterwarnings("error")
def test_the_arena_is_registered_once_and_unregistered_with_the_connection(daemon, cuda):
    with batchwright.connect(daemon.endpoint) as connection:
        for epoch in range(2):
            for batch in connection.feed("train").epoch(epoch):
                batch.to(GPU)
                cuda.events[-1].come = True
        del batch
        assert cuda.calls == ["register"]
        with open("/proc/self/maps") as maps:  # all of the mapping, from its first byte
            spans = [line.split()[0].split("-") for line in maps if "memfd" in line]
        spans = {int(first, 16): int(last, 16) - int(first, 16) for first, last in spans}
        assert cuda.registered.items() <= spans.items()
    gc.collect()
    assert cuda.calls == ["register", "unregister"]


def test_a_batch_that_is_held_keeps_the_registration(daemon, cuda):
    with batchwright.connect(daemon.endpoint) as connection:
        subscription = connection.feed("train").subscribe()
        subscription.next().to(GPU)
        view = subscription.next()["features"]
        another = subscription.next()
        another.to(GPU)
        cuda.events[1].come = True
        last = subscription.next()
        kept = last.torch("features")
        last.to(torch.device(GPU), fields=["features"])
        subscription.close()
    assert cuda.calls == ["register"]  # of what `kept` lies in
    del kept, view
    gc.collect()
    assert cuda.calls == ["register", "unregister"]


def test_the_slot_goes_back_with_the_event_and_not_before(subscription, cuda):
    for _ in range(2):
        subscription.next().to(GPU)
    assert served.is_full(subscription)
    cuda.events[0].come = True
    assert subscription.next().index == 2


def test_a_wait_sees_the_event_come(subscription, cuda):
    """Without anybody else looking: next() itself does."""
    for _ in range(2):
        subscription.next().to(GPU)
    asked = iter([False] * 50 + [True] * 50)
    cuda.events[0].query = lambda: next(asked)
    assert subscription.next(timeout=served.SECONDS).index == 2


def test_a_copy_and_a_release_look_at_events_too(subscription, cuda):
    first, second = subscription.next(), subscription.next()
    first.to(GPU)
    cuda.events[0].come = True
    assert len(in_flight.pending) == 1
    second.to(GPU)
    assert len(in_flight.pending) == 1
    cuda.events[1].come = True
    second.release()
    assert not in_flight.pending


def test_blocking_copies_leave_nothing_behind(subscription, cuda):
    batch = subscription.next()
    batch.to(GPU, non_blocking=False)
    assert batch.released and not cuda.events and not in_flight.pending


def test_closing_waits_for_copies_that_are_under_way(daemon, cuda):
    connection = batchwright.connect(daemon.endpoint)
    connection.feed("train").subscribe().next().to(GPU)
    connection.close()
    assert cuda.events[0].come and not in_flight.pending


@pytest.mark.parametrize("why,settings", [
    ("cannot register read-only memory", dict(read_only=False)),
    ("CUDA's error 801", dict(error=801))])
def test_without_registration_copies_are_staged_and_it_is_said_once(
        feed, monkeypatch, why, settings):
    cuda = PaperCuda(**settings)
    monkeypatch.setattr(gpu, "cuda", cuda)
    monkeypatch.setattr(gpu, "_said", [])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batch in feed.epoch(0):
            wanted = batch.torch("features").clone()
            moved = batch.to(GPU)
            assert torch.equal(moved["features"], wanted)
            assert not in_flight.pending  # the staged copy is all that is waited for
    assert len(said) == 1 and why in str(said[0].message)
    assert cuda.staged == 15 * 3
    assert cuda.calls.count("register") == settings.get("error", 0) // 801


def test_batches_that_came_as_messages_are_staged(daemon, cuda):
    with batchwright.connect(daemon.endpoint, inline=True) as connection:
        with pytest.warns(RuntimeWarning, match="come as messages"):
            connection.feed("train").subscribe().next().to(GPU)
    assert (cuda.calls, cuda.staged) == ([], 3)


@pytest.mark.parametrize("device", [GPU, "cpu"])
def test_a_moved_batch_knows_all_the_figures(subscription, cuda, device):
    batch = subscription.next()
    names = ("feed", "epoch", "step", "index", "world", "layout", "sequences", "batch_length",
             "frames", "step_sequences", "step_frames", "loss_weight", "sequence_weight", "rows_lost",
             "rehearsal", "position", "names")
    figures = {name: getattr(batch, name) for name in names}
    arrays = {name: getattr(batch, name).copy() for name in
              ("lengths", "ordinals", "starts", "flags")}
    text, own = batch["text"].copy(), batch.lengths_of("text").copy()
    moved = batch.to(device)
    assert batch.released
    assert {name: getattr(moved, name) for name in names} == figures
    assert all((getattr(moved, name) == value).all() for name, value in arrays.items())
    assert (moved.torch("text").numpy() == text).all()
    assert (moved.lengths_of("text") == own).all()
    with pytest.raises(KeyError, match='no field "none"; it has "features"'):
        moved["none"]
    with pytest.raises(batchwright.SchemaMismatchError):
        moved.lengths_of("label")


def test_only_the_fields_that_are_named_are_copied(subscription, cuda):
    moved = subscription.next().to(GPU, fields=["label"])
    assert moved.names == ["label"] and "label" in moved and "features" not in moved
    batch = subscription.next()
    with pytest.raises(batchwright.NotFoundError):
        batch.to(GPU, fields=["none"])
    assert not batch.released


def test_a_forked_child_calls_no_driver(subscription, cuda):
    subscription.next().to(GPU)
    batch = subscription.next()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            cuda.unregister = cuda.register = Event.query = Event.synchronize = None
            in_flight.reap()
            gpu._locks.clear()
            batch.release()
            del subscription, batch
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cuda.registered


def test_a_device_that_is_no_gpu_of_cudas_is_waited_for(connection, cuda):
    """There is no event to look at, so the copies end before the slot goes back."""
    batch = connection.feed("train").subscribe().next()
    batch.to("xpu", non_blocking=True)
    assert cuda.calls == ["copy to xpu, now"] * 3 + ["synchronize xpu"]
    assert batch.released and not cuda.events


def test_what_is_no_device_is_said_so(connection, cuda):
    batch = next(connection.feed("train").epoch(0))
    with pytest.raises(batchwright.InvalidArgumentError, match=r"batch.torch\(name\).to"):
        batch.to(torch.float16)
    with pytest.raises(batchwright.InvalidArgumentError, match="'gpu' is no device"):
        batch.to("gpu")
    cuda.available = lambda: False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(batchwright.UnsupportedError, match="torch finds no CUDA here"):
            batch.to("cuda")
    assert not batch.released


def test_writable_batches_are_staged(connection, cuda):
    """What was written must be what is copied; and a private mapping is never registered, for that
    would copy all of it."""
    with connection.feed("train").subscribe(writable=True) as subscription:
        batch = subscription.next()
        batch.torch("features").fill_(7)
        with pytest.warns(RuntimeWarning, match="writable batches lie in memory of their own"):
            moved = batch.to(GPU)
    assert bool((moved["features"] == 7).all())
    assert cuda.staged == 3 and not cuda.registered


def test_copied_batches_are_staged(daemon, cuda):
    from batchwright.torch import BatchDataset
    with BatchDataset(daemon.endpoint, copy=True) as dataset:
        batch = next(iter(dataset))
        batch.torch("features").fill_(7)
        with pytest.warns(RuntimeWarning, match="memory of their own"):
            moved = batch.to(GPU)
    assert bool((moved["features"] == 7).all())
    assert cuda.staged == 3 and not cuda.registered
