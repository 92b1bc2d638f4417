"""The dataset of LJSpeech's lengths under build/bench (2.2 GB, kept), held in memory."""

import pathlib
import shutil
import subprocess
import sys

import served

DATASET = served.ROOT / "build" / "bench" / "ljspeech"
LENGTHS = served.ROOT / "tests" / "data" / "ljspeech_frames.tsv"


def make(programs):
    if DATASET.exists():
        return
    partial = DATASET.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([programs / "make_ljspeech", LENGTHS, partial], check=True)
    partial.rename(DATASET)


class Warm:
    """Holds the dataset in memory: an idle file's pages are given up sooner than one thinks."""

    def __enter__(self):
        self.process = subprocess.Popen(["vmtouch", "-q", "-l", DATASET / "data.mdb"])
        served.wait_for("the dataset in memory", self.resident, 300)
        return self

    def resident(self):
        if self.process.poll() is not None:
            sys.exit("bench: vmtouch could not lock the dataset: too little memory, or ulimit -l")
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        locked = next(line for line in status.splitlines() if line.startswith("VmLck"))
        return int(locked.split()[1]) * 1024 >= (DATASET / "data.mdb").stat().st_size

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
