"""Padded batches as recurrent networks and ragged operators like them.

Each function takes a `Batch` or a `DeviceBatch` and the name of a field that has frames.
"""

from __future__ import annotations

from typing import NamedTuple, Union

import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from .batch import Batch
from .errors import UnsupportedError
from .gpu import DeviceBatch

AnyBatch = Union[Batch, DeviceBatch]


def lengths(batch: AnyBatch, name: str) -> torch.Tensor:
    """Real frames of each row, int64 [B], on the CPU, where torch's packing wants it."""
    return torch.from_numpy(batch.lengths_of(name))


def targets(batch: AnyBatch, name: str, ignore: int = -100) -> torch.Tensor:
    """Class numbers, int64, with `ignore` after each row's end: as losses with an `ignore_index` of
    torch want them. A copy, whatever the feed pads with; a scalar field has no padding."""
    found = batch.torch(name).long()
    if found.dim() < 2:
        return found
    frames = torch.arange(found.shape[0 if batch.layout == "time-major" else 1])
    own = lengths(batch, name)
    real = (frames[:, None] < own[None, :] if batch.layout == "time-major"
            else frames[None, :] < own[:, None]).to(found.device)
    return torch.where(real.reshape(real.shape + (1,) * (found.dim() - 2)), found,
                       torch.full_like(found, ignore))


def time_major(batch: AnyBatch, name: str) -> torch.Tensor:
    """[L, B, ...], without a copy; with strides when the feed is batch-major."""
    tensor = batch.torch(name)
    return tensor if batch.layout == "time-major" else tensor.transpose(0, 1)


def batch_major(batch: AnyBatch, name: str) -> torch.Tensor:
    """[B, L, ...], without a copy; with strides when the feed is time-major."""
    tensor = batch.torch(name)
    return tensor.transpose(0, 1) if batch.layout == "time-major" else tensor


def packed(batch: AnyBatch, name: str) -> PackedSequence:
    """For torch's recurrent layers. Packing copies the real frames once. Rows that are in falling
    order of length are taken as they are; others are sorted, which copies them once more.

    Errors: UnsupportedError for a batch without rows, of which torch has no packed form.
    `if batch.sequences:` passes over it.
    """
    own = lengths(batch, name)
    if own.numel() == 0:
        raise UnsupportedError(f'batch {batch.index} of epoch {batch.epoch} has no rows, and packed '
                               "sequences have some: pass over it, by `if batch.sequences:`")
    falling = bool((own[:-1] >= own[1:]).all())
    return pack_padded_sequence(batch.torch(name), own,
                                batch_first=batch.layout == "batch-major", enforce_sorted=falling)


class Ragged(NamedTuple):
    """Rows of different lengths without padding between them in meaning: row b is
    `values[offsets[b]:offsets[b] + lengths[b]]`.

    As `ragged()` makes it nothing is copied, and padding lies after each row. `compact()` leaves
    it out, as operators want it that know `offsets` alone.
    """

    values: torch.Tensor  #: [N, ...]
    offsets: torch.Tensor  #: int64 [B + 1]; the last one is N
    lengths: torch.Tensor  #: int64 [B]

    def row(self, b: int) -> torch.Tensor:
        """[lengths[b], ...], a view."""
        start = int(self.offsets[b])
        return self.values[start:start + int(self.lengths[b])]

    def compact(self) -> Ragged:
        """The real frames alone, one row after the other: copied once, except for rows that
        already lie so."""
        ends = torch.cumsum(self.lengths, 0)
        if int(self.lengths.sum()) == self.values.shape[0]:
            return self
        offsets = torch.cat([torch.zeros_like(ends[:1]), ends])
        longest = int(self.offsets[1] - self.offsets[0])
        real = torch.arange(longest, device=self.lengths.device) < self.lengths[:, None]
        return Ragged(self.values[real.reshape(-1)], offsets, self.lengths)


def ragged(batch: AnyBatch, name: str) -> Ragged:
    """Values and offsets, on the batch's device. Not copied in a batch-major feed; in a time-major
    one the frames of a row lie apart, and are brought together once."""
    own = lengths(batch, name)  # first: of a scalar field it says what is wrong
    tensor = batch_major(batch, name)
    rows, longest = tensor.shape[:2]
    offsets = torch.arange(rows + 1, device=tensor.device) * longest
    return Ragged(tensor.reshape(rows * longest, *tensor.shape[2:]), offsets, own.to(tensor.device))
