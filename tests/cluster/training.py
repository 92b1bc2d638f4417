"""Cases of torch.distributed's training: other numbers of nodes, equal weights; and of clocks."""
import pathlib
import random

from cluster import Skipped, expect
from deaths import kill_program
from jobs import (EPOCHS, batches_of, check_each_once, expect_same, last_step, steady_job,
                  training_job, undisturbed, until_step, weights_of)

DAY = 24 * 3600
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


def elastic(cluster, home, options):
    """4, 2, 1 and 4 nodes, each job cancelled at a random step."""
    folder, draw = home.folder("elastic"), random.Random(7)
    for nodes in (4, 2, 1):
        job = training_job(folder, nodes=nodes, every=7)
        until_step(job, (last_step(folder) or 0) + draw.randint(15, 60))
        job.cancel()
        job.end("CANCELLED")
        cluster.wait_until_clean()
    training_job(folder, nodes=4, every=7).end()
    cluster.wait_until_clean()
    starts = check_each_once(folder)
    expect([start.ranks for start in starts] == [4, 2, 1, 4], "other numbers of ranks")
    return (f"nodes 4, 2, 1, 4 from steps {', '.join(str(start.first) for start in starts)}; each "
            "sequence once in each of 6 epochs")


def undisturbed_weights(home):
    def run():
        folder = home.folder("weights")
        training_job(folder).end()
        return weights_of(folder)
    return home.once("weights", run)


def gradients(cluster, home, options):
    """The weights after a daemon's death, and after a trainer's with a job that goes on, have the
    bits of those of an undisturbed run."""
    wanted = undisturbed_weights(home)
    folder = home.folder("gradients")
    job = training_job(folder)
    until_step(job, 40)
    kill_program(cluster.node("n4"), "batchwrightd")
    job.end()
    expect(weights_of(folder) == wanted, "other weights after a daemon's death")
    folder = home.folder("gradients")
    job = training_job(folder)
    until_step(job, 40)
    kill_program(cluster.node("n2"), "train.py")
    job.end("FAILED")
    training_job(folder).end()
    expect(weights_of(folder) == wanted, "other weights after a trainer's death")
    cluster.wait_until_clean()
    return f"equal bits of {sum(map(len, wanted.values()))} bytes of weights, twice"


def clock(cluster, home, options):
    """n2 is a day ahead, on n3 the trainer alone is a day behind, on n4 the daemon."""
    if not FAKETIME.exists():
        raise Skipped("no libfaketime here (tests/install-packages cluster)")
    wanted = undisturbed(home)
    folder = home.folder("clock")
    off = (f"export LD_PRELOAD={FAKETIME} FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_RESET=1 "
           f"FAKETIME=")
    daemon = script(folder / "daemon", f"test $SLURMD_NODENAME = n4 && {off}-{DAY}\n"
                    'exec batchwrightd "$@"\n')
    host = script(folder / "host", f'test $SLURMD_NODENAME = n2 && {off}+{DAY}\nexec "$@"\n')
    trainer = script(folder / "python3", f"test $SLURMD_NODENAME = n3 && {off}-{DAY}\n"
                     'exec /usr/bin/python3 "$@"\n')
    # libfaketime does not get along with sleeping by the clock that it leaves alone.
    job = steady_job(folder, "--epochs", EPOCHS, "--work", 0, before=[host],
                     run_words=["--daemon", daemon], python=trainer)
    job.end()
    took = cluster.wait_until_clean()
    expect_same(batches_of(folder), wanted, "with clocks that differ")
    return f"the same batches; clean after {took:.1f} s"


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


CASES = (elastic, gradients, clock)
