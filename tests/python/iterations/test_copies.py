"""BatchDataset(copy=True): for notebooks, which keep what they show. And how a dataset is shown."""

import gc
import pickle

import numpy as np
import pytest
from torch.utils.data import DataLoader

import batchwright
import served
from batchwright.torch import BatchDataset, packed, ragged
from epochs import STEPS

FIGURES = [name for name in batchwright.values.Figures.__annotations__] + ["names", "keys", "fingerprint"]


@pytest.fixture
def copies(daemon):
    with BatchDataset(daemon.endpoint, copy=True, window=2, timeout=served.SECONDS) as made:
        yield made


def assert_equal(found, expected):
    """Of a batch and its copy."""
    for name in FIGURES:
        np.testing.assert_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_equal(found.mask, expected.mask)
    for name in expected.names:
        assert name in found
        np.testing.assert_array_equal(found[name], expected[name])
        np.testing.assert_array_equal(found.torch(name).numpy(), expected.torch(name).numpy())
        np.testing.assert_array_equal(np.asarray(found.tensor(name)), np.asarray(expected.tensor(name)))
        np.testing.assert_array_equal(np.from_dlpack(found.tensor(name)), found[name])
    for name in ("features", "text"):
        np.testing.assert_array_equal(found.lengths_of(name), expected.lengths_of(name))
        np.testing.assert_array_equal(found.mask_of(name), expected.mask_of(name))


def test_all_batches_of_an_epoch_may_be_kept(copies):
    """With a window of 2, and of a daemon with 8 slots."""
    kept = list(copies)
    assert [batch.index for batch in kept] == list(range(STEPS))


@pytest.mark.parametrize("settings", [
    {}, {"layout": "time-major"}, {"cut": "dynamic"}, {"plan": "chunk = 10"}, {"world": 2}])
def test_a_copy_has_all_that_the_batch_has(serve, settings):
    daemon = serve(**settings)
    with BatchDataset(daemon.endpoint, copy=True) as dataset, batchwright.connect(
            daemon.endpoint) as connection:
        for copy, batch in zip(list(dataset), connection.feed("train").epoch(0)):
            assert_equal(copy, batch)


@pytest.mark.parametrize("inline", [False, True])
def test_it_stays_valid_when_everything_has_gone(serve, inline):
    daemon = serve()
    with BatchDataset(daemon.endpoint, copy=True, inline=inline) as dataset:
        first, *_ = batches = list(dataset)
        arrays = [batch["features"] for batch in batches]
        tensor = first.torch("features")
    daemon.stop()
    del batches, dataset
    gc.collect()
    for batch_of, array in [(first, arrays[0]), (first, tensor.numpy())]:
        for row, number in enumerate(map(served.number_of, batch_of.keys)):
            np.testing.assert_array_equal(array[row, :batch_of.lengths[row]],
                                          served.features_of(number))


def test_it_may_be_written_to_and_nobody_else_sees_it(copies, daemon):
    batch = next(iter(copies))
    assert batch.writable
    before = batch["features"].copy()
    batch["features"][:] = 7
    batch.torch("features").mul_(2)
    assert (batch["features"] == 14).all()
    with batchwright.connect(daemon.endpoint) as connection:
        np.testing.assert_array_equal(next(connection.feed("train").epoch(0))["features"], before)


def test_it_is_released_like_any_other(copies):
    batch = next(iter(copies))
    array = batch["features"]
    with batch:
        batch.done()
    assert batch.released
    assert array.sum() != 0
    for use in (lambda: batch["features"], lambda: batch.names, lambda: batch.keys, batch.done,
                lambda: batch.position):
        with pytest.raises(batchwright.ReleasedError):
            use()
    with pytest.raises(batchwright.UnsupportedError, match="not copied or pickled"):
        pickle.dumps(next(iter(copies)))


def test_an_unknown_field_is_refused_as_of_any_other(copies):
    batch = next(iter(copies))
    assert "x" not in batch
    with pytest.raises(batchwright.NotFoundError, match='no field "x"; it has "features", "label"'):
        batch["x"]


def test_layouts_loaders_devices_and_checkpoints_take_it(copies, daemon):
    loader = DataLoader(copies, batch_size=None)
    for batch in loader:
        assert packed(batch, "features").data.shape[0] == batch.frames
        assert ragged(batch, "features").compact().values.shape[0] == batch.frames
        moved = batch.to("cpu")
        assert moved.torch("features").shape[0] == moved.sequences
        if moved.index == 5:
            break
    state = copies.state_dict()
    with BatchDataset(daemon.endpoint, copy=True) as other:
        other.load_state_dict(state)
        assert [each.index for each in other] == list(range(6, STEPS))
    finished = copies.state_dict(finished=True)
    assert finished["step"] in (5, 6)


def test_steps_of_copies_may_be_kept(copies):
    assert [[batch.index for batch in step] for step in list(map(list, copies.steps_of()))] == [
        [index] for index in range(STEPS)]


# ---- how it is shown ----------------------------------------------------------------------------

def test_a_dataset_says_what_it_is_and_where(daemon):
    with BatchDataset(daemon.endpoint, rank=0, ranks=1) as dataset:
        assert repr(dataset) == ("<batchwright.torch.BatchDataset: epoch 0, step 0, of "
                                 f"{dataset.feed!r}>")
        batches = iter(dataset)
        next(batches), next(batches)
        assert repr(dataset) == ("<batchwright.torch.BatchDataset: rank 0 of 1, epoch 0, step 2, of "
                                 f"{dataset.feed!r}>")
        assert "60 sequences of features float32" in repr(dataset)
        for _ in batches:
            pass
        assert "epoch 1, step 0" in repr(dataset)
    assert "BatchDataset, closed: " in repr(dataset)


def test_of_an_absent_feed_it_is_shown_without_a_wait(serve, tmp_path):
    with BatchDataset(serve(dataset=tmp_path / "late").endpoint) as dataset:
        assert "not served when this connection was made" in repr(dataset)


def test_for_another_process_one_is_made_there(dataset):
    with pytest.raises(batchwright.UnsupportedError,
                       match="make one in each process.*num_workers=0"):
        pickle.dumps(dataset)
