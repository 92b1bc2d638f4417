"""Ranks of a process group that are not compared in the same order, or begin one after the other."""

import pytest

from groups import VARIABLES, in_group


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_ranks_that_do_not_agree_are_compared_again_at_the_next_try(serve, tmp_path):
    """A cell of a notebook that is run again; then the daemon is mended."""
    same, other = serve(world=2), serve(world=2, seed=2)
    found = in_group(tmp_path, 2, f"""
with BatchDataset([{same.endpoint!r}, {other.endpoint!r}][rank], timeout=20) as dataset:
    for attempt in range(3):
        try:
            print("batches", sum(1 for _ in dataset))
        except Exception as error:
            print(type(error).__name__)
with BatchDataset({same.endpoint!r}, timeout=20) as dataset:
    for epoch in (rank, 0):
        dataset.set_epoch(epoch)
        try:
            print("batches", sum(1 for _ in dataset))
        except Exception as error:
            print(type(error).__name__, error)
distributed.barrier()
""")
    for out, err in found:
        lines = out.splitlines()
        assert lines[:3] == ["FingerprintMismatchError"] * 3, (out, err)
        assert "rank 1 on " in lines[3]
        assert "begins with epoch 1, step 0; rank 0 with epoch 0" in lines[3]
        assert lines[4:] == ["batches 7"]


def test_datasets_that_ranks_begin_in_another_order_are_compared(serve, stored, tmp_path):
    """None waits for a batch that does not come, and each is compared with its own feed."""
    feeds = """
[[feed]]
name = "valid"
dataset = "{dataset}"
slots = 8
[feed.plan]
size = 4
world = 2
seed = {seed}
"""
    daemons = [serve(world=2, plan=feeds.format(dataset=stored, seed=seed))
               for seed in (1, 2)]
    found = in_group(tmp_path, 2, f"""
endpoint = {[each.endpoint for each in daemons]!r}[rank]
for name in (["train", "valid"], ["valid", "train"])[rank]:
    dataset = BatchDataset(endpoint, name, timeout=20)
    batches = iter(dataset)
    began = time.monotonic()
    try:
        print(name, next(batches).index)
    except Exception as error:
        print(name, type(error).__name__)
    assert time.monotonic() - began < 15
distributed.barrier()
""")
    for out, err in found:
        assert sorted(out.splitlines()) in (["train 0", "valid FingerprintMismatchError"],
                                            ["train 1", "valid FingerprintMismatchError"]), (out, err)


def test_what_one_rank_looks_at_leaves_the_ranks_equal(serve, tmp_path):
    daemon = serve(world=2)
    found = in_group(tmp_path, 2, f"""
import itertools
looks = [lambda data: next(iter(data)), lambda data: next(iter(data)).release(), len, iter,
         lambda data: list(itertools.islice(data, 3)), BatchDataset.state_dict]
for look in looks:
    with BatchDataset({daemon.endpoint!r}, timeout=20) as dataset:
        if rank == 0: look(dataset)
        print([batch.index // 2 for batch in dataset], flush=True)
distributed.barrier()
""")
    for out, err in found:
        assert out == f"{list(range(7))}\n" * 6, err


@pytest.mark.parametrize("looker, go, then", [
    (0, "dataset.set_epoch(3)", ""), (1, "dataset.load_state_dict(state)", ""),
    (0, "dataset.load_state_dict(state)", "dataset.set_epoch(0)")])
def test_a_look_before_the_others_come_neither_waits_long_nor_counts_as_a_start(
        serve, tmp_path, looker, go, then):
    daemon = serve(world=2)
    found = in_group(tmp_path, 2, f"""
warnings.simplefilter("error")
with BatchDataset({daemon.endpoint!r}, rank=rank, ranks=2, check="none") as dataset:
    batches = iter(dataset)
    next(batches), next(batches)
    state = dataset.state_dict()
dataset = BatchDataset({daemon.endpoint!r})
began = time.monotonic()
if rank == {looker}: next(iter(dataset))
assert time.monotonic() - began < 15
distributed.barrier()
{go}
if rank == {looker}: next(iter(dataset))
{then}
print([(batch.epoch, batch.index // 2) for batch in dataset], flush=True)
distributed.barrier()
""")
    assert found[0][0] == found[1][0] != "", found
