"""Without torch, without NumPy: what works, and what is said."""

import os
import subprocess
import sys

import pytest

import served


def run(program, missing=None):
    """A Python in which `missing` is not installed."""
    blocked = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
    return subprocess.run([sys.executable, "-c", blocked + program], env=served.environment(),
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("missing", [None, "torch"])
def test_numpy_alone_reads_batches_and_does_not_import_torch(daemon, missing):
    ended = run(f"""
import batchwright
for batch in batchwright.connect({daemon.endpoint!r}).feed("train").epoch(0):
    assert batch["features"].sum() > 0 and batch.mask.any()
    assert batch.tensor("features").numpy().shape == batch["features"].shape
batch.release()
assert "torch" not in sys.modules
""", missing)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("use", ["batch.torch('features')", "batch.tensor('features').torch()",
                                 "batch.to('cpu')", "import batchwright.torch"])
def test_without_torch_what_needs_it_says_what_to_install(daemon, use):
    ended = run(f"""
import batchwright
batch = batchwright.connect({daemon.endpoint!r}).feed("train").subscribe().next()
{use}
""", "torch")
    assert ended.returncode == 1
    assert "torch is not installed" in ended.stderr.splitlines()[-1]
    assert "install python3-torch (Debian)" in ended.stderr.splitlines()[-1]


def test_without_numpy_the_import_says_what_to_install():
    ended = run("import batchwright", "numpy")
    assert ended.returncode == 1
    assert "install python3-numpy (Debian)" in ended.stderr.splitlines()[-1]


def test_the_sources_are_of_python_3_9():
    import ast
    for folder, _, files in os.walk(served.ROOT / "client" / "python" / "batchwright"):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(folder, name)) as file:
                    ast.parse(file.read(), name, feature_version=(3, 9))
