"""On a real GPU. Skipped with the reason where there is none."""

import subprocess

import pytest
import torch

import batchwright
from batchwright import gpu
from batchwright._memory import in_flight


def why_not():
    try:
        asked = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, timeout=60,
                               check=False)
    except OSError:
        return "no GPU: there is no nvidia-smi"
    if asked.returncode != 0 or not asked.stdout:
        return "no GPU: nvidia-smi does not answer"
    return None if torch.cuda.is_available() else "this torch is built without CUDA"


REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def test_a_batch_arrives_on_the_gpu_and_its_slot_goes_back(feed):
    for batch in feed.epoch(0):
        wanted = {name: batch.torch(name).clone() for name in batch.names}
        moved = batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        for name, values in wanted.items():
            assert moved[name].is_cuda
            assert torch.equal(moved[name].cpu(), values)
    in_flight.reap()
    assert not in_flight.pending


def test_the_arena_is_pinned_where_the_device_can(feed):
    if not gpu.cuda.read_only_supported(torch.device("cuda")):
        pytest.skip("the device cannot register read-only memory")
    with feed.subscribe() as subscription:
        subscription.next().to("cuda")
        assert subscription.next().torch("features").is_pinned()


def test_an_error_of_registering_does_not_come_up_later(daemon, monkeypatch):
    """CUDA keeps its last error: the next launch must not report it."""
    monkeypatch.setattr(gpu, "_READ_ONLY", 0x8000)  # no such flag
    monkeypatch.setattr(gpu, "_said", [])
    monkeypatch.setattr(gpu.Cuda, "read_only_supported", lambda *_: True)
    with batchwright.connect(daemon.endpoint) as connection:
        with pytest.warns(RuntimeWarning, match="failed with CUDA's error"):
            moved = connection.feed("train").subscribe().next().to("cuda")
    assert float((moved["features"] * 2).sum()) == 2 * float(moved["features"].sum())
