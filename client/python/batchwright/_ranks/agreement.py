"""Whether the ranks of a job read the same plan, told through the process group's store.

The store, and not a collective: a loop may begin in a thread that fetches ahead, beside collectives
of the main thread, and a group may have no backend for host memory.
"""

from __future__ import annotations

import collections
import json
import os
import socket
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .._waits import warn
from ..errors import (FingerprintMismatchError, InvalidArgumentError, TimedOutError,
                      UnsupportedError)
from .share import Share

CHECKS = (None, "ranks", "none")
_A_MOMENT = 5.0  # seconds that other ranks are waited for with the first batch, which may be a look
_LONGEST_PAUSE = 0.05  # seconds between two looks at the store
_PATIENCE = 5.0  # seconds that the first rank's verdict may take after its own limit
_MOST_CHANGES = 16
_PARTS = ("data", "settings", "seed")  # of a fingerprint's text, in its order


class Told(NamedTuple):
    """What a rank says of the plan that it reads."""

    rank: int
    ranks: int
    fingerprint: str
    terms: str  # of the fingerprint, `key = value` a line
    sequences: int
    epoch: int  # where it begins
    step: int
    host: str = os.environ.get("SLURMD_NODENAME") or socket.gethostname()


class _Verdict(NamedTuple):
    """What the first rank found; each part is empty where there is nothing to say."""

    plan: str = ""  # other data, settings or seeds
    place: str = ""  # another start, or another share
    missing: str = ""  # ranks that have not come


def _group() -> Any:
    """torch.distributed, where it is initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def is_checked(check: Optional[str], share: Share, whole: bool) -> bool:
    """Whether the ranks are to be compared: where it was asked for, or by default where this share
    is one of the process group's, several in number. Errors: InvalidArgumentError: it was asked
    for, and there is no group, or another share."""
    if check == "none":
        return False
    group = _group()
    fits = group is not None and not whole and group.get_world_size() == share[1]
    if check == "ranks" and not fits:
        raise InvalidArgumentError(
            'check="ranks" takes an initialised torch.distributed, whose ranks share the batches; ' + (
                "it is not initialised" if group is None else
                f"this is rank {share[0]} of {share[1]}, and the group has {group.get_world_size()}"))
    return fits and share[1] > 1


# ---- what differs -------------------------------------------------------------------------------


def _settings(terms: str) -> Dict[str, str]:
    lines = (line.partition(" = ") for line in terms.splitlines())
    return {key: value for key, _, value in lines}


def _changes(there: Told, here: Told) -> str:
    """The differences of two plans, with both values."""
    parts = [name for name, a, b in zip(_PARTS, there.fingerprint.split("-"),
                                        here.fingerprint.split("-")) if a != b]
    words = []
    if "data" in parts:
        words.append(f"data differ ({here.sequences} sequences, {there.sequences} there)")
    theirs, ours = _settings(there.terms), _settings(here.terms)
    differing = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    words += [f"{key} is {ours.get(key, 'not set')}, {theirs.get(key, 'not set')} there"
              for key in differing[:_MOST_CHANGES]]
    if len(differing) > _MOST_CHANGES:
        words.append(f"and {len(differing) - _MOST_CHANGES} more settings")
    if not differing:  # a daemon that does not spell them out
        words += [f"{part} differs" for part in parts if part != "data"]
    return "; ".join(words)


def _most(told: List[Told], what: Any) -> Tuple[Told, List[Told]]:
    """The first rank of the value that most have, and the ranks that have another."""
    value = collections.Counter(map(what, told)).most_common(1)[0][0]
    return (next(each for each in told if what(each) == value),
            [each for each in told if what(each) != value])


def _judge(told: List[Told]) -> _Verdict:
    first, others = _most(told, lambda each: each.fingerprint)
    plan = [f"rank {each.rank} on {each.host}: {_changes(first, each)}" for each in others]
    if plan:
        plan.append(f"there is rank {first.rank} on {first.host} and "
                    f"{len(told) - len(others) - 1} more of {len(told)}")
    first, others = _most(told, lambda each: (each.epoch, each.step))
    place = [f"rank {each.rank} on {each.host} begins with epoch {each.epoch}, step {each.step}; "
             f"rank {first.rank} with epoch {first.epoch}, step {first.step}" for each in others]
    seen: Dict[int, Told] = {}
    for each in told:
        other = seen.setdefault(each.rank, each)
        if other is not each:
            place.append(f"two processes, on {other.host} and {each.host}, are rank {each.rank}")
    return _Verdict("; ".join(plan), "; ".join(place))


# ---- the store ----------------------------------------------------------------------------------


class _Store:
    """The store of the process group. Counters tell what is there: a wait for a key would keep
    other threads from the store."""

    _last: Any = None  # the store that was used last
    _rounds: Dict[str, int] = {}  # comparisons in it, by what they are of

    def __init__(self, store: Any, of: str) -> None:
        # Every process of the group counts alike, and from 0 in a group that is made anew.
        if _Store._last is not store:
            _Store._last, _Store._rounds = store, {}
        number = _Store._rounds[of] = _Store._rounds.get(of, 0) + 1
        self._store = store
        self._prefix = f"batchwright/{number}/{of}/"

    def put(self, key: str, value: Any) -> None:
        self._store.set(self._prefix + key, json.dumps(value))
        self.mark(key)

    def get(self, key: str) -> Any:
        return json.loads(self._store.get(self._prefix + key))

    def mark(self, key: str) -> None:
        self._store.add(self._prefix + key + "/there", 1)

    def wait(self, keys: List[str], end: float) -> List[str]:
        """The keys without a mark when time.monotonic() is `end`."""
        pause, missing = 0.001, keys
        while True:
            missing = [key for key in missing
                       if not self._store.add(self._prefix + key + "/there", 0)]
            if not missing or time.monotonic() >= end:
                return missing
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _default_store() -> Any:
    """The process group's store; None where it has none, as with MPI."""
    import torch.distributed.distributed_c10d
    groups: Any = torch.distributed.distributed_c10d  # which has no annotations
    try:
        return groups._get_default_store()
    except (AttributeError, RuntimeError, ValueError):
        return None


