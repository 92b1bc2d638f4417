"""A wheel of `make_wheel`, installed into a venv that has nothing else of the project."""

import platform
import socket

import pytest

import served
from installed_wheel import Installed

# Made by `client/python/make_wheel --into build/wheel`, which takes the time of a whole build.
WHEELS = sorted((served.ROOT / "build" / "wheel").glob(
    f"batchwright-*-manylinux_*_{platform.machine()}.whl"))
pytestmark = pytest.mark.skipif(
    not WHEELS, reason="no wheel in build/wheel: client/python/make_wheel --into build/wheel")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(WHEELS[-1], tmp_path_factory.mktemp("wheel"))


def test_serve_and_two_trainers_work_right_after_pip_install(installed):
    installed.serve_two_trainers()


def test_the_command_runs_a_job_with_the_daemon_of_the_wheel(installed):
    both = "for rank in 0 1; do '{0}/python' trains $rank & done; wait".format(installed.bin)
    installed.check_epoch(installed.run(installed.bin / "batchwright", "run", "--config",
                                        installed.config(), "--", "/bin/sh", "-c", both).stdout)


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
