"""This process's share of every global step."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, Optional, Tuple

from .._waits import warn
from ..errors import InvalidArgumentError

Share = Tuple[int, int]  # rank, ranks


class _Launcher(NamedTuple):
    """A launcher, which starts the processes of a job and gives each its rank."""

    name: str
    rank: str
    ranks: str


# mpirun may run within a job of Slurm's, whose variables are then those of the job.
_LAUNCHERS = (_Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
              _Launcher("PMI", "PMI_RANK", "PMI_SIZE"))
# What Slurm calls the shell that salloc opens on a node, where it does.
_INTERACTIVE_STEP = "4294967290"


def _numbers(rank: Tuple[str, str], ranks: Tuple[str, str]) -> Share:
    """The numbers in two variables, each with its name. Errors: InvalidArgumentError."""
    try:
        return int(rank[1]), int(ranks[1])
    except ValueError:
        raise InvalidArgumentError(f"{rank[0]} is {rank[1]!r} and {ranks[0]} {ranks[1]!r}; they are "
                                   "whole numbers") from None


def _from_environment() -> Optional[Share]:
    """The share by RANK and WORLD_SIZE, as torchrun and others set them."""
    rank, ranks = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and ranks is None:
        return None
    if rank is None or ranks is None:
        raise InvalidArgumentError(
            "of RANK and WORLD_SIZE only one is set: every process would take the same share")
    return _numbers(("RANK", rank), ("WORLD_SIZE", ranks))


def _from_torch() -> Optional[Share]:
    """The default process group's share; None where torch.distributed was never imported."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _from_launcher() -> Optional[Share]:
    """The share by the variables of the first launcher that sets both."""
    for launcher in _LAUNCHERS:
        rank, ranks = os.environ.get(launcher.rank), os.environ.get(launcher.ranks)
        if rank is not None and ranks is not None:
            return _numbers((launcher.rank, rank), (launcher.ranks, ranks))
    return _from_slurm()


def _from_slurm() -> Optional[Share]:
    """The share of a task of srun's. A batch script and a shell of salloc's run once, and have the
    variables, too, with the tasks of the job; so has a step with `srun --preserve-env`, whose own
    number is in SLURM_STEP_NUM_TASKS."""
    step = os.environ.get("SLURM_STEP_ID")
    is_task = step != _INTERACTIVE_STEP and (step is not None or "SLURM_JOB_ID" not in os.environ)
    name = "SLURM_NTASKS"
    if is_task and "SLURM_STEP_NUM_TASKS" in os.environ:
        name = "SLURM_STEP_NUM_TASKS"
    rank, ranks = os.environ.get("SLURM_PROCID"), os.environ.get(name)
    if rank is None or ranks is None:
        return None
    found = _numbers(("SLURM_PROCID", rank), (name, ranks))
    if is_task:
        return found
    if found[1] > 1:
        warn(f"SLURM_NTASKS is {found[1]}, but this process was not started by srun: it takes every "
             "batch")
    return 0, 1


def _warn_of_task(share: Share) -> None:
    """RANK may well be another than Slurm's number: torchrun and mpirun give their own. But a batch
    script that exports it gives all tasks the same."""
    task = _from_slurm() if "SLURM_STEP_ID" in os.environ else None
    if task is not None and task[1] == share[1] and task[0] != share[0] and not (
            "TORCHELASTIC_RUN_ID" in os.environ or "OMPI_COMM_WORLD_RANK" in os.environ):
        warn(f"RANK is {share[0]} of {share[1]}, and SLURM_PROCID {task[0]}: where every task of the "
             "step has that RANK, all take the same share. Export RANK in the task, as by srun "
             "bash -c 'RANK=$SLURM_PROCID exec ...'")


def _found() -> Share:
    environment, group = _from_environment(), _from_torch()
    if environment is not None and group is not None and environment != group:
        raise InvalidArgumentError(
            "RANK and WORLD_SIZE say rank {} of {}, and torch.distributed says {} of {}: give "
            "rank and ranks".format(*environment, *group))
    if environment is not None and group is None:
        _warn_of_task(environment)
    return group or environment or _from_launcher() or (0, 1)


def resolve(rank: Optional[int], ranks: Optional[int]) -> Share:
    """Rank and ranks: as given, otherwise torch.distributed's when it is initialised, otherwise
    RANK and WORLD_SIZE, otherwise those of Open MPI, PMI or Slurm, otherwise 0 of 1.

    Errors: InvalidArgumentError for half of a pair, for a rank that is not below ranks, and where
    torch.distributed contradicts RANK and WORLD_SIZE.
    """
    check_pair(rank, ranks)
    if rank is not None and ranks is not None:
        return rank, ranks
    found = _found()
    check_pair(*found)
    return found


def check_pair(rank: Optional[int], ranks: Optional[int]) -> None:
    """Errors: InvalidArgumentError."""
    if (rank is None) != (ranks is None):
        raise InvalidArgumentError("rank and ranks are given together, or neither")
    if rank is not None and ranks is not None and not 0 <= rank < ranks:
        raise InvalidArgumentError(f"rank is {rank} of {ranks}; it is 0 to {ranks - 1}")


class Choice(NamedTuple):
    """The rank and ranks that a program asked for."""

    rank: Optional[int]
    ranks: Optional[int]
    whole: bool  # all of it, whatever the group

    @classmethod
    def of(cls, rank: Optional[int], ranks: Optional[int], whole: bool) -> Choice:
        """Errors: InvalidArgumentError."""
        check_pair(rank, ranks)
        if whole and rank is not None:
            raise InvalidArgumentError("whole=True is all of it; rank and ranks are a share")
        return cls(rank, ranks, whole)

    def resolve(self) -> Share:
        """Calls resolve() with the state of this moment."""
        return (0, 1) if self.whole else resolve(self.rank, self.ranks)

    def look_at_group(self, share: Share, what: str) -> None:
        """Gives a RuntimeWarning when more processes train together than share the batches."""
        if not self.whole:
            _warn_of_group(share, what)


def _warn_of_group(share: Share, what: str) -> None:
    group = _from_torch()
    if group is not None and group[1] > share[1]:
        warn(f"{what} is rank {share[0]} of {share[1]}, and the process group has {group[1]}: "
             "processes of it get the same batches. Give rank and ranks, or whole=True where each "
             "process is to have all")
