"""Installing: the wheel with Debian's tools and no network, and the C library with CMake."""

import ast
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

import batchwright
import served

SOURCE = served.ROOT / "client" / "python"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Of the sources: a build leaves things beside them."""
    folder = tmp_path_factory.mktemp("source") / "python"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg*"))
    return folder


def pip(*words):
    ended = subprocess.run([*PIP, *words], check=False, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout


def imported_from(folder):
    """Where a Python that looks there finds the package, and which version it is."""
    program = "import batchwright; print(batchwright.__file__); print(batchwright.__version__)"
    printed = subprocess.run([sys.executable, "-c", program], check=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(folder)},
                             stdout=subprocess.PIPE, cwd=folder)
    return printed.stdout.split()


def test_a_wheel_is_built_without_a_network_and_works(copy, tmp_path):
    pip("wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", tmp_path / "wheels", copy)
    wheel, = (tmp_path / "wheels").iterdir()
    assert wheel.name == f"batchwright-{batchwright.__version__}-py3-none-any.whl"
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {f"batchwright/{each.name}" for each in (SOURCE / "batchwright").iterdir()
               if each.suffix == ".py" or each.name == "py.typed"}
    assert sources <= inside
    pip("install", "--no-index", "--no-deps", "--target", tmp_path / "target", wheel)
    place, version = imported_from(tmp_path / "target")
    assert place.startswith(str(tmp_path / "target"))
    assert version == batchwright.__version__
    assert "## Several hosts" in guide_from(tmp_path / "target")  # which lies beside it no more


def guide_from(folder):
    """What `python3 -m batchwright` prints, as `help(batchwright)` says."""
    assert "python3 -m batchwright" in batchwright.__doc__
    return subprocess.run([sys.executable, "-m", "batchwright"], check=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(folder)}, stdout=subprocess.PIPE,
                          cwd=folder).stdout


def test_the_guide_is_printed_in_the_source_tree():
    printed = guide_from(SOURCE)
    assert (SOURCE / "README.md").read_text() in printed
    assert os.environ["BATCHWRIGHT_LIBRARY"] in printed


def test_a_misspelt_name_is_seen_by_type_checkers():
    """A module's __getattr__ would be an answer to any name; only the running program has it."""
    tree = ast.parse((SOURCE / "batchwright" / "__init__.py").read_text())
    assert not [each for each in tree.body if getattr(each, "name", "") == "__getattr__"]
    assert batchwright.FieldSpec("float32").shape == ()
    with pytest.raises(AttributeError, match="conect"):
        batchwright.conect


def test_the_source_tree_is_installed_without_a_network(copy, tmp_path):
    pip("install", "--no-build-isolation", "--no-index", "--no-deps", "--target",
        tmp_path / "target", copy)
    assert imported_from(tmp_path / "target")[0].startswith(str(tmp_path / "target"))


def test_package_library_and_project_have_one_version():
    text = (SOURCE / "pyproject.toml").read_text()
    assert f'version = "{batchwright.__version__}"' in text
    assert batchwright.library_version() == batchwright.__version__


def test_a_program_in_the_packages_folder_goes_before_the_one_in_path(tmp_path):
    shutil.copytree(SOURCE / "batchwright", tmp_path / "batchwright",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (tmp_path / "path", tmp_path / "batchwright" / "bin"):
        folder.mkdir()
        (folder / "batchwright").touch(0o755)
    asks = "from batchwright import _library; print(_library.program('batchwright'))"
    environment = {**os.environ, "PATH": str(tmp_path / "path")}

    def program():
        return subprocess.run([sys.executable, "-c", asks], check=True, text=True, env=environment,
                              stdout=subprocess.PIPE, cwd=tmp_path).stdout.strip()

    assert program() == str(tmp_path / "batchwright" / "bin" / "batchwright")
    shutil.rmtree(tmp_path / "batchwright" / "bin")
    assert program() == str(tmp_path / "path" / "batchwright")
    (tmp_path / "path" / "batchwright").unlink()
    assert program() == "None"


def test_the_installed_c_library_is_found_by_pkg_config(tmp_path):
    root = tmp_path / "root"
    for component in ("client", "dev"):
        subprocess.run(["cmake", "--install", os.environ["BATCHWRIGHT_BUILD"], "--component",
                        component, "--prefix", root], check=True, stdout=subprocess.DEVNULL)
    found, = root.glob("**/batchwright.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found.parent)}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "batchwright"],
        check=True, env=environment, text=True, stdout=subprocess.PIPE).stdout.split()
    compiler = os.environ.get("BATCHWRIGHT_CC") or "cc"
    minimal = served.ROOT / "client" / "examples" / "minimal.c"
    subprocess.run([compiler, minimal, "-o", tmp_path / "minimal", *flags], check=True)
    library, = root.glob("**/libbatchwright.so.1")
    named = subprocess.run(["readelf", "-d", tmp_path / "minimal"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    assert "[libbatchwright.so.1]" in named
    place, _ = imported_with_loader(library.parent)
    assert place == str(library)


def imported_with_loader(folder):
    """Which library the package takes from the loader's path."""
    environment = {key: value for key, value in served.environment().items()
                   if key != "BATCHWRIGHT_LIBRARY"}
    program = ("import batchwright, os; print(next(line.split()[-1] for line in "
               "open('/proc/self/maps') if 'libbatchwright.so' in line)); print(1)")
    printed = subprocess.run([sys.executable, "-c", program], check=True, text=True,
                             env={**environment, "LD_LIBRARY_PATH": str(folder)},
                             stdout=subprocess.PIPE).stdout.split()
    return os.path.join(os.path.dirname(printed[0]), "libbatchwright.so.1"), printed[1]
