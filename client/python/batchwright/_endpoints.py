"""How a daemon and this program are called, as the library takes it."""

from __future__ import annotations

import os
import sys
from typing import Optional

from .errors import InvalidArgumentError

_IPC = "ipc://"
_LONGEST_PATH = 100  # bytes of a socket's path, beside which the arena's socket lies


def encoded(what: str, value: Optional[str]) -> Optional[bytes]:
    """Text for the library; names of files may hold bytes that are no UTF-8. Errors:
    InvalidArgumentError."""
    if value is None:
        return None
    try:
        text = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{what} is {ascii(value)}: {error.reason}") from None
    if b"\0" in text:
        raise InvalidArgumentError(f"{what} is {value!r}; a zero byte ends it")
    return text


def program_name() -> Optional[bytes]:
    """How the daemon's logs call us: the script, not the interpreter. None: by the interpreter."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    if name in ("", "-c", "-m"):
        return None
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "replace")


def absolute(endpoint: str) -> str:
    """The endpoint by an absolute path, as the library has it: the program may change its folder
    before it connects to the same daemon again."""
    path = endpoint[len(_IPC):]
    if not endpoint.startswith(_IPC) or path[:1] in ("", "/", "@"):
        return endpoint
    try:
        whole = os.path.join(os.getcwd(), path)
    except FileNotFoundError:
        return endpoint  # the folder is gone
    fits = os.path.isdir(os.path.dirname(whole)) and len(os.fsencode(whole)) <= _LONGEST_PATH
    return _IPC + whole if fits else endpoint
