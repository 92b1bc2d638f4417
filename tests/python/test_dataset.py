"""BatchDataset: epochs, places, ranks, DataLoader."""

import copy
import pickle
import re
import time
import warnings
import weakref

import pytest
from torch.utils.data import DataLoader

import batchwright
import served
from batchwright.torch import BatchDataset
from epochs import run, whole_run


def test_each_iteration_is_one_epoch(dataset):
    for epoch in range(3):
        assert dataset.epoch == epoch
        batches = [(batch.epoch, batch.index) for batch in dataset]
        assert batches == [(epoch, index) for index in range(15)]


def test_a_data_loader_passes_batches_on_as_they_are(dataset):
    loader = DataLoader(dataset, batch_size=None, num_workers=0)
    assert len(loader) == len(dataset) == 15
    keys = []
    for batch in loader:
        assert isinstance(batch, batchwright.Batch)
        assert batch.torch("features").data_ptr() == batch["features"].ctypes.data
        keys += batch.keys
    assert sorted(keys) == sorted(map(served.sequence_name, range(served.SEQUENCES)))


def test_a_data_loader_with_workers_says_what_to_write_instead(dataset):
    wanted = r"DataLoader\(dataset, batch_size=None, num_workers=0\)"
    with pytest.raises(batchwright.UnsupportedError, match=wanted):
        next(iter(DataLoader(dataset, batch_size=None, num_workers=2)))
    for method in ("forkserver", "spawn"):
        with pytest.raises(batchwright.UnsupportedError, match=wanted):
            next(iter(DataLoader(dataset, batch_size=None, num_workers=2,
                                 multiprocessing_context=method)))
    for move in (pickle.dumps, copy.deepcopy):
        with pytest.raises(batchwright.UnsupportedError, match=wanted):
            move(dataset)
    assert sum(1 for _ in dataset) == 15  # and it is unharmed


def test_set_epoch_goes_to_that_epochs_start(dataset, daemon):
    whole = whole_run(daemon, 3)
    assert run(dataset, 3, 3) == [each for each in whole if each[0] == 3]
    assert run(dataset, 0, 0) == [each for each in whole if each[0] == 0]
    assert run(dataset, 0, 0) == [each for each in whole if each[0] == 0]


def test_a_batch_that_was_yielded_is_done(dataset):
    batches = iter(dataset)
    assert dataset.state_dict()["step"] == 0
    first = next(batches)
    assert (dataset.state_dict()["step"], dataset.state_dict()["ended"]) == (1, False)
    first.release()
    assert dataset.state_dict()["step"] == 1
    next(batches)
    assert dataset.state_dict()["step"] == 2


def test_finished_is_what_was_released_or_followed_by_the_next(dataset):
    def step():
        return dataset.state_dict(finished=True)["step"]

    batches = iter(dataset)
    first = next(batches)
    assert step() == 0
    first.release()
    assert step() == 1
    second = next(batches)
    assert step() == 1
    next(batches)
    assert (step(), second.released) == (2, False)


def test_the_length_is_that_of_the_epoch_that_is_due(serve):
    varied = serve(cut="dynamic")
    lengths = []
    with BatchDataset(varied.endpoint, "train") as dataset:
        for _ in range(4):
            lengths.append(len(dataset))
            assert lengths[-1] == sum(1 for _ in dataset)
            with BatchDataset(varied.endpoint, "train") as resumed:
                resumed.load_state_dict(dataset.state_dict())
                assert len(resumed) == sum(1 for _ in resumed)
    assert len(set(lengths)) > 1  # or it would show nothing


def test_ranks_share_every_step(serve):
    daemon = serve(world=4)
    keys = []
    for rank in range(4):
        with BatchDataset(daemon.endpoint, rank=rank, ranks=4) as dataset:
            batches = list(map(lambda batch: (batch.index, batch.keys), dataset))
            assert len(batches) == len(dataset)
            assert all(index % 4 == rank for index, _ in batches)
            keys += sum((each for _, each in batches), [])
    assert len(set(keys)) == len(keys) == len(whole_run(daemon, 0)) * 4


