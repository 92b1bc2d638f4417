"""A wheel of `make_wheel` in a venv of its own, and what is done with it.
As a program: installed_wheel.py WHEEL, from `pip install` to two trainers, within MOST_SECONDS."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MOST_SECONDS = 90
WRITES = """
import sys, batchwright, numpy
with batchwright.DatasetWriter(sys.argv[1], {"x": batchwright.FieldSpec("int32")}) as writer:
    for i in range(40):
        writer.add(f"s{i}", x=numpy.arange(1 + i % 7, dtype=numpy.int32))
"""
TRAINS = """
import json, sys, batchwright
from batchwright import _abi
rank = int(sys.argv[1])
keys, steps = [], 0
with batchwright.connect() as connection:
    with connection.feed("train").subscribe(rank=rank, ranks=2) as subscription:
        for batch in subscription.epoch():
            keys += list(batch.keys)
            steps += 1
print(json.dumps([keys, steps, _abi.library._name]))
"""
SERVES = """
import os, subprocess, sys, batchwright
with batchwright.serve(sys.argv[1], order="random", cut="fixed", size=4, world=2) as endpoint:
    environment = {**os.environ, "BATCHWRIGHT_ENDPOINT": endpoint}
    trainers = [subprocess.Popen([sys.executable, sys.argv[2], str(rank)], env=environment)
                for rank in range(2)]
    sys.exit(any([trainer.wait() for trainer in trainers]))
"""
CONFIG = """
[[feed]]
name = "train"
dataset = "{dataset}"
[feed.plan]
order = "random"
cut = "fixed"
size = 4
world = 2
{more}
"""


class Installed:
    """The venv, a dataset that was written in it, and files of the programs above."""

    def __init__(self, wheel, folder):
        self.folder, self.bin = folder, folder / "venv" / "bin"
        # NumPy is the system's, as there is no network.
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder / "venv"],
                       check=True)
        self.run(self.bin / "pip", "install", "--quiet", "--no-index", wheel)
        for name, text in (("writes", WRITES), ("trains", TRAINS), ("serves", SERVES)):
            (folder / name).write_text(text)
        self.run(self.bin / "python", folder / "writes", folder / "data")

    def run(self, *words, check=True):
        """With an environment that names nothing of the project."""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("BATCHWRIGHT_", "PYTHON", "LD_"))}
        environment.update(PATH="/usr/bin:/bin", HOME=str(self.folder))
        ended = subprocess.run([str(word) for word in words], check=False, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
        assert not check or ended.returncode == 0, ended.stdout
        return ended

    def config(self, more=""):
        path = self.folder / "batchwrightd.toml"
        path.write_text(CONFIG.format(dataset=self.folder / "data", more=more))
        return path

    def serve_two_trainers(self):
        self.check_epoch(self.run(self.bin / "python", self.folder / "serves", self.folder / "data",
                                  self.folder / "trains").stdout)

    def check_epoch(self, printed):
        ranks = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
        assert sorted(key for keys, _, _ in ranks for key in keys) == sorted(
            f"s{i}" for i in range(40))
        assert [steps for _, steps, _ in ranks] == [5, 5]
        for _, _, library in ranks:
            assert library.startswith(str(self.folder / "venv"))


def main():
    wheel = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="bw-") as folder:
        began = time.monotonic()
        Installed(wheel, pathlib.Path(folder)).serve_two_trainers()
        seconds = time.monotonic() - began
    print(f"from pip install to two trainers: {seconds:.1f} s; allowed: {MOST_SECONDS}")
    return 0 if seconds <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
