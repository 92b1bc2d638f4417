"""A batch lives as long as a view of it, and no longer. Released slots are poisoned by the daemon,
so that a view of a slot that was given back too early shows it."""

import copy
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import batchwright
import served

VIEWS = {
    "array": lambda batch: batch["features"],
    "slice": lambda batch: batch["features"][1:, ::2],
    "torch": lambda batch: batch.torch("features"),
    "part of a tensor": lambda batch: batch.torch("features")[1:].transpose(0, 1),
    "dlpack": lambda batch: torch.from_dlpack(batch.tensor("features")),
    "dlpack in numpy": lambda batch: np.from_dlpack(batch.tensor("features")),
    "capsule": lambda batch: batch.tensor("features").__dlpack__(),
    "tensor": lambda batch: batch.tensor("features"),
    "memoryview": lambda batch: memoryview(batch["features"]),
}


COPIES = {
    "lengths": lambda batch: batch.lengths,
    "own lengths": lambda batch: batch.lengths_of("text"),
    "ordinals": lambda batch: batch.ordinals,
    "starts": lambda batch: batch.starts,
    "flags": lambda batch: batch.flags,
    "keys": lambda batch: batch.keys,
    "scalar": lambda batch: batch["label"],
    "scalar in torch": lambda batch: batch.torch("label"),
    "scalar's tensor": lambda batch: batch.tensor("label"),
    "scalar by dlpack": lambda batch: torch.from_dlpack(batch.tensor("label")),
    "figures": lambda batch: (batch.loss_weight, batch.position, batch.fingerprint),
}


@pytest.mark.parametrize("copy_of", COPIES.values(), ids=COPIES)
def test_what_has_a_value_a_row_holds_no_slot(subscription, copy_of):
    kept = []
    for _ in range(3 * served.WINDOW):
        batch = subscription.next()
        kept.append(copy_of(batch))
        batch.release()
    assert len(kept) == 3 * served.WINDOW


@pytest.mark.parametrize("view_of", VIEWS.values(), ids=VIEWS)
def test_a_view_keeps_the_batch_and_its_end_gives_it_back(subscription, view_of):
    held = [subscription.next() for _ in range(served.WINDOW)]
    view = view_of(held[0])
    held[0].release()
    assert served.is_full(subscription)
    del view
    assert isinstance(subscription.next(), batchwright.Batch)


def test_a_view_shows_the_same_values_when_all_else_is_gone(daemon):
    connection = batchwright.connect(daemon.endpoint)
    subscription = connection.feed("train").subscribe(window=served.WINDOW)
    batch = subscription.next()
    wanted = batch["features"].copy()
    array, tensor = batch["features"], batch.torch("features")
    batch.release()
    for _ in range(20):
        subscription.next()
    subscription.close()
    connection.close()
    del batch, subscription, connection
    gc.collect()
    assert np.array_equal(array, wanted)
    assert np.array_equal(tensor.numpy(), wanted)


def test_release_gives_the_batch_back(subscription):
    held = [subscription.next() for _ in range(served.WINDOW)]
    assert served.is_full(subscription)
    held[1].release()
    held[1].release()  # twice is fine
    assert held[1].released
    assert isinstance(subscription.next(), batchwright.Batch)


def test_the_end_of_with_gives_the_batch_back(subscription):
    for _ in range(7):
        with subscription.next() as one, subscription.next() as two:
            assert not (one.released or two.released)
        assert one.released


def test_a_batch_that_nobody_holds_goes_back(subscription):
    for _ in range(10):
        assert isinstance(subscription.next(), batchwright.Batch)


def test_a_batch_in_a_cycle_goes_back_with_the_garbage(subscription):
    for _ in range(served.WINDOW):
        cycle = [subscription.next()]
        cycle.append(cycle)
    del cycle
    gc.collect()
    assert isinstance(subscription.next(), batchwright.Batch)


