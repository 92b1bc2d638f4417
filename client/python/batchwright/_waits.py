"""Waits in the C library that Ctrl-C can interrupt.

Python runs signal handlers between two of its own instructions, never within a call of C. So the
wait for a batch is cut into slices, and a call that cannot be cut runs in a thread that is waited
for in slices.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import sys
import threading
import time
import warnings
from typing import Any, Callable, List, Optional, TypeVar

from .errors import InvalidArgumentError, SystemRefusedError

SLICE_MS = 50
PATIENCE_SECONDS = 1.0  # of a wait, before a warning says what it is for
_SLICE_SECONDS = SLICE_MS / 1000
_LONGEST_MS = 1 << 40

Made = TypeVar("Made")


def milliseconds(seconds: float, what: str, least: int = 0) -> int:
    """A time limit in milliseconds, rounded up. Errors: InvalidArgumentError for what is no time
    limit."""
    if not isinstance(seconds, (int, float)) or not seconds >= 0 or math.isinf(seconds):
        raise InvalidArgumentError(f"{what} is {seconds!r}; it is a number of seconds, 0 and up")
    return min(max(math.ceil(seconds * 1000), least), _LONGEST_MS)


def warn(what: str) -> None:
    """Gives a RuntimeWarning at the line that called into this package, through torch's loader or
    not."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
            "batchwright", "torch"):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"batchwright: {what}", RuntimeWarning, stacklevel=level)


def interruptible(call: Callable[[], Made], turn: Optional[threading.Lock] = None,
                  late: Optional[Callable[[], None]] = None) -> Made:
    """Returns or raises as `call` does. When the wait for it is interrupted, its later result is
    dropped; with a `turn` the next call waits until that has happened. `late` is called once, by the
    thread that waits, when it has waited for PATIENCE_SECONDS. Outside of the main thread, the only
    one that is interrupted, there is no turn, and without `late` this is a plain call. Errors:
    SystemRefusedError: no thread can be started."""
    if threading.current_thread() is not threading.main_thread():
        if late is None:
            return call()
        turn = None
    running = threading.Lock()
    made: List[Made] = []
    failed: List[BaseException] = []
    given_up: List[bool] = []

    def run() -> None:
        try:
            with turn or contextlib.nullcontext():
                if given_up:
                    return
                made.append(call())
                if given_up:
                    made.clear()
        except BaseException as error:  # it is raised in the thread that waits
            failed.append(error)
        finally:
            running.release()

    running.acquire()
    try:
        _start(run)
        # One call of C, and not Thread's start() or join(): these are in Python, and a signal's
        # handler that raises in the midst of them has them fail by errors of their own.
        end = time.monotonic() + PATIENCE_SECONDS
        while not running.acquire(timeout=_SLICE_SECONDS):
            if late is not None and time.monotonic() > end:
                say, late = late, None
                say()
    except BaseException:
        given_up.append(True)  # first: what comes after this is dropped there
        made.clear()
        raise
    if failed:
        raise failed[0]
    return made[0]


def _start(run: Callable[[], None]) -> None:
    try:
        _thread.start_new_thread(run, ())
    except RuntimeError as error:
        raise SystemRefusedError(f"no thread can be started ({error}): connecting and subscribing "
                                 "take one, so that Ctrl-C is heard, and the library takes two a "
                                 "connection. ulimit -u, and the pids limit of a container, bound "
                                 "them") from None