def test_rank_and_ranks_come_from_the_environment(serve, monkeypatch):
    daemon = serve(world=2)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with BatchDataset(daemon.endpoint) as dataset:
        assert (dataset.rank, dataset.ranks) == (1, 2)
        assert next(iter(dataset)).index == 1
    for share in (dict(rank=0, ranks=1), dict(whole=True)):
        with BatchDataset(daemon.endpoint, **share) as dataset:
            assert (dataset.rank, dataset.ranks) == (0, 1)
    monkeypatch.delenv("RANK")
    with BatchDataset(daemon.endpoint) as dataset:
        with pytest.raises(batchwright.InvalidArgumentError, match="only one is set"):
            next(iter(dataset))


def test_ranks_that_do_not_fit_are_refused(daemon):
    for rank, ranks in ((1, None), (None, 2), (2, 2), (-1, 2), (0, 0)):
        with pytest.raises(batchwright.InvalidArgumentError, match="rank"):
            BatchDataset(daemon.endpoint, rank=rank, ranks=ranks)
    with pytest.raises(batchwright.InvalidArgumentError, match="whole"):
        BatchDataset(daemon.endpoint, rank=0, ranks=1, whole=True)


def test_ranks_that_do_not_divide_the_world_are_told_what_to_set(serve):
    with BatchDataset(serve(world=4).endpoint, rank=0, ranks=6) as dataset:
        with pytest.raises(batchwright.InvalidArgumentError) as caught:
            next(iter(dataset))
    for words in ('6 ranks do not divide the world of 4 of feed "train"', "set world = 12",
                  "[feed.plan]", "whole=True"):
        assert words in str(caught.value)


def test_a_window_that_a_loop_would_hang_in_is_refused(daemon):
    with pytest.raises(batchwright.InvalidArgumentError, match="window is 1"):
        BatchDataset(daemon.endpoint, window=1)


@pytest.mark.filterwarnings("ignore:.*grants a window of 1")
def test_a_granted_window_that_a_loop_would_hang_in_is_refused(serve):
    with BatchDataset(serve(feed="max_window = 1").endpoint) as dataset:
        with pytest.raises(batchwright.InvalidArgumentError, match="grants a window of 1, and a loop"):
            next(iter(dataset))


def test_a_closed_dataset_holds_no_batch_and_knows_its_place(daemon):
    dataset = BatchDataset(daemon.endpoint)
    batches = iter(dataset)
    next(batches)
    latest = weakref.ref(next(batches))
    del batches
    assert latest() is not None
    dataset.close()
    assert latest() is None
    assert dataset.state_dict()["step"] == 2
    assert dataset.state_dict(finished=True)["step"] == 1


def test_rehearsals_come_first_and_leave_the_place_alone(daemon):
    with BatchDataset(daemon.endpoint, worst_first=2) as dataset:
        batches = iter(dataset)
        sizes = []
        for _ in range(2):
            batch = next(batches)
            assert batch.rehearsal
            sizes.append(batch.sequences * batch.batch_length)
            batch.release()
            assert (dataset.state_dict()["step"], dataset.state_dict()["done"]) == (0, 0)
        assert [batch.index for batch in batches] == list(range(15))
        assert sizes == sorted(sizes, reverse=True)


def test_a_connection_can_be_shared_and_is_left_open(connection, daemon):
    with BatchDataset(connection=connection) as one, BatchDataset(connection=connection) as two:
        for first, second in zip(one, two):
            assert first["features"].ctypes.data == second["features"].ctypes.data
    with pytest.raises(batchwright.ClosedError):
        next(iter(one))
    assert connection.info.servers == 1


def test_a_layout_that_changes_under_a_running_dataset_ends_it(serve):
    daemon = serve()
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as dataset:
        words = "layout: batch-major before, time-major now"
        with pytest.raises(batchwright.FingerprintMismatchError, match=words):
            for batch in dataset:
                assert batch.layout == "batch-major"
                if batch.index == 2:
                    daemon.stop()
                    daemon.settings.update(layout="time-major")
                    daemon.start()


