"""Cases in which something is killed."""
import os
import signal
import time

from cluster import MOST_TO_CLEAN, expect, until
from jobs import (EPOCHS, Job, as_script, batches_of, check_each_once, expect_same, last_step,
                  lines_of, starts_of, steady_job, step_words, training_job, undisturbed, until_batch,
                  until_step)


def kill_program(node, program):
    """Waits for it, too: it may be just starting."""
    until(lambda: node.running(program), f"{program} on {node.name}")
    for pid in node.running(program):
        os.kill(pid, signal.SIGKILL)


def longest_pause(folder):
    """Of any rank, in seconds."""
    return max(after.time - before.time for lines in lines_of(folder).values()
               for before, after in zip(lines, lines[1:]))


def daemon_killed(cluster, home, options):
    """On one node, then on all."""
    wanted = undisturbed(home)
    folder = home.folder("daemon")
    # However slowly the kills come, the ranks have batches left behind the gate.
    gate = folder / "gate"
    job = steady_job(folder, "--epochs", EPOCHS, "--gate", gate, "--gate-at", 100)
    try:
        until_batch(folder, 10)
        kill_program(cluster.node("n2"), "batchwrightd")
        until_batch(folder, 40)
        for node in cluster.nodes:
            kill_program(node, "batchwrightd")
    finally:
        gate.touch()
    job.end()
    took = cluster.wait_until_clean()
    expect_same(batches_of(folder), wanted, "after the daemons' deaths")
    return (f"5 deaths, the same {sum(map(len, wanted.values()))} batches; longest pause "
            f"{longest_pause(folder):.1f} s; clean after {took:.1f} s")


def trainer_killed(cluster, home, options):
    """The step ends, and the job with it; the next one goes on."""
    folder = home.folder("trainer")
    job = training_job(folder)
    until_step(job, 40)
    kill_program(cluster.node("n3"), "train.py")
    began = time.monotonic()
    job.end("FAILED")
    took = cluster.wait_until_clean(began)
    at = last_step(folder)
    training_job(folder).end()
    cluster.wait_until_clean()
    starts = check_each_once(folder)
    return (f"at step {at}, clean after {took:.1f} s; went on at {starts[1].first}, each sequence "
            "once an epoch")


def step_cancelled(cluster, home, options):
    """The job goes on with its next step, on the same nodes."""
    folder = home.folder("step")
    endless, after = home.folder("step"), step_words(folder, "--epochs", EPOCHS)
    job = Job(folder, "--nodes=4", as_script(folder, step_words(endless), after))
    until_batch(endless, 10)
    job.cancel_step(0)
    job.end()
    took = cluster.wait_until_clean()
    expect_same(batches_of(folder), undisturbed(home), "the step after")
    return f"the next step has every batch; clean after {took:.1f} s"


def is_down(cluster, node):
    return cluster.states().get(node.name, "").startswith("down")


def go_on_after(cluster, folder, job, node, began):
    """The other nodes are left at once, the node comes back, the job goes on."""
    others = [each for each in cluster.nodes if each is not node]
    until(lambda: not any(each.ours() + each.files() for each in others),
          "the other nodes to be left", MOST_TO_CLEAN,
          also=lambda: [each.ours() + each.files() for each in others])
    took = time.monotonic() - began
    # A host that is back sooner has booted again, and tells so; this kernel did not.
    until(lambda: is_down(cluster, node), "Slurm to notice")
    node.plug()
    node.boot()
    job.end()
    cluster.wait_until_clean()
    starts = check_each_once(folder)
    # More than two starts: Slurm may end the second one, by a word meant for the first, once more.
    expect(len(starts) >= 2 and starts[1].restart == 1, f"{len(starts)} starts")
    return (f"other nodes left after {took:.1f} s; {len(starts)} starts, the last from step "
            f"{starts[-1].first}; each sequence once an epoch")


def node_killed(cluster, home, options):
    """A node's kernel ends all processes, so that their peers' connections are closed."""
    folder, node = home.folder("node"), cluster.node("n3")
    job = training_job(folder, retries=3)
    until_step(job, 40)
    node.kill()
    return go_on_after(cluster, folder, job, node, time.monotonic())


def node_lost(cluster, home, options):
    """The first node, which has the batch script, loses power: Slurm alone notices."""
    folder, node = home.folder("lost"), cluster.node("n1")
    job = training_job(folder)
    until_step(job, 40)
    node.unplug()
    node.kill()
    began = time.monotonic()
    until(lambda: is_down(cluster, node), "Slurm to notice")
    noticed = time.monotonic()
    return (f"Slurm noticed after {noticed - began:.0f} s; "
            f"{go_on_after(cluster, folder, job, node, noticed)}")


def requeue(cluster, home, options):
    """By hand, in the middle; then by the signal that comes before the job's time is over."""
    folder = home.folder("requeue")
    job = training_job(folder, epochs=8)
    until_step(job, 40)
    job.requeue()
    until(lambda: len(starts_of(folder)) == 2 and last_step(folder) is not None, "the second start")
    until_step(job, starts_of(folder)[1].first + 20)
    job.cancel("--signal=USR1")
    job.end()
    took = cluster.wait_until_clean()
    starts = check_each_once(folder, epochs=8)
    expect([each.restart for each in starts] == [0, 1, 2], f"{len(starts)} starts")
    expect(max(starts[1].lines)[0] == starts[2].first - 1, "steps were lost by an ending in order")
    return (f"went on at steps {starts[1].first} and {starts[2].first}, the latter without a lost "
            f"step; each sequence once an epoch; clean after {took:.1f} s")


CASES = (daemon_killed, step_cancelled, trainer_killed, node_killed, node_lost, requeue)
