"""Checkpoints of a BatchDataset: what goes on from them, and what they refuse."""

import copy

import pytest
import torch

import batchwright
import served
from batchwright.torch import BatchDataset
from epochs import run, whole_run


@pytest.mark.parametrize("world,rank,ranks", [(1, 0, 1), (4, 0, 1), (4, 1, 2), (4, 3, 4)])
def test_a_resumed_run_sees_exactly_what_an_uninterrupted_one_sees(serve, world, rank, ranks):
    """Interrupted after every single batch of two epochs, also within a step."""
    daemon = serve(size=3, world=world)
    share = dict(rank=rank, ranks=ranks, window=2)
    whole = whole_run(daemon, 2, **share)
    states = []
    with BatchDataset(daemon.endpoint, **share) as dataset:
        for epoch in range(2):
            dataset.set_epoch(epoch)
            for _ in dataset:
                states.append((copy.deepcopy(dataset.state_dict()),
                               copy.deepcopy(dataset.state_dict(finished=True))))
    assert len(states) >= 10
    with BatchDataset(daemon.endpoint, **share) as dataset:
        for number, (yielded, finished) in enumerate(states):
            dataset.load_state_dict(yielded)
            assert run(dataset, dataset.epoch, 2) == whole[number + 1:]
            dataset.load_state_dict(finished)
            assert run(dataset, dataset.epoch, 2) == whole[number:]


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
    assert next(iter(dataset)).index == 2
    dataset.set_epoch(1)
    assert next(iter(dataset)).epoch == 1


@pytest.mark.parametrize("what,settings", [("size", dict(size=5)), ("seed", dict(seed=2)),
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
        with pytest.raises(batchwright.InvalidArgumentError, match="middle of a step"):
            one.load_state_dict(two.state_dict())
        next(batches)
        one.load_state_dict(two.state_dict())
        assert run(one, 0, 0) == whole[4:]


def checkpoint_at(daemon, batches):
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as dataset:
        for batch in dataset:
            done = batch.index + 1
            batch.release()
            if done == batches:
                return dataset.state_dict()


@pytest.mark.parametrize("setting, words", [
    (dict(size=6), "size: 4 before, 6 now"),
    (dict(layout="time-major"), "layout: batch-major before, time-major now"),
    (dict(seed=2, plan="last = \"drop\""), "last: keep before, drop now; seed: 1 before, 2 now"),
])
def test_a_checkpoint_of_other_settings_is_refused_and_names_them(serve, setting, words):
    daemon = serve()
    state = checkpoint_at(daemon, 3)
    assert "layout = batch-major\n" in state["terms"]
    daemon.stop()
    daemon.settings.update(setting)
    daemon.start()
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as dataset:
        with pytest.raises(batchwright.FingerprintMismatchError, match=words):
            dataset.load_state_dict(state)
        del state["terms"]
        with pytest.raises(batchwright.FingerprintMismatchError, match="settings .or planner"):
            dataset.load_state_dict(state)


def test_a_checkpoint_of_the_end_of_all_epochs_is_taken(daemon):
    with BatchDataset(daemon.endpoint, epochs=2) as dataset:
        run(dataset, 0, 1)
        state = dataset.state_dict()
    with BatchDataset(daemon.endpoint, epochs=2) as dataset:
        dataset.load_state_dict(state)
        assert (dataset.epoch, len(dataset)) == (2, 0)
    with BatchDataset(daemon.endpoint, epochs=1) as dataset:
        with pytest.raises(batchwright.InvalidArgumentError, match="below epochs"):
            dataset.load_state_dict(state)
