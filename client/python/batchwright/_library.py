"""Locates and loads the C library.

Three places, in this order: the file that an environment variable names, the package's own folder,
and wherever the loader looks. A variable that names a wrong file is an error, not a reason to look
elsewhere: two versions on one machine must not be mixed up silently.
"""

from __future__ import annotations

import ctypes
import os
from typing import List

from .errors import LibraryError

FOLDER = os.path.dirname(os.path.abspath(__file__))


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
