"""A wheel of `make_wheel`, installed into a venv that has nothing else of the project."""

import json
import os
import socket
import subprocess

import pytest

import served

# Made by `client/python/make_wheel --into build/wheel`, which takes the time of a whole build.
WHEELS = sorted((served.ROOT / "build" / "wheel").glob("batchwright-*-manylinux_*.whl"))
pytestmark = pytest.mark.skipif(
    not WHEELS, reason="no wheel in build/wheel: client/python/make_wheel --into build/wheel")

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

    def __init__(self, folder):
        self.folder, self.bin = folder, folder / "venv" / "bin"
        # NumPy is the system's, as there is no network.
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder / "venv"],
                       check=True)
        self.run(self.bin / "pip", "install", "--quiet", "--no-index", WHEELS[-1])
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


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("wheel"))


def check_epoch(printed, installed):
    ranks = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    assert sorted(key for keys, _, _ in ranks for key in keys) == sorted(f"s{i}" for i in range(40))
    assert [steps for _, steps, _ in ranks] == [5, 5]
    for _, _, library in ranks:
        assert library.startswith(str(installed.folder / "venv"))


def test_serve_and_two_trainers_work_right_after_pip_install(installed):
    check_epoch(installed.run(installed.bin / "python", installed.folder / "serves",
                              installed.folder / "data", installed.folder / "trains").stdout, installed)


def test_the_command_runs_a_job_with_the_daemon_of_the_wheel(installed):
    both = "for rank in 0 1; do '{0}/python' trains $rank & done; wait".format(installed.bin)
    check_epoch(installed.run(installed.bin / "batchwright", "run", "--config", installed.config(),
                              "--", "/bin/sh", "-c", both).stdout, installed)


@pytest.mark.parametrize("program", ["batchwright", "batchwrightd"])
def test_programs_have_the_version_of_the_package(installed, program):
    import batchwright
    assert batchwright.__version__ in installed.run(installed.bin / program, "--version").stdout


@pytest.mark.parametrize("line, said", [
    ('socket_group = "no-such-group"', 'there is no group "no-such-group"'),
    ('allow_uids = ["no-such-user"]', 'there is no user "no-such-user"'),
])
def test_a_name_that_etc_lacks_is_an_error(installed, line, said):
    """glibc's other sources of names would be loaded, which a static program does not survive."""
    ended = installed.run(installed.bin / "batchwrightd", "--check-config", "--config",
                          installed.config(f"[daemon]\n{line}\n"), check=False)
    assert said in ended.stdout
    assert ended.returncode == 2


def test_a_host_is_looked_up(installed):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoints = [f"ipc://{installed.folder}/bw.sock", f"tcp://127.0.0.1:{port}"]
    config = installed.config(f"[daemon]\nendpoints = {endpoints}\ninsecure = true\n")
    command = installed.bin / "batchwright"
    installed.run(command, "run", "--config", config, "--", command, "check", f"localhost:{port}")


def test_its_files_are_read_by_the_command(installed):
    printed = installed.run(installed.bin / "batchwright", "verify", installed.folder / "data").stdout
    assert "40 sequences" in printed
