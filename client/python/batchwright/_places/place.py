"""Places of a BatchDataset, and their form in a checkpoint."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from .. import _abi
from ..batch import Batch
from ..errors import InvalidArgumentError
from ..values import fingerprint_text

STATE_VERSION = 1


class Place(NamedTuple):
    """The place to resume from."""

    plan: Any  # the epoch's fingerprint, as text or as the C library has it; None: whatever it is
    epoch: int
    step: int
    done: int = 0  # batches of this step that are done already
    ended: bool = False  # the epoch's end was passed: the next one is due
    terms: str = ""  # what the plan's settings are, in words; empty: not known
    ranks: int = 0  # that share the step; 0: not known

    @property
    def due_epoch(self) -> int:
        return self.epoch + 1 if self.ended else self.epoch

    @property
    def due_step(self) -> int:
        return 0 if self.ended else self.step

    def is_within_epoch(self) -> bool:
        """Whether batches of the epoch that is due lie before it."""
        return not self.ended and (self.step, self.done) != (0, 0)

    def after(self, batch: Batch, terms: str, ranks: int) -> Place:
        """The place after this batch, which is the next one from here."""
        if batch.rehearsal:
            return self._replace()  # an object of its own: a batch was taken here
        after = batch._after()
        same = (after.epoch, after.step) == (self.due_epoch, self.due_step)
        done = (0 if self.ended else self.done) + 1 if same else 0
        return Place(after.fingerprint, after.epoch, after.step, done, False, terms, ranks)


def state_of(place: Place, feed: str) -> Dict[str, Any]:
    """The place as a checkpoint has it: numbers and text."""
    plan = place.plan
    return {"version": STATE_VERSION, "feed": feed,
            "fingerprint": fingerprint_text(plan) if isinstance(plan, _abi.Fingerprint) else plan,
            "terms": place.terms, "epoch": place.epoch, "step": place.step, "done": place.done,
            "ended": place.ended, "ranks": place.ranks or 1}


def place_of(state: Dict[str, Any], feed: str) -> Place:
    """Reads a place from a checkpoint. Errors: InvalidArgumentError."""
    try:
        version, of, plan = state["version"], state["feed"], state.get("fingerprint")
        place = Place(str(plan) if plan else None, int(state["epoch"]), int(state["step"]),
                      int(state["done"]), bool(state["ended"]), str(state.get("terms", "")),
                      int(state["ranks"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"this is not the state of a BatchDataset: {error!r}") from None
    if version != STATE_VERSION:
        raise InvalidArgumentError(
            f"the state is of version {version}; this package reads {STATE_VERSION}")
    if of != feed:
        raise InvalidArgumentError(f'the state is of feed "{of}", and this one is "{feed}"')
    for name in ("epoch", "step", "done"):
        if getattr(place, name) < 0:
            raise InvalidArgumentError(f"the state's {name} is {getattr(place, name)}; it is 0 and up")
    if place.ended and place.done:
        raise InvalidArgumentError(f"the state is of an epoch's end, and its done is {place.done}; "
                                   "it is 0 there")
    return place
