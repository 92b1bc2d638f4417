"""client/demo without what takes minutes: how far its build is, and why it failed. The whole of it is
a test of tests/integration."""

import os
import shutil
import subprocess

import pytest

import served

CMAKE = """#!/bin/sh
[ "$1" = --build ] || exit 0
echo "ninja: Entering directory"
for now in 1 2 3 4; do echo "[$now/4] Building CXX object file-$now.o"; done
{end}
"""


@pytest.fixture
def demo(tmp_path):
    """Runs a copy of the demo in a tree where nothing is installed, and cmake is this one."""
    for folder in ("client", "tests", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(served.ROOT / "client" / "demo", tmp_path / "client")

    def run(end):
        for path, text in ((tmp_path / "tests" / "install-packages", "#!/bin/sh\n"),
                           (tmp_path / "bin" / "cmake", CMAKE.format(end=end))):
            path.write_text(text)
            path.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                       "SOUNDS": str(tmp_path / "none")}
        return subprocess.run([tmp_path / "client" / "demo"], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    return run


def test_the_demo_says_how_far_its_build_is(demo):
    ended = demo("")
    assert "1 of 4 files" in ended.stdout
    assert ended.stderr == f"demo: no folder {ended.args[0].parent.parent / 'none'}\n"


@pytest.mark.parametrize("now, seconds, said", [
    (0, 0, "0 of 300 files"), (2, 4, "2 of 300 files"),
    (100, 90, "100 of 300 files, about 3:00 min left"),
    (299, 1020, "299 of 300 files, about 0:03 min left"),
    (0, 60, "0 of 300 files, about 300:00 min left")])
def test_the_demo_says_how_long_the_rest_takes(now, seconds, said):
    text = (served.ROOT / "client" / "demo").read_text()
    function = text[text.index("how_far() {"):]
    function = function[:function.index("\n}\n") + 3]
    printed = subprocess.run(["bash", "-euc", f"{function}\nhow_far {now} 300 {seconds}"], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
    assert printed == said


def test_a_build_that_fails_shows_why(demo):
    ended = demo("echo file-4.cpp: no such thing >&2; exit 1")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1].rstrip().endswith("failed")
    assert "file-4.cpp: no such thing" in ended.stderr
    assert "[4/4] Building" in ended.stderr
