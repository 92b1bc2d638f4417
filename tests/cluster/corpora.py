"""The case of a corpus that an array of tasks ingests."""
import json
import wave

from cluster import call, expect, said, until
from jobs import Job

FILES = 2_000
TASKS = 4
KILLED = 2


def write_sounds(folder):
    """Short noise in as many files: each task has some work."""
    import numpy
    draw = numpy.random.default_rng(1)
    for number in range(FILES):
        path = folder / f"{number % 7}" / f"{number:05}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            samples = draw.normal(0, 3_000, int(draw.integers(4_000, 32_000)))
            file.writeframes(samples.astype("int16").tobytes())
    return folder


def until_over(job):
    """Waits for all tasks of an array."""
    until(lambda: job.number not in said("squeue", "--noheader", "--format=%A %F", f"--jobs={job.number}"),
          f"array {job.number} to end", also=job.output)


def submit(folder, tasks, sounds, parts):
    return Job(folder, f"--array={tasks}", f"--export=ALL,PARTS={TASKS}", "--cpus-per-task=1",
               folder / "ingest.sbatch", sounds, parts)


def ingest(cluster, home, options):
    """An array ingests a corpus; a task that was killed is named, and run again alone; gathered, the
    parts are what one ingest makes."""
    folder = home.folder("ingest")
    sounds, parts = write_sounds(folder / "sounds"), folder / "parts"
    job = submit(folder, f"0-{TASKS - 1}", sounds, parts)
    part = parts / f"part-{KILLED:05}-of-{TASKS:05}"
    until((part / "data.mdb").exists, "the task that is killed to begin", also=job.output)
    call("scancel", "--signal=KILL", "--full", f"{job.number}_{KILLED}")
    until_over(job)
    expect(not (part / "finished").exists(), "the task had ended before it was killed")
    refused = said("batchwright", "gather", parts)
    expect(f"not finished: {KILLED}." in refused, f"gather said: {refused}")
    until_over(submit(folder, KILLED, sounds, parts))
    gathered = json.loads(call("batchwright", "gather", parts, "--into", folder / "all", "--json"))
    call("batchwright", "ingest", "audio", sounds, "--into", folder / "one")
    one = json.loads(call("batchwright", "inspect", folder / "one", "--json"))
    expect(gathered["content"] == one["content"], "the parts together are another dataset")
    took = cluster.wait_until_clean()
    return f"{gathered['sequences']} files by {TASKS} tasks: equal content; clean after {took:.1f} s"


CASES = (ingest,)
