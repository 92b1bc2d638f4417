"""Runs the cases on a cluster, and prints a line of a table for each. Called by `run`."""
import argparse
import os
import pathlib
import subprocess
import sys

import corpora
import deaths
import jobs
import starts
import training
from cluster import NODES, Cluster, Failed, call

import case_table  # cluster has named its folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_TRIED = (
    "hosts of their own: the nodes share processors and clock, and a network without delay or loss",
    "proctrack/cgroup, which kills what escapes from proctrack/pgid used here",
    "job_container/tmpfs: here the nodes, and not the jobs, have a /tmp each",
    "GPUs, and NCCL in gloo's place")
WIDTH = 15  # of the cases' names
CASES = {case.__name__: case for room in (starts, deaths, training, corpora) for case in room.CASES}


def words():
    parser = argparse.ArgumentParser(prog="tests/cluster/run", description=(
        "Batchwright under Slurm, on four nodes that this machine plays."))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all by default; see --list")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin",
                        help="folder of the programs")
    parser.add_argument("--times", type=int, default=10, help="cancelled jobs of `scancel` (10)")
    parser.add_argument("--list", action="store_true", help="print the cases, and end")
    parser.add_argument("--work", type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.cases:
        if name not in CASES:
            parser.error(f"found case {name}; allowed: {' '.join(CASES)}")
    if not given.list and not (given.bin / "batchwrightd").exists():
        parser.error(f"found no batchwrightd in {given.bin}; build it, or name the folder by --bin")
    return given


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "of an unknown model"


def run_case(case, cluster, home, given):
    """Returns whether nothing went wrong."""
    def on_idle_cluster():
        cluster.wait_until_idle()
        return case(cluster, home, given)
    return case_table.run_case(case.__name__, on_idle_cluster, WIDTH)


def main():
    given = words()
    if given.list:
        case_table.print_cases(CASES, WIDTH)
        return 0
    cluster = Cluster(given.work)
    good = True
    try:
        cluster.start()
        home = jobs.Home(cluster, given.bin.resolve())
        print(f"{call('sinfo', '--version').strip()}, {len(NODES)} nodes on {os.cpu_count()} "
              f"processors: {processor()}", flush=True)
        for name in given.cases or CASES:
            good = run_case(CASES[name], cluster, home, given) and good
    except Failed as error:
        good = False
        print(f"FAILED the cluster: {error}")
    finally:
        cluster.stop()
    print(f"not tried: {'; '.join(NOT_TRIED)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
