"""Batches whose copy to a GPU is under way: their slots go back when the copy's event has come.

Nothing waits for an event. Events are looked at when the trainer asks for the next batch, copies
the next one, or releases one. Events of one stream come in their order, those of several nearly so:
looking stops at the first that has not come.
"""

from __future__ import annotations

import collections
from typing import Any, Deque, Tuple

from .. import _fork

# Event and slot. Appending and removing are atomic, so that any thread may do both.
pending: Deque[Tuple[Any, Any]] = collections.deque()
_generation = _fork.generation


def add(event: Any, slot: Any) -> None:
    """Keeps `slot` until `event` has come: an object with `query` and `synchronize`."""
    pending.append((event, slot))


def reap() -> None:
    """Lets go of the slots whose copies are done."""
    if _generation != _fork.generation:
        pending.clear()  # the parent's: a child must not ask its driver
        return
    while pending:
        try:
            first = pending[0]
            if not first[0].query():
                return
            pending.remove(first)  # in the deque until here: Ctrl-C must not let go of it sooner
        except (IndexError, ValueError):  # another thread was faster
            return


def drain() -> None:
    """Waits for all copies that are under way."""
    if _generation == _fork.generation:
        for event, _ in tuple(pending):
            event.synchronize()
    reap()
