"""What a batch shows is what was ingested, in every layout."""

import numpy as np
import pytest
import torch

import batchwright
import served


def row_of(batch, name, row):
    """[frames, ...] of one row, with its padding."""
    values = batch[name]
    return values[:, row] if batch.layout == "time-major" else values[row]


def check_rows(batch):
    for row, key in enumerate(batch.keys):
        number = served.number_of(key)
        wanted = served.features_of(number)
        found = row_of(batch, "features", row)
        assert batch.lengths[row] == len(wanted)
        assert np.array_equal(found[:len(wanted)], wanted)
        assert (found[len(wanted):] == -1).all()
        assert batch["label"][row] == number % 2
        text = row_of(batch, "text", row)[:batch.lengths_of("text")[row]]
        assert text.tobytes() == served.text_of(number)


@pytest.mark.parametrize("layout", ["batch-major", "time-major"])
def test_an_epoch_brings_every_sequence_once_with_all_its_values(serve, layout):
    daemon = serve(layout=layout)
    with batchwright.connect(daemon.endpoint) as connection:
        keys, ordinals = [], []
        for batch in connection.feed("train").epoch(0):
            assert batch.layout == layout
            assert batch["features"].shape == (
                (batch.sequences, batch.batch_length, 4) if layout == "batch-major" else
                (batch.batch_length, batch.sequences, 4))
            check_rows(batch)
            keys += batch.keys
            ordinals += batch.ordinals.tolist()
    assert sorted(keys) == sorted(map(served.sequence_name, range(served.SEQUENCES)))
    assert sorted(ordinals) == list(range(served.SEQUENCES))


def test_over_messages_it_is_the_same(daemon):
    with batchwright.connect(daemon.endpoint, inline=True) as connection:
        assert connection.info.inline
        rows = 0
        for batch in connection.feed("train").epoch(0):
            check_rows(batch)
            rows += batch.sequences
    assert rows == served.SEQUENCES


def test_a_feed_says_what_it_is(connection):
    feed = connection.feed("train")
    assert (feed.sequences, feed.world, feed.layout) == (served.SEQUENCES, 1, "batch-major")
    assert feed.field("features") == ("features", "primary", "float32", (4,), None)
    assert feed.field("label").categories == ("even", "odd")
    assert feed.field("text").kind == "independent"
    assert not connection.info.inline and connection.info.servers == 1


def test_masks_are_true_where_frames_are_real(feed):
    batch = next(feed.epoch(0))
    assert batch.mask.shape == (batch.sequences, batch.batch_length)
    assert (batch.mask.sum(1) == batch.lengths).all()
    assert not (batch["features"][~batch.mask] != -1).any()
    assert (batch.mask_of("text").sum(1) == batch.lengths_of("text")).all()
    assert batch.mask_of("text").shape == batch["text"].shape


def test_masks_follow_a_time_major_layout(serve):
    daemon = serve(layout="time-major")
    with batchwright.connect(daemon.endpoint) as connection:
        batch = next(connection.feed("train").epoch(0))
        assert batch.mask.shape == (batch.batch_length, batch.sequences)
        assert (batch.mask.sum(0) == batch.lengths).all()


def test_figures_agree_with_the_rows(serve):
    daemon = serve(world=3)
    with batchwright.connect(daemon.endpoint) as connection:
        step = []
        for batch in connection.feed("train").epoch(2):
            assert (batch.epoch, batch.feed, batch.world) == (2, "train", 3)
            assert batch.frames == batch.lengths.sum()
            assert batch.batch_length == batch.lengths.max()
            assert batch.index == batch.step * 3 + len(step)
            step.append((batch.frames, batch.loss_weight))
            if len(step) == 3:
                assert batch.step_frames == sum(frames for frames, _ in step)
                for frames, weight in step:
                    assert weight == pytest.approx(frames * 3 / batch.step_frames)
                step = []


def test_whole_rows_start_at_0_and_are_whole(feed):
    batch = next(feed.epoch(0))
    assert batch.starts.tolist() == [0] * 4 and batch.starts.dtype == np.int64
    assert batch.flags.tolist() == [3] * 4 and batch.flags.dtype == np.uint8


def test_chunks_say_where_they_start_and_whether_they_end(serve):
    daemon = serve(plan="chunk = 10")
    with batchwright.connect(daemon.endpoint) as connection:
        for batch in connection.feed("train").epoch(0):
            for row, key in enumerate(batch.keys):
                wanted = served.features_of(served.number_of(key))
                start, length = int(batch.starts[row]), int(batch.lengths[row])
                assert np.array_equal(batch["features"][row][:length],
                                      wanted[start:start + length])
                assert batch.flags[row] == (start == 0) + 2 * (start + length == len(wanted))


def test_arrays_cannot_be_written_to_nor_made_writable(feed):
    batch = next(feed.epoch(0))
    assert not batch.writable
    for view in (batch["features"], batch["text"], batch.tensor("features").numpy()):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
        with pytest.raises(ValueError):
            view.flags.writeable = True


def test_lengths_are_what_torch_takes_and_do_not_wrap(feed):
    batch = next(feed.epoch(0))
    frames = [len(served.features_of(served.number_of(key))) for key in batch.keys]
    for found in (batch.lengths, batch.lengths_of("features"), batch.tensor("features").lengths):
        assert found.dtype == np.int64 and found.tolist() == frames
        assert (found - 1000 < 0).all()
        assert torch.from_numpy(found).dtype == torch.int64
        torch.nn.utils.rnn.pack_padded_sequence(batch.torch("features"), torch.tensor(found),
                                                batch_first=True, enforce_sorted=False)
    for numbers in (batch.ordinals, batch.starts, batch.lengths_of("text")):
        assert numbers.dtype == np.int64


