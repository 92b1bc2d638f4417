"""The batches of a subscription that are out, and the views of each that are alive.

A loop that keeps one small thing a batch stops after `window` of them, for each keeps its slot. The
warning then names what holds them.
"""

from __future__ import annotations

import weakref
from typing import Any, List

from .slot import holders

_SHOWN = 8  # batches that a text names


class Credits:
    """The slots that a subscription handed out. One thread at a time notes; any may look."""

    __slots__ = ("_window", "_slots")

    def __init__(self, window: int) -> None:
        self._window = window
        self._slots: List[Any] = []

    def note(self, slot: Any) -> None:
        if len(self._slots) >= 2 * self._window:
            self._slots = [each for each in self._slots if each() is not None]
        self._slots.append(weakref.ref(slot))

    def _alive(self) -> List[Any]:
        return [slot for slot in (each() for each in tuple(self._slots)) if slot is not None]

    def all_out(self) -> bool:
        return len(self._alive()) >= self._window

    def what_is_alive(self) -> str:
        """For each batch that is out, by its place: the names of what keeps it."""
        texts = []
        for slot in self._alive()[:_SHOWN]:
            header = slot.header
            kept = ", ".join(holders(slot)) or "something of it"
            texts.append(f"of batch {header.index} of epoch {header.epoch} {kept}")
        return "; ".join(texts)

    def advice(self) -> str:
        return (f"all {self._window} credits are out, and alive are: {self.what_is_alive()}. Release "
                "what is done with, and clone() or copy() what you keep: a view, a slice, or a loss "
                "whose graph holds one keeps the whole batch")
