"""Whose share of every step this process takes: looked up when an iteration begins."""

import subprocess
import sys
import warnings

import pytest
import torch.distributed

import batchwright
import served
from batchwright import _ranks
from batchwright.torch import BatchDataset

VARIABLES = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
             "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID")


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def environment(**variables):
    kept = {name: value for name, value in served.environment().items() if name not in VARIABLES}
    return {**kept, **variables}


@pytest.mark.parametrize("variables,share", [
    ({}, (0, 1)),
    ({"RANK": "1", "WORLD_SIZE": "4"}, (1, 4)),
    ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, (2, 4)),
    ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, (2, 4)),
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, (3, 4)),
    ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)),
    # torchrun in a task of Slurm's, mpirun in its batch script
    ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (5, 8)),
    ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0",
      "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}, (3, 4)),
    ({"SLURM_NTASKS": "4"}, (0, 1)),  # a shell of salloc's
], ids=str)
def test_each_launcher_is_known(monkeypatch, variables, share):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert _ranks.resolve(None, None) == share
    assert _ranks.resolve(1, 3) == (1, 3)


def test_slurms_batch_script_is_one_process(monkeypatch):
    for name, value in (("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")):
        monkeypatch.setenv(name, value)
    with pytest.warns(RuntimeWarning, match="SLURM_NTASKS is 4, but .* not started by srun"):
        assert _ranks.resolve(None, None) == (0, 1)


@pytest.mark.parametrize("variables", [{"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2",
                         "WORLD_SIZE": "2"}, {"RANK": "1"}, {"PMI_RANK": "1", "PMI_SIZE": ""}],
                         ids=str)
def test_variables_that_make_no_sense_are_refused(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(batchwright.InvalidArgumentError):
        _ranks.resolve(None, None)


@pytest.fixture
def group(monkeypatch):
    """A process group made of paper: what torch.distributed says, when the test says so."""
    said = {}
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: bool(said))
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: said["rank"])
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: said["ranks"])
    return said


def test_a_contradiction_is_refused_with_both_sides(group, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    group.update(rank=1, ranks=2)
    assert _ranks.resolve(None, None) == (1, 2)
    group.update(ranks=4)
    with pytest.raises(batchwright.InvalidArgumentError, match="say rank 1 of 2, and .* says 1 of 4"):
        _ranks.resolve(None, None)
    assert _ranks.resolve(0, 4) == (0, 4)


def test_a_group_that_is_made_after_the_dataset_counts(serve, group):
    """Whatever was asked of the dataset before its first batch."""
    daemon = serve(world=2)
    for before in (lambda each: None, len, BatchDataset.state_dict,
                   lambda each: each.load_state_dict(each.state_dict())):
        group.clear()
        with BatchDataset(daemon.endpoint) as dataset:
            before(dataset)
            assert (dataset.rank, dataset.ranks) == (0, 1)
            group.update(rank=1, ranks=2)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = [batch.index for batch in dataset]
            assert (dataset.rank, dataset.ranks) == (1, 2)
            assert found and all(index % 2 == 1 for index in found)


def test_a_group_larger_than_the_ranks_is_warned_of_with_both_figures(serve, group):
    daemon = serve(world=2)
    with BatchDataset(daemon.endpoint) as late, BatchDataset(daemon.endpoint, rank=0, ranks=1) as told:
        next(iter(late))
        group.update(rank=1, ranks=2)
        for dataset in (late, told):
            with pytest.warns(RuntimeWarning,
                              match='"train" is rank 0 of 1, and the process group has 2') as said:
                next(iter(dataset))
            assert said[0].filename == __file__
    with BatchDataset(daemon.endpoint, whole=True) as dataset:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert next(iter(dataset)).index == 0


def test_a_sharded_subscription_looks_there_too(serve, group):
    with batchwright.connect(serve(world=2).endpoint) as connection:
        group.update(rank=1, ranks=2)
        with connection.feed("train").subscribe(mode="sharded") as subscription:
            assert (subscription.grant.rank, subscription.grant.ranks) == (1, 2)


def test_processes_that_are_spawned_share_the_epoch(serve, tmp_path):
    """The dataset is made before init_process_group, as it often is."""
    daemon = serve(world=2)
    program = f"""
import sys, torch.distributed as distributed
from batchwright.torch import BatchDataset
rank = int(sys.argv[1])
dataset = BatchDataset({daemon.endpoint!r})
distributed.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank,
                               world_size=2)
print(dataset.rank, dataset.ranks, *(batch.index for batch in dataset))
distributed.barrier()
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(rank)], env=environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for rank in range(2)]
    found = [each.communicate(timeout=served.SECONDS * 4) for each in running]
    numbers = [list(map(int, out.split())) for out, _ in found]
    assert [each[:2] for each in numbers] == [[0, 2], [1, 2]], found
    assert sorted(numbers[0][2:] + numbers[1][2:]) == list(range(14))  # 15 batches, 7 steps of 2