def test_use_after_release_is_an_error(subscription):
    batch = subscription.next()
    batch.release()
    uses = [
        lambda: batch["features"], lambda: batch.torch("features"), lambda: batch.tensor("label"),
        lambda: batch.to("cpu"), lambda: "label" in batch, lambda: batch.lengths_of("text"),
        lambda: batch.mask_of("text")]
    uses += [lambda name=name: getattr(batch, name) for name in (
        "names", "lengths", "ordinals", "starts", "flags", "keys", "mask", "feed", "epoch", "step",
        "index", "world", "layout", "sequences", "batch_length", "frames", "step_sequences",
        "step_frames", "loss_weight", "rows_lost", "nbytes", "rehearsal", "fingerprint",
        "position")]
    for use in uses:
        with pytest.raises(batchwright.ReleasedError, match="was released"):
            use()
    assert "released" in repr(batch)


def test_releases_from_other_threads_arrive_while_this_one_waits(subscription):
    held = [subscription.next() for _ in range(served.WINDOW)]
    thread = threading.Thread(target=held.pop().release)
    thread.start()
    assert isinstance(subscription.next(), batchwright.Batch)
    thread.join()


def test_many_threads_may_hold_the_views(feed):
    sums, threads = {}, []

    def add(number, view):
        sums[number] = float(view.sum())

    wanted = {}
    for number, batch in enumerate(feed.epoch(0)):
        wanted[number] = float(batch["features"].sum())
        threads.append(threading.Thread(target=add, args=(number, batch["features"])))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert sums == wanted


def test_a_closed_connection_keeps_its_batches_good(daemon):
    connection = batchwright.connect(daemon.endpoint)
    batch = connection.feed("train").subscribe().next()
    connection.close()
    connection.close()
    assert batch["features"].shape[0] == 4
    for use in (lambda: connection.info, lambda: connection.feed("train").subscribe()):
        with pytest.raises(batchwright.ClosedError):
            use()


def test_a_daemon_that_is_killed_leaves_the_views_as_they_are(serve):
    daemon = serve()
    with batchwright.connect(daemon.endpoint, reconnect=0) as connection:
        subscription = connection.feed("train").subscribe()
        batch = subscription.next()
        wanted = batch["features"].copy()
        daemon.stop(by=9)
        with pytest.raises(batchwright.DisconnectedError):
            for _ in range(10):
                subscription.next()
        assert np.array_equal(batch["features"], wanted)


def test_a_daemon_that_comes_back_goes_on_where_it_was(serve):
    daemon = serve()
    with batchwright.connect(daemon.endpoint) as connection:
        whole = [batch.keys for batch in connection.feed("train").epoch(0)]
        seen = []
        for batch in connection.feed("train").epoch(0):
            seen.append(batch.keys)
            if len(seen) == 5:
                daemon.stop(by=9)
                daemon.start()
        assert seen == whole
        assert connection.info.reconnects >= 1


def test_an_interpreter_that_ends_with_views_alive_ends_well(daemon):
    program = f"""
import batchwright, torch
connection = batchwright.connect({daemon.endpoint!r})
batch = connection.feed("train").subscribe().next()
kept = [batch["features"], batch.torch("features"), torch.from_dlpack(batch.tensor("features")),
        batch.tensor("features").__dlpack__()]
kept.append(kept)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=served.environment(), stderr=subprocess.PIPE)
    assert (ended.returncode, served.complaints(ended.stderr)) == (0, [])


def test_slots_do_not_leak(daemon):
    """After many epochs of every kind of view the daemon has all its slots back."""
    with batchwright.connect(daemon.endpoint) as connection:
        feed = connection.feed("train")
        for epoch in range(5):
            for batch in feed.epoch(epoch):
                for view_of in VIEWS.values():
                    view_of(batch)
        del batch
        with feed.subscribe(window=served.WINDOW) as subscription:
            held = [subscription.next() for _ in range(served.WINDOW)]
            assert len({view["features"].ctypes.data for view in held}) == served.WINDOW
    gc.collect()
    from batchwright._memory import dlpack
    assert not dlpack._lent


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_that_would_own_the_same_is_refused(daemon, tmp_path, way):
    with batchwright.connect(daemon.endpoint) as connection, \
            connection.feed("train").subscribe() as subscription, \
            batchwright.DatasetWriter(tmp_path / "data", {"features": "float32"}) as writer:
        batch = subscription.next()
        for each in (connection, connection.feed("train"), subscription, batch,
                     batch.tensor("features"), writer):
            with pytest.raises(batchwright.UnsupportedError, match=type(each).__name__):
                way(each)
