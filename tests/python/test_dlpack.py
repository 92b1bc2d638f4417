"""Capsules that their consumer refuses, or that no one takes."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import batchwright
import served
from batchwright._memory import dlpack


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A feed whose one field is bfloat16, which NumPy has not."""
    folder = tmp_path_factory.mktemp("halves")
    fields = {"features": batchwright.FieldSpec("bfloat16", (4,))}
    with batchwright.DatasetWriter(folder / "data", fields) as writer:
        for number in range(served.SEQUENCES):
            writer.add(served.sequence_name(number), features=torch.ones(3, 4, dtype=torch.bfloat16))
    daemon = served.Daemon(folder, folder / "data").start()
    yield daemon
    daemon.stop()


def test_a_consumer_that_refuses_keeps_its_exception_and_no_batch(halves):
    with batchwright.connect(halves.endpoint) as connection:
        with connection.feed("train").subscribe(window=2) as subscription:
            for _ in range(3 * 2):
                tensor = subscription.next(timeout=served.SECONDS).tensor("features")
                with pytest.raises((BufferError, RuntimeError), match="(?i)dtype|type"):
                    np.from_dlpack(tensor)
                del tensor
            assert torch.from_dlpack(subscription.next().tensor("features")).dtype == torch.bfloat16
    assert not dlpack._lent


def test_a_capsule_that_nobody_takes_ends_quietly_amid_an_exception(feed):
    tensor = next(feed.epoch(0)).tensor("features")

    def drops():
        capsule = tensor.__dlpack__()
        assert len(dlpack._lent) == 1
        raise KeyError(id(capsule))

    with pytest.raises(KeyError):
        drops()
    assert not dlpack._lent


def test_a_capsule_that_was_taken_is_its_consumers(feed):
    tensor = next(feed.epoch(0)).tensor("features")
    capsule = tensor.__dlpack__()
    taken = torch.utils.dlpack.from_dlpack(capsule)
    del capsule
    assert len(dlpack._lent) == 1
    assert np.array_equal(taken.numpy(), tensor.numpy())
    del taken
    assert not dlpack._lent


def test_an_interpreter_that_ends_with_capsules_alive_ends_well(daemon):
    program = f"""
import batchwright
batch = batchwright.connect({daemon.endpoint!r}).feed("train").subscribe().next()
kept = [batch.tensor("features").__dlpack__()]
kept.append(kept)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=served.environment(), stderr=subprocess.PIPE)
    assert (ended.returncode, served.complaints(ended.stderr)) == (0, [])


def test_an_array_is_a_copy_where_one_is_asked_for_or_needed(feed):
    """As NumPy 2 asks for it; NumPy 1 has no `copy`."""
    tensor = next(feed.epoch(0)).tensor("features")
    there = tensor.numpy().ctypes.data
    assert tensor.__array__().ctypes.data == there
    assert tensor.__array__("float32", copy=False).ctypes.data == there
    assert tensor.__array__("float32", copy=True).ctypes.data != there
    assert tensor.__array__("float64").dtype == np.float64
    with pytest.raises(ValueError, match='tensor."features". is float32, and a copy as float64'):
        tensor.__array__("float64", copy=False)
