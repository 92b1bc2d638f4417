"""What examples that start daemons need of a build: its package, and its libraries."""

from __future__ import annotations

import os
import pathlib
import sys

_LIBRARIES = (("BATCHWRIGHT_LIBRARY", "libbatchwright.so.1"),
              ("BATCHWRIGHT_STORAGE_LIBRARY", "libbatchwright-storage.so.1"))


def use(programs: pathlib.Path) -> None:
    """Has this process and those that it starts find the package, and the libraries that lie beside
    the folder of the programs; others that the environment names stay."""
    package = str(pathlib.Path(__file__).resolve().parent.parent / "python")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [package, os.environ.get("PYTHONPATH")]))
    for variable, name in _LIBRARIES:
        library = programs.parent / "lib" / name
        if library.exists():
            os.environ.setdefault(variable, str(library.resolve()))
