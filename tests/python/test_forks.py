"""A forked child is told so, and does no harm, neither by use nor by dropping what it inherited."""

import gc
import os
import signal
import subprocess
import sys

import pytest
import torch

import batchwright
import served
from batchwright.torch import BatchDataset


def in_child(act):
    """Runs `act` in a forked child. What it ended with: 0, 1 with an exception, or a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(served.SECONDS)  # a child that hangs is ended by it
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refuses(call):
    with pytest.raises(batchwright.ForkedError, match="open its own connection"):
        call()


def test_everything_inherited_is_refused_in_the_child(daemon, connection, feed):
    subscription = feed.subscribe()
    batch = subscription.next()
    dataset = BatchDataset(connection=connection)
    running = iter(dataset)
    next(running)

    def child():
        for use in (
                lambda: connection.info, connection.close, feed.subscribe, subscription.next,
                lambda: subscription.position, lambda: feed.epoch(0), lambda: batch["features"],
                lambda: batch.torch("features"), lambda: batch.keys, lambda: batch.lengths,
                lambda: batch.epoch, lambda: batch.position, lambda: batch.to("cpu"),
                lambda: next(running), lambda: len(dataset)):
            refuses(use)
        assert "parent" in repr(batch)

    assert in_child(child) == 0
    assert subscription.next().index == 1


def test_what_the_child_drops_stays_the_parents(feed):
    """Released slots are poisoned: had the child given one back, the parent would see it."""
    subscription = feed.subscribe(window=2)
    kept = {"subscription": subscription, "batches": [subscription.next(), subscription.next()]}
    kept["views"] = [batch.torch("features") for batch in kept["batches"]]
    wanted = [view.clone() for view in kept["views"]]

    def child():
        for batch in kept["batches"]:
            batch.release()
        kept.clear()
        gc.collect()

    before = kept["views"]
    assert in_child(child) == 0
    for batch in feed.epoch(3):
        del batch
    assert all(torch.equal(view, value) for view, value in zip(before, wanted))
    kept["batches"].pop().release()
    del before
    kept["views"].pop()
    assert subscription.next().index == 2


def test_a_child_connects_anew(daemon, connection, feed):
    batch = feed.subscribe().next()

    def child():
        with batchwright.connect(daemon.endpoint) as own:
            assert sum(each.sequences for each in own.feed("train").epoch(0)) == served.SEQUENCES

    assert in_child(child) == 0
    assert batch.sequences == 4


def test_views_can_be_read_in_the_child_while_the_parent_holds_them(feed):
    batch = feed.subscribe().next()
    view, wanted = batch["features"], float(batch["features"].sum())

    def child():
        assert float(view.sum()) == wanted

    assert in_child(child) == 0
    assert not batch.released


def test_a_child_that_ends_as_interpreters_do_is_clean(daemon):
    """With finalisers and all, unlike os._exit."""
    program = f"""
import batchwright, os, sys
subscription = batchwright.connect({daemon.endpoint!r}).feed("train").subscribe(window=2)
batch = subscription.next()
view = batch.torch("features")
wanted = view.clone()
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for _ in range(20):
    subscription.next()
assert view.equal(wanted) and subscription.next().sequences == 4
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=served.environment(), stderr=subprocess.PIPE)
    assert (ended.returncode, served.complaints(ended.stderr)) == (0, [])
