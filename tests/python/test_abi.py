"""The declarations in _abi.py are those of client.h; the library is found, or missed in words."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import batchwright
from batchwright import _abi, errors

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "client" / "python" / "batchwright"
NAMES = ("END", "EPOCH_END", "OK", "TIMED_OUT", "FLOAT32", "FLOAT16", "BFLOAT16", "INT64", "INT32",
         "INT16", "UINT8", "PRIMARY", "ALIGNED", "INDEPENDENT", "SCALAR", "BATCH_MAJOR",
         "TIME_MAJOR", "REPLICA", "SHARDED", "QUEUE", "AUTO", "MAX_DIMENSIONS",
         "FINGERPRINT_TEXT_BYTES", "MAX_UPCOMING", "ABI_VERSION")


def from_the_header(folder):
    """What a C compiler makes of it: sizes, offsets, and the values of names."""
    lines = []
    for name, struct in _abi.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in struct._fields_:
            member = f"{name}, {field}"
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({member}), '
                         f'sizeof((({name}*)0)->{field}));')
    lines += [f'printf("BW_{name} %d\\n", (int)BW_{name});' for name in NAMES]
    source = folder / "layout.c"
    source.write_text("#include <batchwright/client.h>\n#include <stdio.h>\nint main(void) {\n" +
                      "\n".join(lines) + "\nreturn 0;\n}\n")
    compiler = os.environ.get("BATCHWRIGHT_CC") or shutil.which("cc")
    subprocess.run([compiler, "-I", ROOT / "client" / "library", "-I", ROOT / "formats", source, "-o",
                    folder / "layout"], check=True)
    printed = subprocess.run([folder / "layout"], check=True, stdout=subprocess.PIPE, text=True)
    return [line.split(" ", 1) for line in printed.stdout.splitlines()]


def declared(name):
    if name.startswith("BW_"):
        return str(getattr(_abi, name[3:]))
    struct, _, field = name.partition(".")
    if not field:
        return str(ctypes.sizeof(_abi.STRUCTS[struct]))
    found = getattr(_abi.STRUCTS[struct], field)
    return f"{found.offset} {found.size}"


def test_structs_and_names_are_those_of_the_header(tmp_path):
    found = from_the_header(tmp_path)
    assert len(found) > 100
    assert {name: declared(name) for name, _ in found} == dict(found)


def test_every_function_of_the_header_that_is_declared_is_in_the_library():
    header = (ROOT / "client" / "library" / "batchwright" / "client.h").read_text()
    for name in _abi._FUNCTIONS:
        assert f"{name}(" in header
        assert getattr(_abi.library, name)


def test_every_status_has_a_class_that_says_its_name():
    name_of = _abi.library.bw_status_name
    name_of.restype = ctypes.c_char_p
    own_words = {14: "SystemRefusedError"}  # IOError is a word of Python's already
    for status in range(1, 20):
        words = name_of(status).decode().split("_")
        wanted = own_words.get(status, "".join(word.title() for word in words) + "Error")
        assert type(errors.error_of(status, "")).__name__ == wanted
    assert len(errors.BY_STATUS) == 19


def test_errors_are_also_what_python_calls_them():
    assert issubclass(batchwright.TimedOutError, TimeoutError)
    assert issubclass(batchwright.NotFoundError, KeyError)
    assert issubclass(batchwright.InvalidArgumentError, ValueError)
    assert issubclass(batchwright.DisconnectedError, ConnectionError)
    assert str(batchwright.NotFoundError("plain words")) == "plain words"
    assert str(batchwright.TimedOutError("plain words")) == "plain words"


def test_a_library_of_another_abi_version_is_refused():
    with pytest.raises(batchwright.LibraryError, match="ABI version 2, and this package needs 1"):
        _abi.check_version(2)


def failed_import(package_folder, library):
    """What the import says with BATCHWRIGHT_LIBRARY set so, or without it."""
    environment = {key: value for key, value in os.environ.items() if key != "BATCHWRIGHT_LIBRARY"}
    environment.update(library, PYTHONPATH=str(package_folder))
    found = subprocess.run([sys.executable, "-c", "import batchwright"], env=environment, text=True,
                           stderr=subprocess.PIPE, check=False)
    return found.returncode, found.stderr


def test_a_library_that_is_nowhere_is_missed_in_all_three_places():
    code, said = failed_import(PACKAGE.parent, {})
    assert code == 1
    assert "BATCHWRIGHT_LIBRARY is not set" in said
    assert f"beside the package: {PACKAGE}/libbatchwright.so.1" in said
    assert "on the loader's path: libbatchwright.so.1" in said


def test_a_wrong_variable_is_an_error_and_not_passed_over():
    code, said = failed_import(PACKAGE.parent, {"BATCHWRIGHT_LIBRARY": "/nowhere/lib.so"})
    assert code == 1
    assert "BATCHWRIGHT_LIBRARY names /nowhere/lib.so" in said


def test_a_library_beside_the_package_is_found(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "batchwright")
    shutil.copy(os.environ["BATCHWRIGHT_LIBRARY"], tmp_path / "batchwright" / _abi.SONAME)
    code, said = failed_import(tmp_path, {})
    assert (code, said) == (0, "")