def test_an_iteration_behind_the_last_epoch_says_that_it_is_empty(daemon):
    with BatchDataset(daemon.endpoint, epochs=2) as dataset:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [sum(1 for _ in dataset) for _ in range(2)] == [15, 15]
        assert len(dataset) == 0
        with pytest.warns(RuntimeWarning, match="this iteration is empty: epochs is 2") as told:
            assert list(dataset) == []
        assert told[0].filename == __file__
        with pytest.warns(RuntimeWarning, match="this iteration is empty"):
            assert list(DataLoader(dataset, batch_size=None)) == []
        for epoch in (2, 3):
            with pytest.raises(batchwright.InvalidArgumentError, match="below epochs, which is 2"):
                dataset.set_epoch(epoch)
        dataset.set_epoch(1)
        assert len(dataset) == sum(1 for _ in dataset) == 15
    with pytest.raises(batchwright.InvalidArgumentError, match="below epochs"):
        BatchDataset(daemon.endpoint, epoch=2, epochs=2)


def test_the_steps_of_a_whole_run_are_known_ahead(serve):
    daemon = serve(cut="dynamic", world=2, size=2)
    for share in (dict(), dict(rank=1, ranks=2)):
        with BatchDataset(daemon.endpoint, **share) as dataset:
            wanted = len(run(dataset, 0, 3))
            assert dataset.steps(4) == wanted
            assert dataset.steps(0) == 0
            assert dataset.state_dict()["epoch"] == 3  # it stays where it is


def test_steps_are_counted_beside_a_job_that_needs_every_slot(serve):
    daemon = serve(world=2, slots=3)
    with BatchDataset(daemon.endpoint, rank=0, ranks=2) as first:
        assert next(iter(first)) is not None
        assert first.steps(2) > 0
        with BatchDataset(daemon.endpoint, rank=1, ranks=2) as second:  # and none is left over
            assert next(iter(second)) is not None
            assert second.steps(1) * 2 == first.steps(2)


def test_a_data_loader_that_collates_is_told_what_to_write(dataset):
    with pytest.raises(batchwright.UnsupportedError, match="batch_size=None, num_workers=0"):
        next(iter(DataLoader(dataset)))


def test_the_wait_for_a_daemon_has_a_limit_of_its_own(tmp_path):
    started = time.monotonic()
    with pytest.raises(batchwright.TimedOutError, match="within 100 ms"):
        BatchDataset(f"ipc://{tmp_path}/nobody", connect_timeout=0.1)
    assert time.monotonic() - started < 5


def test_a_window_that_was_cut_down_is_told_with_both_figures(serve):
    daemon = serve(slots=6)
    with BatchDataset(daemon.endpoint, window=32) as dataset:
        with pytest.warns(RuntimeWarning, match=r"a window of \d+, and 32 were asked") as told:
            first = next(iter(dataset))
        assert told[0].filename == __file__
        window = int(re.search(r"window of (\d+)", str(told[0].message))[1])
        batches = iter(dataset.resume())
        held = [first] + [next(batches) for _ in range(window - 1)]
        assert len(held) == window < 32


def test_the_environment_names_the_daemon(daemon, monkeypatch):
    monkeypatch.setenv("BATCHWRIGHT_ENDPOINT", daemon.endpoint)
    with BatchDataset() as dataset:
        assert next(iter(dataset)).index == 0


def test_upcoming_foretells_the_batches_and_takes_none(dataset):
    foretold = dataset.upcoming(30)
    assert [(each.epoch, each.index) for each in foretold] == [
        (epoch, index) for epoch in range(2) for index in range(15)][:len(foretold)]
    assert len(foretold) >= 15
    assert [(each.rows, each.length, each.frames) for each in foretold[:15]] == [
        (batch.sequences, batch.batch_length, batch.frames) for batch in dataset]
    assert all(each.certain and not each.rehearsal for each in foretold)
    assert foretold[0].padded_frames == foretold[0].rows * foretold[0].length


def test_upcoming_begins_after_the_batch_that_was_handed_out(dataset):
    batches = iter(dataset)
    for index in range(4):
        assert next(batches).index == index
    assert [each.index for each in dataset.upcoming(3)] == [4, 5, 6]
    assert batches.has_next()  # which holds one that was not taken
    assert [each.index for each in dataset.upcoming(3)] == [4, 5, 6]
    assert next(batches).index == 4


@pytest.mark.parametrize("n", [-1, 0, 1025])
def test_upcoming_says_how_many_may_be_asked_for(dataset, n):
    with pytest.raises(batchwright.InvalidArgumentError, match=f"count is {max(n, 0)}; it is 1 to 1024"):
        dataset.upcoming(n)
