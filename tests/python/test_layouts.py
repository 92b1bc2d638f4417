"""Packed, time-major and ragged forms say the same as the rows."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import batchwright
import served
from batchwright.torch import batch_major, lengths, packed, ragged, targets, time_major


@pytest.fixture(params=["batch-major", "time-major"])
def batch(serve, request):
    with batchwright.connect(serve(layout=request.param).endpoint) as connection:
        yield next(connection.feed("train").epoch(0))


def rows(batch):
    return [torch.from_numpy(served.features_of(served.number_of(key))) for key in batch.keys]


def test_lengths_are_what_torch_wants(batch):
    found = lengths(batch, "features")
    assert (found.dtype, found.device.type) == (torch.int64, "cpu")
    assert found.tolist() == batch.lengths.tolist()
    assert lengths(batch, "text").tolist() == batch.lengths_of("text").tolist()


def test_a_packed_sequence_is_that_of_the_rows(batch):
    found, wanted = packed(batch, "features"), pack_sequence(rows(batch), enforce_sorted=False)
    assert torch.equal(found.data, wanted.data)
    assert torch.equal(found.batch_sizes, wanted.batch_sizes)
    assert torch.equal(found.unsorted_indices, wanted.unsorted_indices)


def test_rows_in_falling_order_are_not_sorted_again(serve):
    """At size 1 every batch is in order; of the others, those whose lengths fall."""
    seen = set()
    for size in (1, 2):
        with batchwright.connect(serve(size=size).endpoint) as connection:
            for batch in connection.feed("train").epoch(0):
                falling = bool((np.diff(batch.lengths.astype(int)) <= 0).all())
                assert (packed(batch, "features").sorted_indices is None) == falling
                seen.add((size, falling))
    assert seen == {(1, True), (2, True), (2, False)}


def test_both_orders_of_dimensions_are_views(batch):
    frames, count = batch.batch_length, batch.sequences
    assert time_major(batch, "features").shape == (frames, count, 4)
    assert batch_major(batch, "features").shape == (count, frames, 4)
    for view in (time_major, batch_major):
        assert view(batch, "features").data_ptr() == batch["features"].ctypes.data
    assert torch.equal(time_major(batch, "features")[:, 0], batch_major(batch, "features")[0])


def test_ragged_rows_are_the_rows(batch):
    found = ragged(batch, "features")
    compact = found.compact()
    for b, row in enumerate(rows(batch)):
        assert torch.equal(found.row(b), row)
        assert torch.equal(compact.row(b), row)
    assert torch.equal(compact.values, torch.cat(rows(batch)))
    assert compact.offsets.tolist() == [0] + np.cumsum(batch.lengths).tolist()
    assert compact.compact() is compact


def test_a_ragged_view_of_a_batch_major_feed_is_no_copy(feed):
    batch = next(feed.epoch(0))
    found = ragged(batch, "features")
    assert found.values.data_ptr() == batch["features"].ctypes.data
    assert found.offsets.tolist() == [batch.batch_length * b for b in range(5)]


def test_an_independent_field_has_its_own_lengths(batch):
    found = ragged(batch, "text").compact()
    for b, key in enumerate(batch.keys):
        assert bytes(found.row(b).tolist()) == served.text_of(served.number_of(key))


def test_targets_are_ignored_where_a_row_is_padded(batch):
    found = targets(batch, "text")
    assert found.dtype == torch.int64 and found.shape == batch.torch("text").shape
    real = torch.from_numpy(batch.mask_of("text"))
    assert torch.equal(found[real], batch.torch("text").long()[real])
    assert (found[~real] == -100).all() and not real.all()
    assert (targets(batch, "text", ignore=-1)[~real] == -1).all()
    assert torch.equal(targets(batch, "label"), batch.torch("label").long())


class Empty:
    """A batch all of whose rows were skipped."""

    epoch, index, sequences = 0, 3, 0

    def __init__(self, layout):
        self.layout = layout

    def torch(self, name):
        return torch.empty((0, 5, 4) if self.layout == "batch-major" else (5, 0, 4))

    def lengths_of(self, name):
        return np.empty(0, np.int64)


@pytest.mark.parametrize("layout", ["batch-major", "time-major"])
def test_a_batch_without_rows_has_every_form_but_the_packed_one(layout):
    empty = Empty(layout)
    found = ragged(empty, "features")
    for form in (found, found.compact()):
        assert form.values.shape == (0, 4)
        assert (form.offsets.tolist(), form.lengths.tolist()) == ([0], [])
    assert targets(empty, "features").shape == empty.torch("features").shape
    with pytest.raises(batchwright.UnsupportedError, match="batch 3 of epoch 0 has no rows"):
        packed(empty, "features")


def test_a_scalar_field_has_no_frames(batch):
    for form in (lengths, packed, ragged):
        with pytest.raises((batchwright.SchemaMismatchError, IndexError, ValueError)):
            form(batch, "label")
