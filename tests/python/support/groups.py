"""Processes of a job, and process groups of theirs."""

from __future__ import annotations

import subprocess
import sys

import served

VARIABLES = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
             "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID",
             "SLURM_STEP_NUM_TASKS", "TORCHELASTIC_RUN_ID")


def environment(**variables):
    kept = {name: value for name, value in served.environment().items() if name not in VARIABLES}
    return {**kept, **variables}


def run_ranks(program, ranks):
    """What so many processes print; each gets its rank as argument."""
    running = [subprocess.Popen([sys.executable, "-c", program, str(rank)], env=environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for rank in range(ranks)]
    return [each.communicate(timeout=served.SECONDS * 4) for each in running]


def in_group(tmp_path, ranks, program):
    """The same in a process group; the program sees `rank` and `BatchDataset`."""
    return run_ranks(f"""
import sys, time, warnings, torch.distributed as distributed
from batchwright.torch import BatchDataset
rank = int(sys.argv[1])
distributed.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank,
                               world_size={ranks})
{program}
""", ranks)
