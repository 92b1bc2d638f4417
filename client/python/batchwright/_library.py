"""Locates and loads the C library, and locates the programs.

Three places, in this order: the file that an environment variable names, the package's own folder,
and wherever the loader looks. A variable that names a wrong file is an error, not a reason to look
elsewhere: two versions on one machine must not be mixed up silently. Programs have the last two
places: a wheel of `make_wheel` has both in the package's folder.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from typing import List, Optional

from .errors import LibraryError

FOLDER = os.path.dirname(os.path.abspath(__file__))


def program(name: str) -> Optional[str]:
    """The file of a program; None: there is none."""
    own = os.path.join(FOLDER, "bin", name)
    return own if os.access(own, os.X_OK) else shutil.which(name)


def _refused(path: str, error: OSError) -> str:
    return f"{path} ({error})"


def load(soname: str, variable: str) -> ctypes.CDLL:
    """Loads `soname`, or the file that the environment variable `variable` names.

    Errors: LibraryError, which names the three places and what was found there.
    """
    named = os.environ.get(variable)
    if named:
        try:
            return ctypes.CDLL(named)
        except OSError as error:
            raise LibraryError(f"{variable} names {_refused(named, error)}") from None
    tried: List[str] = [f"{variable} is not set"]
    beside = os.path.join(FOLDER, soname)
    for place, path in (("beside the package", beside), ("on the loader's path", soname)):
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{place}: {_refused(path, error)}")
    raise LibraryError(f"{soname} is not found: " + "; ".join(tried) +
                       f". Install the library, or set {variable} to the file.")