def _collect(store: _Store, ranks: int, end: float, timeout: float) -> _Verdict:
    """What the first rank finds, and tells the others."""
    keys = [str(rank) for rank in range(ranks)]
    missing = store.wait(keys, end)
    told = [Told(*store.get(key)) for key in keys if key not in missing]
    verdict = _judge(told)
    if missing:
        shown = ", ".join(missing[:_MOST_CHANGES]) + (" ..." if len(missing) > _MOST_CHANGES else "")
        verdict = verdict._replace(
            missing=f"of {ranks} ranks these have not begun within {timeout:g} s: {shown}")
    store.put("verdict", verdict)
    if any(verdict):
        # This process is about to end, and may have the store: the others read first.
        store.wait([f"{key}/read" for key in keys[1:] if key not in missing],
                   time.monotonic() + _PATIENCE)
    return verdict


def _await_verdict(rounds: List[_Store], place: int, end: float) -> Optional[_Verdict]:
    """The verdict of the last round, or of an earlier one that found all well."""
    pause = 0.001
    while True:
        for each in rounds:
            if each.wait(["verdict"], 0.0):
                continue
            verdict = _Verdict(*each.get("verdict"))
            each.mark(f"{place}/read")
            if each is rounds[-1] or not any(verdict):
                return verdict
        if time.monotonic() >= end:
            return None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _report(verdict: _Verdict, feed: str, check: Optional[str]) -> None:
    head = f'the ranks do not agree on feed "{feed}": '
    if verdict.plan:
        raise FingerprintMismatchError(head + "; ".join(filter(None, (verdict.plan, verdict.place))))
    if verdict.place:
        raise InvalidArgumentError(head + verdict.place)
    if verdict.missing:
        what = f'feed "{feed}": {verdict.missing}'
        if check == "ranks":
            raise TimedOutError(what)
        warn(what + '. Where not all of them read it, say whole=True or check="none"')


class Comparison:
    """Has the ranks of the process group compare what they read: with the first batch of the first
    iteration, and where some had not come by then or began elsewhere, once more with the second
    batch; for one rank may look at a batch before the others begin. Ranks that do not agree are
    compared again at their next try.

    The first rank collects and judges, and every rank gets its verdict: one round trip, and as many
    as there are ranks for the first.
    """

    def __init__(self, feed: str, check: Optional[str], timeout: float) -> None:
        self._feed, self._check, self._timeout = feed, check, timeout
        self._is_done = False
        self._first: Optional[_Store] = None  # the round of the first batch, if it was not enough

    def is_due(self, share: Share, whole: bool, batches: int) -> bool:
        """Whether to call make() before the next batch of an iteration that has handed out so many.
        Errors: those of is_checked()."""
        if self._is_done or batches > 1 or (batches == 0 and self._first is not None):
            return False
        return is_checked(self._check, share, whole)

    def make(self, mine: Told, batches: int) -> None:
        """All ranks call it.

        Errors: FingerprintMismatchError: another plan; InvalidArgumentError: another start, or one
        share twice; each names rank, host and both values. TimedOutError: a rank has not come
        within `timeout` seconds, which is a RuntimeWarning where `check` is None. UnsupportedError:
        the group has no store, and `check` is "ranks".
        """
        raw = _default_store()
        if raw is None:
            if self._check == "ranks":
                raise UnsupportedError('check="ranks": this process group has no store')
            self._is_done = True
            return
        is_first = batches == 0
        limit = min(self._timeout, _A_MOMENT) if is_first and self._check is None else self._timeout
        store = _Store(raw, f"{self._feed}/{'first' if is_first else 'second'}")
        verdict = self._verdict(store, mine, limit)
        if is_first and not verdict.plan and (
                verdict.place or verdict.missing and limit < self._timeout):
            self._first = store
            return
        _report(verdict, self._feed, self._check)
        self._is_done = True

    def _verdict(self, store: _Store, mine: Told, limit: float) -> _Verdict:
        place, end = _group().get_rank(), time.monotonic() + limit
        store.put(str(place), mine)
        if place == 0:
            return _collect(store, mine.ranks, end, limit)
        # Where the first rank came late with its first batch, that round may have settled it.
        rounds = [store] if self._first is None else [self._first, store]
        return _await_verdict(rounds, place, end + _PATIENCE) or _Verdict(
            missing=f"rank 0 of {mine.ranks} has not begun within {limit:g} s")
