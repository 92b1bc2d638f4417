#!/usr/bin/env python3
"""A whole training job on any number of nodes: it tells labels apart by the mean of the features.

    srun batchwright run --config train.toml -- python3 train.py --state FOLDER

Trains on the feed `train`, with `features` [T, bands] and a scalar `label`. Each task of the step is
a rank. The state has model, optimizer and place in the data; it is saved at steps' ends, by rank 0,
and a start goes on from it with as many ranks as there are then. SIGUSR1 saves it and ends the
job in order; the file `finished` says that there is no more to do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
from typing import Any, Dict, List

told_to_stop: List[int] = []  # the signals that came
# Before torch is imported, which takes seconds in which the signal would be the process's end.
signal.signal(signal.SIGUSR1, lambda number, frame: told_to_stop.append(number))

import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from batchwright.torch import BatchDataset  # noqa: E402


class MeanOfFrames(torch.nn.Module):
    """Frames of a sequence to a score for each label."""

    def __init__(self, bands: int, labels: int, hidden: int = 32) -> None:
        super().__init__()
        self.frame = torch.nn.Linear(bands, hidden)
        self.score = torch.nn.Linear(hidden, labels)

    def forward(self, frames: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.frame(frames)) * real[..., None]
        return self.score(hidden.sum(1) / real.sum(1, keepdim=True))


def join_group() -> None:
    """torchrun's ranks, otherwise those of the step's tasks."""
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
        return
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    distributed.init_process_group("gloo", init_method=address,
                                   rank=int(os.environ["SLURM_PROCID"]),
                                   world_size=int(os.environ["SLURM_STEP_NUM_TASKS"]))


class Job:
    """Model, optimizer and data of one rank."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(1)  # all ranks begin with the same weights
        self.options = options
        self.data = BatchDataset(epochs=options.epochs)
        bands, = self.data.feed.field("features").shape
        labels = self.data.feed.field("label").categories or ()
        # Without this argument gradients are laid out anew behind the first step of each start, and
        # so are summed in another order: a job that goes on would not get the same bits.
        self.model = DistributedDataParallel(MeanOfFrames(bands, len(labels)),
                                             find_unused_parameters=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.state = options.state / "state.pt"
        # A step has `world` batches, however many ranks there are to share them.
        self.batches_per_step = self.data.feed.world // distributed.get_world_size()
        self.steps = 0
        if self.state.exists():
            self.load()
        self.log = self.open_log()

    def load(self) -> None:
        state = torch.load(self.state)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.data.load_state_dict(state["data"])
        self.steps = state["steps"]

    def save(self) -> None:
        """Whole or not at all: the node may fail in here, too."""
        state = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(),
                 "data": self.data.state_dict(), "steps": self.steps}
        partial = self.state.with_suffix(".partial")
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self.state)

    def open_log(self) -> Any:
        """One for each start and rank; its first line has the first step."""
        if self.options.log is None:
            return None
        self.options.log.mkdir(exist_ok=True)
        start = f"{os.environ['SLURM_JOB_ID']}.{os.environ.get('SLURM_RESTART_COUNT', 0)}"
        log = (self.options.log / f"{start}.{distributed.get_rank()}").open("w", buffering=1)
        log.write(f"{self.steps}\n")
        return log

    def learn(self, batch: Any, last_of_step: bool) -> float:
        """Adds the batch to the step's gradient, and after the last one does the step."""
        if self.log is not None:
            self.log.write(f"{self.steps} {batch.epoch} {' '.join(map(str, batch.ordinals))}\n")
        with contextlib.nullcontext() if last_of_step else self.model.no_sync():
            scores = self.model(batch.torch("features"), torch.from_numpy(batch.mask))
            loss = torch.nn.functional.cross_entropy(scores, batch.torch("label").long(),
                                                     reduction="sum") / batch.step_sequences
            # Gradients become the mean over ranks; this makes it the step's mean over sequences.
            (loss * distributed.get_world_size()).backward()
        if last_of_step:
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1
        return loss.item()

    def agree(self, loss: float) -> Dict[str, float]:
        """The step's loss, and whether any rank was told to stop: signals come to each rank at
        its own time, and all end behind the same step."""
        both = torch.tensor([loss, float(bool(told_to_stop))])
        distributed.all_reduce(both)
        return {"loss": both[0].item(), "stop": both[1].item()}

    def run(self) -> bool:
        """Whether it came to the end."""
        leads = distributed.get_rank() == 0
        for epoch in range(self.data.epoch, self.options.epochs):
            self.data.set_epoch(epoch)
            loss, in_step = 0.0, 0
            for batch in self.data:
                in_step += 1
                last = in_step == self.batches_per_step
                loss += self.learn(batch, last)
                if not last:
                    continue
                agreed = self.agree(loss)
                loss, in_step = 0.0, 0
                if leads and (agreed["stop"] or self.steps % self.options.every == 0):
                    self.save()
                if agreed["stop"]:
                    return False
            if leads:
                print(f"epoch {epoch}: {self.steps} steps, loss {agreed['loss']:.3f}", flush=True)
        if leads:
            self.save()
            (self.options.state / "finished").touch()
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=pathlib.Path, required=True,
                        help="folder that all nodes see")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--every", type=int, default=50, help="steps between two states")
    parser.add_argument("--log", type=pathlib.Path,
                        help="folder that gets a line for every batch: step, epoch, sequences")
    options = parser.parse_args()
    torch.set_num_threads(1)
    join_group()
    Job(options).run()
    # It has done its work, and may come once more: the interpreter gives handlers up before it ends,
    # and the signal would be the end of a job that went well.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    distributed.barrier()  # none ends while another still needs it


if __name__ == "__main__":
    main()
