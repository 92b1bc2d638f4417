"""Refusals of what torch's DataLoader must not do: make batches in other processes, or collate
them."""

from __future__ import annotations

from types import FrameType
from typing import Any, NoReturn

from .batch import Batch
from .errors import UnsupportedError
from .gpu import DeviceBatch

INSTEAD = ("write DataLoader(dataset, batch_size=None, num_workers=0), or iterate over the "
           "dataset itself: the daemon is the worker, and another process could only add a copy")


def _no_collation(*_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError(f"a batch is not collated, for it is one already: {INSTEAD}")


def refuse_collation() -> None:
    """`DataLoader(dataset)` has a batch_size of 1, and collates. torch's words for a type that it
    does not know do not say what to write."""
    from torch.utils.data._utils import collate
    known = getattr(collate, "default_collate_fn_map", {})  # since torch 1.13
    for each in (Batch, DeviceBatch):
        known.setdefault(each, _no_collation)


def refuse_fetcher(caller: FrameType) -> None:
    """Refuses one of torch's fetchers, whose frame this is, where it would put batches together: it
    would hold `batch_size` of them before it collates the first.

    Errors: UnsupportedError.
    """
    if caller.f_globals.get("__name__") != "torch.utils.data._utils.fetch":
        return  # another frame's locals are left alone: a look at them keeps them alive
    fetcher = caller.f_locals.get("self")
    collate = getattr(fetcher, "collate_fn", None)
    if getattr(fetcher, "auto_collation", False) and (
            getattr(collate, "__module__", "") == "torch.utils.data._utils.collate"):
        _no_collation()
