"""`python3 -m batchwright` prints the guide, and where the C library was found."""

from __future__ import annotations

import pathlib
import sys
from importlib import metadata
from typing import Any


def guide() -> str:
    """The text of the source tree's README.md, or of its copy in pip's metadata. Errors:
    LookupError."""
    beside = pathlib.Path(__file__).resolve().parents[1] / "README.md"
    if (beside.parent / "pyproject.toml").is_file() and beside.is_file():
        return beside.read_text(encoding="utf-8")
    try:
        found: Any = metadata.metadata("batchwright")  # a message of email's
    except metadata.PackageNotFoundError:
        raise LookupError("this copy of the package has no guide beside it: it is "
                          "client/python/README.md of the source") from None
    return str(found.get("Description") or found.get_payload())


def main() -> int:
    from . import __version__, _abi, library_version
    print(f"batchwright {__version__} with {_abi.library._name}, {library_version()}\n")
    try:
        print(guide())
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
