"""Cases of beginnings and ends: first batch, two jobs on a node, scancel."""
import random
import statistics
import time

from cluster import MOST_TO_CLEAN, call, expect, until
from jobs import (EPOCHS, as_script, batches_of, expect_same, Job, lines_of, steady_job, step_words,
                  undisturbed, until_batch)

MOST_TO_FIRST = 2.0  # seconds from srun to the first batch on every rank


def first_batch(cluster, home, options):
    """From the call of srun, with a trainer that needs no torch."""
    times = []
    for _ in range(5):
        folder = home.folder("first")
        began = time.time()
        call(*step_words(folder, "--batches", 1, before=["--nodes=4"]))
        ranks = lines_of(folder)
        expect(len(ranks) == 4, f"{len(ranks)} ranks had a batch")
        times.append(max(lines[0].time for lines in ranks.values()) - began)
        cluster.wait_until_clean()
    # Other programs may have the processors meanwhile: one of the runs is to be quick enough.
    expect(min(times) <= MOST_TO_FIRST, f"{min(times):.2f} s; wanted: {MOST_TO_FIRST} s")
    return (f"{statistics.median(times):.2f} s until every rank had one (median of {len(times)}; "
            f"{min(times):.2f} to {max(times):.2f} s)")


def two_jobs(cluster, home, options):
    """On one node, with the same configuration; and a second step of one of them, which joins."""
    first, joining, second = (home.folder("two") for _ in range(3))
    gate = first / "gate"  # none is through before the daemons are counted
    words = ("--epochs", EPOCHS, "--gate", gate, "--gate-at", 20)
    # Steps of one job at the same time, for which it has to have the processors, or share them.
    beside = {"before": ["--overlap"], "config": first}
    script = as_script(first, step_words(first, *words, **beside) + ["&"],
                       step_words(joining, *words, **beside) + ["&"], ["wait"])
    on_n1 = ("--nodes=1", "--nodelist=n1")
    began = [Job(first, *on_n1, script),
             Job(second, *on_n1, as_script(second, step_words(second, *words, config=first)))]
    try:
        for folder in (first, joining, second):
            until_batch(folder, 10, ranks=1)
        daemons = len(cluster.node("n1").running("batchwrightd"))
    finally:
        gate.touch()
    expect(daemons == 2, f"{daemons} daemons for two jobs")
    for job in began:
        job.end()
    took = cluster.wait_until_clean()
    alone = sorted(line for lines in undisturbed(home).values() for line in lines)
    for folder in (first, joining, second):
        expect_same(batches_of(folder), {0: alone}, "two jobs")
    return f"2 daemons, 3 trainers with the same {len(alone)} batches; clean after {took:.1f} s"


def scancel(cluster, home, options):
    """At random moments of a job's life: in its start, and while it trains."""
    draw, times = random.Random(1), []
    for _ in range(options.times):
        job = steady_job(home.folder("scancel"))
        job.wait_for("RUNNING")
        time.sleep(draw.uniform(0, 1.5))
        began = time.monotonic()
        job.cancel()
        times.append(cluster.wait_until_clean(began))
        job.end("CANCELLED")
        cluster.wait_until_idle()
    return (f"{len(times)} times nothing was left: after {statistics.median(times):.2f} s (median), "
            f"{max(times):.2f} s (longest)")


def stubborn(cluster, home, options):
    """scancel of trainers that ignore SIGTERM: Slurm kills `batchwright run` with them."""
    job = steady_job(home.folder("stubborn"), "--stubborn")
    until_batch(job.folder, 1)
    began = time.monotonic()
    job.cancel()
    # slurmd looks at its watch every few seconds, and so kills later than KillWait says.
    until(lambda: not any(node.ours() for node in cluster.nodes), "all processes to end",
          2 * MOST_TO_CLEAN)
    took = time.monotonic() - began
    files = {file.rpartition("/")[2] for node in cluster.nodes for file in node.files()}
    job.end("CANCELLED")
    for node in cluster.nodes:
        node.clear()
    expect(not any(".sock" in file for file in files), f"left behind: {files}")
    return f"no process and no socket after {took:.1f} s; files: {' '.join(sorted(files)) or 'none'}"


CASES = (first_batch, two_jobs, scancel, stubborn)