def test_what_has_a_value_a_row_is_a_copy(feed):
    """And so may be written to, and is the same at the next asking."""
    batch = next(feed.epoch(0))
    for ask in (lambda: batch["label"], lambda: batch.torch("label"), lambda: batch.lengths,
                lambda: batch.tensor("label").numpy(), lambda: batch.ordinals,
                lambda: batch.flags, lambda: torch.from_dlpack(batch.tensor("label"))):
        before = ask().tolist()
        found = ask()
        found[:] = 77
        assert ask().tolist() == before


def test_what_a_batch_is_not_is_said_with_what_it_is(feed):
    batch = next(feed.epoch(0))
    for use, words in ((lambda: dict(batch), "batch.names"), (lambda: batch.keys(), "batch.names"),
                       (lambda: list(batch), "batch.sequences"), (lambda: len(batch), "rows"),
                       (lambda: [x for x in batch], "batch.names")):
        with pytest.raises(TypeError, match=words):
            use()
    assert batch and isinstance(batch.keys, list)


def test_nothing_is_copied(feed):
    batch = next(feed.epoch(0))
    address = batch["features"].__array_interface__["data"][0]
    assert address % 64 == 0
    assert batch.torch("features").data_ptr() == address
    assert torch.from_dlpack(batch.tensor("features")).data_ptr() == address
    assert np.asarray(batch.tensor("features")).__array_interface__["data"][0] == address


@pytest.mark.filterwarnings("error")
def test_tensors_of_torch_have_shape_dtype_and_values(feed):
    batch = next(feed.epoch(0))
    for name, dtype in (("features", torch.float32), ("label", torch.int32), ("text", torch.uint8)):
        tensor = batch.torch(name)
        assert tensor.dtype == dtype
        assert np.array_equal(tensor.numpy(), batch[name])


def test_a_tensor_for_others_describes_itself(feed):
    tensor = next(feed.epoch(0)).tensor("features")
    assert (tensor.name, tensor.dtype, tensor.kind) == ("features", "float32", "primary")
    assert tensor.nbytes == tensor.numpy().nbytes
    assert tensor.__dlpack_device__() == (1, 0)
    assert np.array_equal(np.from_dlpack(tensor), tensor.numpy())
    assert tensor.torch().shape == tensor.shape
    assert np.array(tensor, dtype=np.float64).dtype == np.float64
    for wish in (dict(copy=True), dict(dl_device=(2, 0))):
        with pytest.raises(BufferError, match="without a copy"):
            tensor.__dlpack__(**wish)


def test_a_wrong_field_name_lists_the_fields(feed):
    batch = next(feed.epoch(0))
    for ask in (lambda: batch["featuers"], lambda: batch.torch("featuers"),
                lambda: batch.lengths_of("featuers"), lambda: feed.field("featuers")):
        with pytest.raises(KeyError) as caught:
            ask()
        assert 'no field "featuers"' in str(caught.value)
        assert '"features", "label", "text"' in str(caught.value)
    assert "features" in batch and "featuers" not in batch


def test_a_scalar_field_has_no_lengths(feed):
    batch = next(feed.epoch(0))
    with pytest.raises(batchwright.SchemaMismatchError, match="scalar"):
        batch.lengths_of("label")
    assert batch.tensor("label").lengths is None


def test_a_wrong_feed_name_lists_the_feeds(connection):
    with pytest.raises(batchwright.NotFoundError, match='no feed "trian"; it has "train"'):
        connection.feed("trian")


def test_iterating_a_feed_goes_over_epochs_without_end(feed):
    seen = []
    for batch in feed:
        seen.append((batch.epoch, batch.index))
        if batch.epoch == 2:
            break
    assert seen == [(epoch, index) for epoch in range(2) for index in range(15)] + [(2, 0)]


def test_events_tell_ends_of_epochs_and_of_all(feed):
    with feed.subscribe(epochs=2, epoch=3) as subscription:
        kinds = []
        while True:
            event = subscription.next()
            if event is None:
                break
            kinds.append(event if isinstance(event, batchwright.EpochEnd) else event.epoch)
    assert kinds == [3] * 15 + [batchwright.EpochEnd(3)] + [4] * 15 + [batchwright.EpochEnd(4)]


def test_a_subscription_goes_on_at_a_position(feed):
    whole = [batch.keys for batch in feed.epoch(1)]
    with feed.subscribe(epoch=1) as subscription:
        batches = iter(subscription)
        place = [next(batches) for _ in range(3)][-1].position
    with feed.subscribe(position=place) as subscription:
        assert subscription.position == place
        assert [batch.keys for batch in subscription.epoch()] == whole[3:]


def test_what_ctypes_would_cut_off_is_refused(feed):
    for options in (dict(window=-1), dict(epoch=1 << 64), dict(step=1.5), dict(mode="all"),
                    dict(timeout=-1), dict(timeout=float("nan")), dict(timeout="1")):
        with pytest.raises(batchwright.InvalidArgumentError):
            feed.subscribe(**options)


def test_several_endpoints_are_merged(serve):
    daemons = [serve(), serve()]
    endpoints = [daemon.endpoint for daemon in daemons]
    with batchwright.connect(endpoints) as connection:
        feed = connection.feed("train")
        assert (connection.info.servers, feed.sequences) == (2, 2 * served.SEQUENCES)
        assert sum(batch.sequences for batch in feed.epoch(0)) == 2 * served.SEQUENCES
