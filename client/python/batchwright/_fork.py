"""The generation of this process, counted in forks: cheaper to read than a process's number.

An object made before a fork is of an older generation, and raises an error when the child uses it.
"""

from __future__ import annotations

import os

from .errors import ForkedError

generation = 0


def _begin_child() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_begin_child)


def refuse(what: str) -> ForkedError:
    """The error for `what`, which a parent made."""
    return ForkedError(f"{what} was made before fork(); a forked child must open its own connection")
