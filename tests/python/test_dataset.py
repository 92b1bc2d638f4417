"""BatchDataset: epochs, places, checkpoints, ranks, DataLoader."""

import copy
import pickle
import subprocess
import sys
import weakref

import pytest
import torch
from torch.utils.data import DataLoader

import batchwright
import served
from batchwright.torch import BatchDataset


@pytest.fixture
def dataset(daemon, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as made:
        yield made


def run(dataset, first, last):
    """Epochs first to last, as training scripts go through them: (epoch, keys) of every batch."""
    seen = []
    for epoch in range(first, last + 1):
        dataset.set_epoch(epoch)
        seen += [(batch.epoch, batch.keys) for batch in dataset]
    return seen


def whole_run(daemon, last, **options):
    with BatchDataset(daemon.endpoint, **options) as dataset:
        return run(dataset, 0, last)


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


def test_a_loop_that_was_left_is_carried_on(dataset):
    for batch in dataset:
        if batch.index == 4:
            break
    assert next(iter(dataset)).index == 5
    dataset.set_epoch(0)
    assert next(iter(dataset)).index == 0


@pytest.mark.parametrize("world,rank,ranks", [(1, 0, 1), (4, 0, 1), (4, 1, 2), (4, 3, 4)])
def test_a_resumed_run_sees_exactly_what_an_uninterrupted_one_sees(serve, world, rank, ranks):
    """Interrupted behind every single batch of two epochs, also within a step."""
    daemon = serve(size=3, world=world)
    share = dict(rank=rank, ranks=ranks, window=2)
    whole = whole_run(daemon, 2, **share)
    states = []
    with BatchDataset(daemon.endpoint, **share) as dataset:
        for epoch in range(2):
            dataset.set_epoch(epoch)
            for _ in dataset:
                states.append(copy.deepcopy(dataset.state_dict()))
        states.append(dataset.state_dict())
    assert len(states) > 10
    with BatchDataset(daemon.endpoint, **share) as dataset:
        for done, state in enumerate(states):
            dataset.load_state_dict(state)
            assert run(dataset, dataset.epoch, 2) == whole[done:]


def test_a_released_batch_is_finished_and_one_in_use_is_not(dataset):
    batches = iter(dataset)
    first = next(batches)
    assert (dataset.state_dict()["step"], dataset.state_dict()["ended"]) == (0, False)
    first.release()
    assert dataset.state_dict()["step"] == 1
    second = next(batches)
    assert dataset.state_dict()["step"] == 1
    next(batches)
    assert (dataset.state_dict()["step"], second.released) == (2, False)


def test_a_checkpoint_behind_an_epochs_end_goes_on_with_the_next(dataset, daemon):
    whole = whole_run(daemon, 1)
    for batch in dataset:
        del batch
    state = dataset.state_dict()
    assert (state["ended"], dataset.epoch) == (True, 1)
    with BatchDataset(daemon.endpoint) as other:
        other.load_state_dict(state)
        assert other.epoch == 1
        assert other.state_dict() == state
        assert run(other, 1, 1) == whole[15:]


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


def test_a_checkpoint_goes_through_torch_save(dataset, tmp_path):
    next(iter(dataset)).release()
    torch.save(dataset.state_dict(), tmp_path / "state")
    dataset.load_state_dict(torch.load(tmp_path / "state"))
    assert next(iter(dataset)).index == 1


def test_a_checkpoint_before_the_first_batch_is_the_start(dataset):
    state = dataset.state_dict()
    assert (state["epoch"], state["step"], state["done"]) == (0, 0, 0)
    dataset.load_state_dict(state)
    assert next(iter(dataset)).index == 0


def test_set_epoch_behind_load_state_dict_keeps_the_place(dataset):
    batches = iter(dataset)
    next(batches), next(batches)
    dataset.load_state_dict(dataset.state_dict())
    dataset.set_epoch(0)
    assert next(iter(dataset)).index == 1
    dataset.set_epoch(1)
    assert next(iter(dataset)).epoch == 1


@pytest.mark.parametrize("what,settings", [("settings", dict(size=5)), ("seed", dict(seed=2)),
                                           ("data", dict())])
def test_a_checkpoint_of_another_plan_is_refused(dataset, serve, what, settings, tmp_path):
    next(iter(dataset)).release()
    if what == "data":
        folder = tmp_path / "fewer"
        folder.mkdir()
        settings["dataset"] = served.make_dataset(folder, sequences=40)
    with BatchDataset(serve(**settings).endpoint) as other:
        with pytest.raises(batchwright.FingerprintMismatchError, match=what):
            other.load_state_dict(dataset.state_dict())


def test_what_is_no_state_is_refused(dataset):
    state = dataset.state_dict()
    for wrong in ({}, {**state, "version": 9}, {**state, "feed": "other"}, {**state, "step": "x"},
                  {**state, "fingerprint": "x"}, None):
        with pytest.raises(batchwright.InvalidArgumentError):
            dataset.load_state_dict(wrong)


def test_fewer_ranks_may_go_on_at_a_steps_end_and_not_within(serve):
    daemon = serve(world=4)
    with BatchDataset(daemon.endpoint, rank=0, ranks=2) as two, \
            BatchDataset(daemon.endpoint) as one:
        whole = run(one, 0, 0)
        batches = iter(two)
        next(batches)
        next(batches)
        with pytest.raises(batchwright.InvalidArgumentError, match="middle of a step"):
            one.load_state_dict(two.state_dict())
        next(batches)
        one.load_state_dict(two.state_dict())
        assert run(one, 0, 0) == whole[4:]


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
    with BatchDataset(daemon.endpoint, rank=0, ranks=1) as dataset:
        assert (dataset.rank, dataset.ranks) == (0, 1)
    monkeypatch.delenv("RANK")
    with pytest.raises(batchwright.InvalidArgumentError, match="only one is set"):
        BatchDataset(daemon.endpoint)


def test_rank_and_ranks_come_from_torch_distributed(serve):
    daemon = serve(world=2)
    program = f"""
import os, sys, torch.distributed as distributed
from batchwright.torch import BatchDataset
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
store = distributed.HashStore()
distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
dataset = BatchDataset({daemon.endpoint!r})
assert (dataset.rank, dataset.ranks) == (0, 1)
distributed.get_rank, distributed.get_world_size = lambda: 1, lambda: 2
dataset = BatchDataset({daemon.endpoint!r})
assert (dataset.rank, dataset.ranks) == (1, 2)
assert next(iter(dataset)).index == 1
"""
    environment = {key: value for key, value in served.environment().items()
                   if key not in ("RANK", "WORLD_SIZE")}
    ended = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                           env=environment, stderr=subprocess.PIPE)
    assert ended.returncode == 0, ended.stderr


def test_ranks_that_do_not_fit_are_refused(daemon):
    for rank, ranks in ((1, None), (None, 2), (2, 2), (-1, 2), (0, 0)):
        with pytest.raises(batchwright.InvalidArgumentError, match="rank"):
            BatchDataset(daemon.endpoint, rank=rank, ranks=ranks)
    with BatchDataset(daemon.endpoint, rank=0, ranks=2) as dataset:  # the feed's world is 1
        with pytest.raises(batchwright.InvalidArgumentError, match="ranks"):
            next(iter(dataset))


def test_a_window_that_a_loop_would_hang_in_is_refused(daemon):
    with pytest.raises(batchwright.InvalidArgumentError, match="window is 1"):
        BatchDataset(daemon.endpoint, window=1)


def test_a_closed_dataset_holds_no_batch_and_knows_its_place(daemon):
    dataset = BatchDataset(daemon.endpoint)
    batches = iter(dataset)
    next(batches)
    latest = weakref.ref(next(batches))
    del batches
    assert latest() is not None
    dataset.close()
    assert latest() is None
    assert dataset.state_dict()["step"] == 1


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
