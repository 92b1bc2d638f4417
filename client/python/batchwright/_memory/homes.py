"""The page-locks that a connection keeps between two batches."""

from __future__ import annotations

import collections
from typing import Any, Dict


class Homes:
    """For each feed the memory of its latest batches, one arena for each server. An arena that is
    no longer served, as after a daemon's restart, makes room for its successor, and is unlocked
    when the last batch in it is gone."""

    __slots__ = ("_servers", "_locks")

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self._locks: Dict[str, Any] = {}

    def keep(self, feed: str, lock: Any) -> None:
        locks = self._locks.setdefault(feed, collections.OrderedDict())
        locks[id(lock)] = lock
        locks.move_to_end(id(lock))
        while len(locks) > self._servers:
            locks.popitem(last=False)

    def clear(self) -> None:
        self._locks.clear()
