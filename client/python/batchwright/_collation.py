"""Refusals of what torch's DataLoader must not do: make batches in other processes, or collate
them."""

from __future__ import annotations

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
