"""What is submitted to the cluster: a dataset, jobs, and what their trainers wrote."""
import collections
import importlib.util
import os
import pathlib
import re
import shutil
import sys

from cluster import UID, Failed, Skipped, call, expect, until

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHIPPED = ROOT / "systemd" / "deploy" / "slurm"
SEQUENCES = 13_100
EPOCHS = 5  # of a steady trainer
OVER = {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"}

Line = collections.namedtuple("Line", "time epoch step index checksum ordinals")
Start = collections.namedtuple("Start", "job restart first ranks lines")  # of a job of train.py


def prepare_environment(programs, work):
    """For all that is started, here and by Slurm: programs, package, libraries."""
    sys.path.insert(0, str(ROOT / "client" / "examples"))
    import built
    built.use(programs)
    tools = work / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to("/usr/bin/python3")  # another may be the first in PATH
    for program in ("sbatch", "srun"):  # root's calls are those of the user; a job's are that already
        (tools / program).write_text(f"""#!/bin/sh
[ "$(id -u)" = 0 ] || exec {shutil.which(program)} "$@"
exec setpriv --reuid={UID} --regid={UID} --clear-groups {shutil.which(program)} "$@"
""")
        (tools / program).chmod(0o755)
    os.environ["PATH"] = f"{tools}:{programs}:{os.environ['PATH']}"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def make_dataset(folder):
    """13,100 short sequences: as many as LJ Speech has."""
    import numpy
    import batchwright
    draw = numpy.random.default_rng(1)
    fields = {"features": batchwright.FieldSpec("float32", shape=(8,)),
              "label": batchwright.FieldSpec("uint8", kind="scalar", categories=tuple("abcd"))}
    with batchwright.DatasetWriter(folder, fields) as writer:
        for number in range(SEQUENCES):
            label = int(draw.integers(4))
            frames = draw.normal(label, 2, (int(draw.integers(5, 60)), 8))
            writer.add(f"s{number:05}", features=frames.astype("float32"), label=label)
    return folder


class Job:
    """One that sbatch has taken, with a folder that all nodes see."""

    def __init__(self, folder, *words):
        self.folder = folder
        self.number = call("sbatch", "--parsable", f"--output={folder}/output",
                           f"--chdir={folder}", *words).strip()

    def field(self, name):
        shown = call("scontrol", "show", "job", self.number)
        return re.search(rf"\b{name}=(\S*)", shown)[1]

    def state(self):
        return self.field("JobState")

    def wait_for(self, *states):
        until(lambda: self.state() in states, f"job {self.number} to be {' or '.join(states)}",
              also=self.describe)

    def end(self, expected="COMPLETED"):
        self.wait_for(*OVER)
        expect(self.state() == expected, f"{expected} was due: {self.describe()}")

    def describe(self):
        return f"job {self.number} is {self.state()}; it wrote: {self.output()[-2000:]}"

    def cancel(self, *words):
        call("scancel", *words, self.number)

    def cancel_step(self, step):
        call("scancel", f"{self.number}.{step}")

    def requeue(self):
        call("scontrol", "requeue", self.number)

    def output(self):
        file = self.folder / "output"
        return file.read_text() if file.exists() else ""


class Home:
    """Where jobs find their data, and their folders."""

    def __init__(self, cluster, programs):
        prepare_environment(programs, cluster.work)
        self.work, self.count = cluster.work, 0
        self.dataset = cluster.data / "train"
        made = make_dataset(self.work / "dataset")
        for node in cluster.nodes:
            shutil.copytree(made, node.home / "data" / "train")
        self.kept = {}  # what several cases compare with

    def folder(self, name):
        """A new one, with the shipped files, whose dataset is the one here."""
        self.count += 1
        made = self.work / "jobs" / f"{self.count}-{name}"
        shutil.copytree(SHIPPED, made)
        config = made / "train.toml"
        text, changed = re.subn(r'^dataset = ".*?"', f'dataset = "{self.dataset}"',
                                config.read_text(), flags=re.MULTILINE)
        expect(changed == 1, "train.toml names no dataset")
        config.write_text(text)
        (made / "log").mkdir()
        for place in (made, *made.rglob("*")):
            os.chown(place, UID, UID)
        return made

    def once(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]


def step_words(folder, *words, before=(), run_words=(), python="python3", config=None):
    """The call of srun that runs a steady trainer on each node; it may have the configuration of
    another folder."""
    return ["srun", "--ntasks-per-node=1", "--kill-on-bad-exit=1", *before, "batchwright", "run",
            "--config", (config or folder) / "train.toml", *run_words, "--", python,
            HERE / "steady.py", "--log", folder / "log", *words]


def as_script(folder, *calls):
    """A batch script of these calls, one after the other."""
    script = folder / "steady.sbatch"
    lines = [" ".join(map(str, words)) for words in calls]
    script.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    return script


def steady_job(folder, *words, nodes=4, options=(), **step):
    return Job(folder, f"--nodes={nodes}", *options,
               as_script(folder, step_words(folder, *words, **step)))


def lines_of(folder):
    """By rank, of the lines that are whole."""
    found = {}
    for file in sorted((folder / "log").iterdir()):
        whole = file.read_text().rpartition("\n")[0].splitlines()
        found[int(file.name)] = [
            Line(float(time), int(epoch), int(step), int(index), checksum, ordinals)
            for time, epoch, step, index, checksum, ordinals in map(str.split, whole)]
    return found


def batches_of(folder):
    """The same without times: what was trained on."""
    return {rank: [line[1:] for line in lines] for rank, lines in lines_of(folder).items()}


def until_batch(folder, count, ranks=4):
    """Waits until each rank had so many."""
    until(lambda: [len(lines) >= count for lines in lines_of(folder).values()] == [True] * ranks,
          f"{count} batches of {ranks} ranks")


def undisturbed(home):
    """What four steady ranks get in a run in which nothing happens."""
    def run():
        folder = home.folder("undisturbed")
        call(*step_words(folder, "--epochs", EPOCHS, before=["--nodes=4"]))
        return batches_of(folder)
    return home.once("undisturbed", run)


def expect_same(found, wanted, what):
    for rank in wanted:
        expect(found.get(rank) == wanted[rank],
               f"{what}: rank {rank} had {len(found.get(rank, ()))} batches, or others; "
               f"{len(wanted[rank])} were due")


# ---- the shipped job ------------------------------------------------------------------------

def training_job(folder, *words, nodes=4, retries=0, epochs=6, every=10, options=()):
    """systemd/deploy/slurm/train.sbatch, with a log. Raises Skipped without torch."""
    if importlib.util.find_spec("torch") is None:
        raise Skipped("no torch here (tests/install-packages torch)")
    return Job(folder, f"--nodes={nodes}", f"--export=ALL,RETRIES={retries}", *options,
               folder / "train.sbatch", "--epochs", epochs, "--every", every, "--log", "log",
               *words)


def starts_of(folder):
    """Each start of the job, in their order, with the lines of all ranks: (step, epoch, ordinals)."""
    files = collections.defaultdict(list)
    for file in (folder / "log").iterdir():
        job, restart, _ = map(int, file.name.split("."))
        whole = file.read_text().rpartition("\n")[0].splitlines()
        if whole:
            files[job, restart].append(whole)
    starts = []
    for (job, restart), ranks in sorted(files.items()):
        lines = [tuple(map(int, words[:2])) + (tuple(map(int, words[2:])),)
                 for rank in ranks for words in map(str.split, rank[1:])]
        starts.append(Start(job, restart, int(ranks[0][0]), len(ranks), lines))
    return starts


def last_step(folder):
    """The step that the latest start has come to; None where none has begun."""
    starts = starts_of(folder)
    return max((line[0] for line in starts[-1].lines), default=None) if starts else None


def until_step(job, step):
    """Waits until the job has come to it, and has a state to go on from."""
    state = job.folder / "run" / "state.pt"
    until(lambda: state.exists() and (last_step(job.folder) or 0) >= step, f"step {step}",
          also=job.describe)


def check_each_once(folder, epochs=6):
    """Steps after the one from which the job was started again are no part of its training.
    Returns the number of starts and of sequences that were trained on."""
    starts = starts_of(folder)
    trained = collections.Counter()
    for start, following in zip(starts, starts[1:] + [None]):
        trained.update((epoch, ordinal) for step, epoch, ordinals in start.lines
                       if following is None or step < following.first for ordinal in ordinals)
    for epoch in range(epochs):
        for ordinal in range(SEQUENCES):
            if trained[epoch, ordinal] != 1:
                raise Failed(f"sequence {ordinal} of epoch {epoch} came {trained[epoch, ordinal]} "
                             f"times; starts: {[(each.first, each.ranks) for each in starts]}")
    expect(len(trained) == epochs * SEQUENCES, "sequences of another epoch")
    return starts


def weights_of(folder):
    """Every bit of the finished model."""
    import torch
    expect((folder / "run" / "finished").exists(), "the training did not finish")
    state = torch.load(folder / "run" / "state.pt")
    return {name: tensor.numpy().tobytes() for name, tensor in state["model"].items()}


