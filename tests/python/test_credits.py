"""A client that waits without a credit is told what is alive."""

import time
import warnings

import numpy as np
import pytest
import torch

import batchwright
import served
from batchwright.torch import BatchDataset

KEPT = {
    "array": (lambda batch: batch["features"], '["features"]'),
    "slice": (lambda batch: batch["features"][0, 1:], '["features"]'),
    "torch": (lambda batch: batch.torch("features"), 'torch("features")'),
    "part": (lambda batch: batch.torch("features")[0].t(), 'torch("features")'),
    "graph": (lambda batch: (batch.torch("features") * torch.ones(1, requires_grad=True)).sum(),
              'torch("features")'),
    "dlpack": (lambda batch: torch.from_dlpack(batch.tensor("text")), 'a DLPack capsule of "text"'),
    "tensor": (lambda batch: batch.tensor("features"), 'tensor("features")'),
    "batch": (lambda batch: batch, "the batch itself"),
    "numpy of torch": (lambda batch: batch.torch("features").numpy(), 'torch("features")'),
}


@pytest.mark.parametrize("keep,called", KEPT.values(), ids=KEPT)
def test_a_view_of_every_kind_is_named(feed, keep, called):
    with feed.subscribe(window=2) as subscription:
        kept = []
        for _ in range(2):
            batch = subscription.next()
            kept.append(keep(batch))
            del batch
        with pytest.raises(batchwright.TimedOutError) as caught:
            subscription.next(timeout=0)
    words = str(caught.value)
    assert "all 2 credits are out" in words and "clone()" in words
    assert f"of batch 0 of epoch 0 {called}; of batch 1 of epoch 0 {called}." in words


def test_what_is_gone_is_not_named(feed):
    with feed.subscribe(window=1) as subscription:
        batch = subscription.next()
        tensor = batch.torch("features")
        for _ in range(100):
            batch["features"], batch.torch("text"), batch.tensor("features")
        del batch
        with pytest.raises(batchwright.TimedOutError, match=r'epoch 0 torch\("features"\)\. Release'):
            subscription.next(timeout=0)
        assert len(tensor)


def test_after_a_second_without_a_credit_a_warning_says_so_once(daemon):
    kept = []

    def loop(dataset):
        for batch in dataset:
            kept.append(batch["features"])

    with BatchDataset(daemon.endpoint, timeout=2.5) as dataset:
        with pytest.warns(RuntimeWarning, match="waiting for a batch for 1 s") as told:
            started = time.monotonic()
            with pytest.raises(batchwright.TimedOutError):
                loop(dataset)
        assert time.monotonic() - started >= 2
        assert len(told) == 1
        assert told[0].filename == __file__
        assert 'of batch 0 of epoch 0 ["features"]' in str(told[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(batchwright.TimedOutError):
                loop(dataset.resume())
        assert isinstance(kept[0], np.ndarray)


def test_who_waits_with_credits_left_is_not_warned(feed, daemon):
    """The daemon stands still; the wait has nothing to do with what is held."""
    with feed.subscribe(window=4) as subscription:
        kept = subscription.next()["features"]
        daemon.process.send_signal(19)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(batchwright.TimedOutError) as caught:
                    while True:
                        del kept
                        kept = subscription.next(timeout=1.3)["features"]
        finally:
            daemon.process.send_signal(18)
        assert "alive are" not in str(caught.value)


def test_copies_of_small_things_may_be_kept_for_ever(daemon):
    kept = []
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as dataset:
        for batch in dataset:
            kept.append((batch["label"], batch.torch("label"), batch.lengths, batch.keys,
                         batch.ordinals, batch.lengths_of("text")))
    assert len(kept) == 15
