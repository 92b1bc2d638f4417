"""The position of a BatchDataset, and its form in a checkpoint."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from .errors import InvalidArgumentError

STATE_VERSION = 1


class Place(NamedTuple):
    """The place to resume from."""

    plan: Any  # the epoch's fingerprint, as text or as the C library has it; None: whatever it is
    epoch: int
    step: int
    done: int = 0  # batches of this step that are done already
    ended: bool = False  # the epoch's end was passed: the next one is due
    terms: str = ""  # what the plan's settings are, in words; empty: not known
    ranks: int = 0  # that shared the step, in a place that was loaded

    @property
    def due_epoch(self) -> int:
        return self.epoch + 1 if self.ended else self.epoch


def place_of(state: Dict[str, Any], feed: str) -> Place:
    """Reads a place from a checkpoint. Errors: InvalidArgumentError."""
    try:
        version, of = state["version"], state["feed"]
        place = Place(str(state["fingerprint"]), int(state["epoch"]), int(state["step"]),
                       int(state["done"]), bool(state["ended"]), str(state.get("terms", "")),
                      int(state["ranks"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"this is not the state of a BatchDataset: {error!r}") from None
    if version != STATE_VERSION:
        raise InvalidArgumentError(
            f"the state is of version {version}; this package reads {STATE_VERSION}")
    if of != feed:
        raise InvalidArgumentError(f'the state is of feed "{of}", and this one is "{feed}"')
    return place
