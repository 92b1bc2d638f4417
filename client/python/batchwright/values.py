"""Small values that describe feeds, batches, positions and ends of epochs."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Tuple

from . import _abi

if TYPE_CHECKING:
    import numpy as np

KINDS = ("primary", "aligned", "independent", "scalar")
LAYOUTS = ("batch-major", "time-major")
DTYPES = {_abi.FLOAT32: "float32", _abi.FLOAT16: "float16", _abi.BFLOAT16: "bfloat16",
          _abi.INT64: "int64", _abi.INT32: "int32", _abi.INT16: "int16", _abi.UINT8: "uint8"}


def fingerprint_text(raw: _abi.Fingerprint) -> str:
    text = ctypes.create_string_buffer(_abi.FINGERPRINT_TEXT_BYTES)
    _abi.check(_abi.fingerprint_text(ctypes.byref(raw), text))
    return text.value.decode()


def fingerprint_of(text: str) -> _abi.Fingerprint:
    """Errors: InvalidArgumentError for text of another form."""
    raw = _abi.Fingerprint()
    _abi.check(_abi.fingerprint_parse(text.encode(), ctypes.byref(raw)))
    return raw


class Position(NamedTuple):
    """All that is needed to resume at exactly the same place. `step` counts global steps; it may
    equal the number of steps of the epoch, which is the epoch's end."""

    fingerprint: str  #: `data-settings-seed` in hexadecimal: of which plan
    epoch: int
    step: int

    @classmethod
    def of(cls, raw: _abi.Position) -> Position:
        return cls(fingerprint_text(raw.fingerprint), raw.epoch, raw.step)


@dataclasses.dataclass(frozen=True)
class UpcomingBatch:
    """A batch that is to come, as its plan has it: no data are read for it. A row whose record is
    corrupt may be missing later."""

    epoch: int
    step: int
    index: int
    rows: int
    length: int  #: of the longest row, in frames; a batch-major tensor is [rows, length, ...]
    frames: int  #: real ones, of all rows
    rehearsal: bool = False  #: of `worst_first`: it comes again at its place
    certain: bool = True  #: False: of a queue, and another worker may get it

    @classmethod
    def of(cls, raw: _abi.Upcoming) -> UpcomingBatch:
        return cls(raw.epoch, raw.step, raw.index, raw.rows, raw.length, raw.frames,
                   bool(raw.rehearsal), bool(raw.certain))

    @property
    def padded_frames(self) -> int:
        """What it costs, padding counted: rows * length."""
        return self.rows * self.length


class Figures:
    """What a batch says of itself without the memory that it lies in. `Batch` has the meanings."""

    lengths: np.ndarray[Any, Any]
    ordinals: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    feed: str
    epoch: int
    step: int
    index: int
    world: int
    layout: str
    sequences: int
    batch_length: int
    frames: int
    step_sequences: int
    step_frames: int
    loss_weight: float
    sequence_weight: float
    rows_lost: int
    attempt: int
    rehearsal: bool
    versions: Optional[np.ndarray[Any, Any]]
    versions_newest: Optional[np.ndarray[Any, Any]]
    live_version: Optional[int]
    groups: Optional[np.ndarray[Any, Any]]
    weights: Optional[np.ndarray[Any, Any]]
    numbers: Optional[np.ndarray[Any, Any]]
    producers: Optional[List[str]]
    epochs: Optional[np.ndarray[Any, Any]]
    zeroed: int
    position: Position

    def __init__(self, batch: Any) -> None:
        """Those of an object that has them all."""
        for name in Figures.__annotations__:
            setattr(self, name, getattr(batch, name))


class EpochEnd(NamedTuple):
    """The event after the last batch of an epoch."""

    epoch: int


class Field(NamedTuple):
    """One named tensor of every sequence.

    `kind` says how it relates to the frames of its sequence, T of them: `primary` and `aligned` are
    [T, ...], `independent` is [U, ...] with lengths of its own, `scalar` is one value. `shape` is
    that of one frame. `categories` are the names of the values 0, 1, ...; None when they have none.
    """

    name: str
    kind: str
    dtype: str
    shape: Tuple[int, ...]
    categories: Optional[Tuple[str, ...]]

    @classmethod
    def of(cls, raw: _abi.Field) -> Field:
        names = tuple(_abi.text(raw.categories[i]) for i in range(raw.category_count))
        return cls(_abi.text(raw.name), KINDS[raw.kind], DTYPES[raw.dtype],
                   tuple(raw.shape[:raw.ndim]), names or None)


class Grant(NamedTuple):
    """What the daemon granted; with several daemons, the sums of their steps and windows."""

    fingerprint: str
    epoch: int  #: where it starts
    step: int
    steps: int  #: global steps of that epoch
    batches_per_step: int  #: for this subscription
    world: int
    rank: int
    ranks: int
    window: int

    @classmethod
    def of(cls, raw: _abi.Grant) -> Grant:
        return cls(fingerprint_text(raw.fingerprint), raw.epoch, raw.step, raw.steps,
                   raw.batches_per_step, raw.world, raw.rank, raw.ranks, raw.window)
