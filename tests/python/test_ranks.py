"""Whose share of every step this process takes: looked up when an iteration begins."""

import warnings

import pytest
import torch.distributed

import batchwright
from batchwright import _ranks
from batchwright._ranks import agreement
from batchwright.torch import BatchDataset
from groups import VARIABLES, in_group, run_ranks


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


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
    # srun -n2 --preserve-env in a job of four tasks
    ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7",
      "SLURM_STEP_ID": "0"}, (1, 2)),
], ids=str)
def test_each_launcher_is_known(monkeypatch, variables, share):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert _ranks.resolve(None, None) == share
    assert _ranks.resolve(1, 3) == (1, 3)


@pytest.mark.parametrize("variables", [
    {},  # the batch script
    {"SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"},  # a shell of salloc's on a node
], ids=str)
def test_what_srun_did_not_start_is_one_process(monkeypatch, variables):
    of_job = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}
    for name, value in {**of_job, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.warns(RuntimeWarning, match="SLURM_NTASKS is 4, but .* not started by srun"):
        assert _ranks.resolve(None, None) == (0, 1)


def test_a_rank_that_a_batch_script_exported_is_warned_of(monkeypatch):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "4"), ("SLURM_PROCID", "2"),
                        ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0")):
        monkeypatch.setenv(name, value)
    with pytest.warns(RuntimeWarning, match="RANK is 0 of 4, and SLURM_PROCID 2"):
        assert _ranks.resolve(None, None) == (0, 4)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")  # torchrun gives ranks of its own
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _ranks.resolve(None, None) == (0, 4)


@pytest.mark.parametrize("variables", [{"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2",
                         "WORLD_SIZE": "2"}, {"RANK": "1"}, {"PMI_RANK": "1", "PMI_SIZE": ""},
                         {"SLURM_PROCID": "4", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4",
                          "SLURM_STEP_ID": "0"}],
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
    monkeypatch.setattr(agreement, "_default_store", lambda: None)  # so ranks are not compared
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
        for dataset in (late.resume(), told):  # what a share has begun goes on with it
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


def told(rank, fingerprint="a-b-c", terms="size = 16\nseed = 1\n", sequences=60, epoch=0, step=0):
    return _ranks.Told(rank, 4, fingerprint, terms, sequences, epoch, step, f"n{rank}")


@pytest.mark.parametrize("others,plan,place", [
    ([told(2), told(3)], "", ""),
    ([told(2, "x-b-c", sequences=59), told(3)],
     "rank 2 on n2: data differ (59 sequences, 60 there); there is rank 0 on n0 and 2 more of 4", ""),
    ([told(2), told(3, "a-x-y", "size = 8\nseed = 2\n")],
     "rank 3 on n3: size is 8, 16 there; seed is 2, 1 there; there is rank 0 on n0 and 2 more of 4",
     ""),
    ([told(2, "a-b-x", ""), told(3, "a-b-x", "")],
     "rank 2 on n2: size is not set, 16 there; seed is not set, 1 there; rank 3 on n3: size is not "
     "set, 16 there; seed is not set, 1 there; there is rank 0 on n0 and 1 more of 4", ""),
    ([told(2, epoch=3, step=7), told(3)], "",
     "rank 2 on n2 begins with epoch 3, step 7; rank 0 with epoch 0, step 0"),
    ([told(2), told(2)], "", "two processes, on n2 and n2, are rank 2"),
], ids=str)
def test_what_differs_is_named_with_rank_and_host(others, plan, place):
    verdict = agreement._judge([told(0), told(1), *others])
    assert (verdict.plan, verdict.place) == (plan, place)


def test_without_terms_the_parts_are_named():
    assert "rank 1 on n1: settings differs; seed differs" in agreement._judge(
        [told(0, terms=""), told(1, "a-x-y", terms="")]).plan


def test_ranks_compare_what_they_read_when_the_first_iteration_begins(serve, tmp_path):
    """Rank 2 reads from a daemon with another seed; all are told within a second."""
    same, other = serve(world=3), serve(world=3, seed=2)
    found = in_group(tmp_path, 3, f"""
with BatchDataset({same.endpoint!r}) as dataset:
    assert sum(1 for _ in dataset) == 5
    dataset.set_epoch(1)
    if rank == 1: assert sum(1 for _ in dataset) == 5  # alone: they were compared
for check in (None, "ranks"):
    with BatchDataset([{same.endpoint!r}, {other.endpoint!r}][rank == 2], check=check) as dataset:
        distributed.barrier()
        began = time.monotonic()
        try:
            next(iter(dataset))
        except Exception as error:
            print(type(error).__name__, error)
        assert time.monotonic() - began < 10
    distributed.barrier()
with BatchDataset([{same.endpoint!r}, {other.endpoint!r}][rank == 2], check="none") as dataset:
    next(iter(dataset))
distributed.barrier()
""")
    for out, err in found:
        lines = out.splitlines()
        assert len(lines) == 2, err
        for line in lines:
            assert line.startswith('FingerprintMismatchError the ranks do not agree on feed "train": '
                                   "rank 2 on "), line
            assert "seed is 2, 1 there; there is rank 0 on " in line


def test_a_rank_that_does_not_come_is_named(serve, tmp_path):
    daemon = serve(world=2)
    found = in_group(tmp_path, 2, f"""
for check, seconds in (("ranks", 0.5), (None, 0.5)):
    if rank == 0:
        with BatchDataset({daemon.endpoint!r}, check=check, timeout=seconds) as dataset:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    print("index", next(iter(dataset)).index, *(str(w.message) for w in warned))
                except Exception as error:
                    print(type(error).__name__, error)
distributed.barrier()
""")
    lines = found[0][0].splitlines()
    what = 'feed "train": of 2 ranks these have not begun within 0.5 s: 1'
    assert lines[0] == f"TimedOutError {what}", found
    assert lines[1].startswith(f"index 0 batchwright: {what}. Where not all of them read it")


def test_a_comparison_takes_a_group_of_these_ranks(serve, group):
    daemon = serve(world=2)
    with BatchDataset(daemon.endpoint, check="ranks") as dataset:
        with pytest.raises(batchwright.InvalidArgumentError, match="it is not initialised"):
            next(iter(dataset))
    group.update(rank=1, ranks=2)
    with BatchDataset(daemon.endpoint, check="ranks") as dataset:
        with pytest.raises(batchwright.UnsupportedError, match="has no store"):
            next(iter(dataset))
    with pytest.raises(batchwright.InvalidArgumentError, match='"ranks", "none" or None'):
        BatchDataset(daemon.endpoint, check="all")


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
    found = run_ranks(program, 2)
    numbers = [list(map(int, out.split())) for out, _ in found]
    assert [each[:2] for each in numbers] == [[0, 2], [1, 2]], found
    assert sorted(numbers[0][2:] + numbers[1][2:]) == list(range(14))  # 15 batches, 7 steps of 2
