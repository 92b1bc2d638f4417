"""Which share of every global step is this process's."""

from __future__ import annotations

import os
import sys
from typing import Optional, Tuple

from .errors import InvalidArgumentError


def _from_environment() -> Optional[Tuple[int, int]]:
    """RANK and WORLD_SIZE, as torchrun and others set them."""
    rank, ranks = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and ranks is None:
        return None
    if rank is None or ranks is None:
        raise InvalidArgumentError(
            "of RANK and WORLD_SIZE only one is set: every process would take the same share")
    try:
        return int(rank), int(ranks)
    except ValueError:
        raise InvalidArgumentError(
            f"RANK is {rank!r} and WORLD_SIZE {ranks!r}; they are whole numbers") from None


def _from_torch() -> Optional[Tuple[int, int]]:
    """The default process group's. It is not initialised by who has not imported it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def resolve(rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int]:
    """Rank and ranks: as given, else RANK and WORLD_SIZE, else torch.distributed's, else 0 of 1.

    Errors: InvalidArgumentError for half of a pair, and for a rank that is not below ranks.
    """
    if (rank is None) != (ranks is None):
        raise InvalidArgumentError("rank and ranks are given together, or neither")
    if rank is not None and ranks is not None:
        found: Tuple[int, int] = (rank, ranks)
    else:
        found = _from_environment() or _from_torch() or (0, 1)
    if not 0 <= found[0] < found[1]:
        raise InvalidArgumentError(f"rank is {found[0]} of {found[1]}; it is 0 to {found[1] - 1}")
    return found
