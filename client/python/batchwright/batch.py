"""A batch, and the views of its tensors.

Nothing is copied: `batch["features"]` is a NumPy array over the daemon's own memory, which this
process has mapped read-only. NumPy refuses to write to it. torch has no read-only tensors, so
writing in place to `batch.torch("features")` is a fault, which names the batch on standard error and
ends the process: use `x = x * 2`, not `x *= 2`, or subscribe with `writable=True`. Values with one
entry per row (scalar fields, lengths, ordinals, flags) are copied, being smaller than the slot they would hold.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any, List, NoReturn, Optional, Tuple

import numpy as np

from . import _abi, _fork
from ._memory import in_flight
from ._memory.homes import Homes
from ._live.rows import LiveRows
from ._memory.slot import finish, let_go, slot_type
from ._own import Own
from .errors import NotFoundError, ReleasedError, SchemaMismatchError
from .gpu import DeviceBatch, copied_to, device_of
from .tensor import NUMPY, Tensor, array_over, lengths_at, mask_over, place_of, torch_over
from .values import LAYOUTS, Position, fingerprint_text

if TYPE_CHECKING:
    from torch import Tensor as TorchTensor

_U1, _U8, _I8 = np.dtype("u1"), np.dtype("<u8"), np.dtype("i8")
_WHOLE = 3  # a row's flags: starts its sequence, and ends it
_header_at = _abi.BatchHeader.from_address
_tensor_at = _abi.Tensor.from_address
_named = _abi.batch_tensor_named


class Keys(List[str]):
    """Raises: without it, `dict(batch)` would return the rows' keys."""

    def __call__(self) -> NoReturn:
        raise TypeError("batch.keys is the list of the rows' keys, and no method; the fields are "
                        "batch.names: {name: batch[name] for name in batch.names}")


class Batch(LiveRows, Own):
    """A finished batch of B rows, the longest of L frames.

    Lifetime: it holds a slot of the daemon's arena and one of the subscription's credits. Both go
    back once this object is released, by `release()`, by the end of a `with`, or with its last
    reference, and the last view of it is gone. Using a released batch raises ReleasedError; views
    taken before stay valid as long as they live.

    A queue's batch is done by `release()`, `done()`, a `with` that ends without an exception, or when
    the loop asks for the next one; given back in any other way it is undone, and another worker's.

    Threads: any. Fork: a child gets ForkedError.
    """

    __slots__ = ("_slot", "_generation", "__weakref__")

    def __init__(self, place: ctypes.c_void_p, homes: Homes, in_queue: bool = False,
                 arrived: Optional[List[Any]] = None) -> None:
        """Takes over the bw_batch at `place`, and leaves None there; `homes` are its connection's. In
        `arrived` it is safe from an exception of a signal's handler after this call."""
        raw = place.value
        header = _header_at(_abi.batch_get_header(raw))
        slot = slot_type(header.memory_bytes, bool(header.shared)).from_address(header.memory)
        slot.handle = raw
        slot.header = header
        slot.homes = homes
        slot.writable = bool(header.writable)
        slot.in_queue = in_queue
        slot.views = [(weakref.ref(self), "the batch itself")]
        self._slot = slot
        self._generation = _fork.generation
        give_back = functools.partial(_abi.return_undone, raw)
        place.value = None  # no call stands between the two, so no signal's handler runs there
        slot.give_back = give_back
        if arrived is not None:
            arrived.append(self)

    # ---- lifetime ---------------------------------------------------------------------------

    def _held(self) -> Any:
        slot = self._slot
        if slot is None:
            raise ReleasedError("this batch was released: take views before, and keep them")
        if self._generation != _fork.generation:
            raise _fork.refuse("this batch")
        return slot

    @property
    def released(self) -> bool:
        """Whether the batch is released. Views may keep its slot longer."""
        return self._slot is None

    def release(self) -> None:
        """Gives the batch back; with views of it alive, the last of them does. A queue's batch is
        done. Calling it twice is fine."""
        slot = self._slot
        if slot is not None and slot.in_queue and not slot.done:
            slot.give_back = functools.partial(_abi.release, slot.handle)  # done once it goes
            alive, slot = weakref.ref(slot), None
            self._let_go()
            if alive() is not None:
                finish(alive())  # views keep it
        self._let_go()
        if in_flight.pending:
            in_flight.reap()

    def _let_go(self) -> None:
        """Gives the batch back as it is: one of a queue that is not done is undone."""
        slot, self._slot = self._slot, None
        let_go(slot)

    def done(self) -> None:
        """Marks a queue's batch as done before it is released. Does nothing for other batches."""
        slot = self._held()
        _abi.check(_abi.batch_done(slot.handle))
        slot.done = True

    @property
    def attempt(self) -> int:
        """Of a queue: 1, and one more for each worker that gave it back undone or ended with it. 0 in
        other modes, and if the daemon does not say."""
        return self._figure("attempt")

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: Any = None, *_: Any) -> None:
        self.release() if kind is None else self._let_go()

    # ---- tensors ----------------------------------------------------------------------------

    def _find(self, name: str) -> Tuple[Any, _abi.Tensor]:
        slot = self._held()
        raw = self._raw(slot, name)
        if raw is None:
            raise NotFoundError(f'the batch has no field "{name}"; it has ' +
                                ", ".join(f'"{each}"' for each in self.names))
        return slot, raw

    def _raw(self, slot: Any, name: str) -> Optional[_abi.Tensor]:
        address = _named(slot.handle, name.encode())
        return _tensor_at(address) if address else None

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """The field as a NumPy array, [B, L, ...] or, time-major, [L, B, ...], read-only unless the
        batch is `writable`; a scalar's is [B], and a copy. After a row's length is padding.
        bfloat16 appears as uint16.

        Errors: NotFoundError, which is a KeyError and lists the fields.
        """
        slot, raw = self._find(name)
        memory, address = place_of(slot, raw)
        return array_over(memory, address, NUMPY[raw.dtype], tuple(raw.shape[:raw.ndim]), name)

    def torch(self, name: str) -> TorchTensor:
        """The field as a tensor of torch on the CPU, without a copy except for a scalar field, and
        never to be written to unless the batch is `writable`."""
        slot, raw = self._find(name)
        memory, address = place_of(slot, raw)
        return torch_over(memory, address, raw.dtype, tuple(raw.shape[:raw.ndim]), name)

    def _in_place(self, name: str) -> TorchTensor:
        """Scalars too: what is copied to a GPU is read where the arena is page-locked."""
        slot, raw = self._find(name)
        return torch_over(slot, raw.data, raw.dtype, tuple(raw.shape[:raw.ndim]), name)

    def tensor(self, name: str) -> Tensor:
        """A field's tensor for DLPack, as in `from_dlpack(batch.tensor("features"))`."""
        slot, raw = self._find(name)
        return Tensor(slot, raw, slot.header.sequences)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._raw(self._held(), name) is not None

    # A batch is neither its rows nor its fields, and says so.

    def __iter__(self) -> NoReturn:
        raise TypeError("a batch is not iterated over: its fields are batch[name] for each name of "
                        "batch.names, its rows the first axis of these, and batch.sequences of them")

    def __len__(self) -> NoReturn:
        raise TypeError("a batch has no len(): it has batch.sequences rows and len(batch.names) "
                        "fields")

    def __bool__(self) -> bool:
        return True

    @property
    def names(self) -> List[str]:
        """The fields, in the order of the dataset."""
        slot = self._held()
        return [_abi.text(_tensor_at(_abi.batch_tensor(slot.handle, i)).name)
                for i in range(slot.header.tensor_count)]

    def to(self, device: Any, non_blocking: bool = True,
           fields: Optional[List[str]] = None) -> DeviceBatch:
        """Copies the fields, all or those named, to a torch device, and releases this batch; with a
        GPU it does so when the copy's event has come, without waiting for it. The copy keeps a
        queue's batch until it is done. See `batchwright.gpu`.

        Errors: InvalidArgumentError for what is no device, UnsupportedError without CUDA,
        NotFoundError for a field.
        """
        place = device_of(device)
        in_flight.reap()
        names = self.names if fields is None else list(fields)
        views = {name: self._in_place(name) for name in names}
        tensors = copied_to(place, self._held(), views, non_blocking)
        made = DeviceBatch(self, tensors, {name: self.tensor(name).lengths for name in names})
        del views  # they hold the slot
        self._slot = None
        in_flight.reap()
        return made

    # ---- rows -------------------------------------------------------------------------------

    # All of them are copies, a number or a text a row: keeping them holds nothing.

    @property
    def lengths(self) -> np.ndarray[Any, Any]:
        """Real frames of each row, int64 [B]; `torch.from_numpy` gives the tensor that torch
        expects."""
        header = self._held().header
        return lengths_at(header.lengths, header.sequences)

    @property
    def ordinals(self) -> np.ndarray[Any, Any]:
        """Each row's sequence: its place in the dataset, int64 [B]."""
        header = self._held().header
        return np.frombuffer(ctypes.string_at(header.ordinals, 8 * header.sequences),
                             _U8).astype(_I8)

    @property
    def starts(self) -> np.ndarray[Any, Any]:
        """Each row's first frame within its sequence, int64 [B]. Zeros when rows are whole."""
        header = self._held().header
        if not header.starts:
            return np.zeros(header.sequences, _I8)
        return lengths_at(header.starts, header.sequences)

    @property
    def flags(self) -> np.ndarray[Any, Any]:
        """uint8 [B]. Bit 0: the row starts its sequence; bit 1: it ends it."""
        header = self._held().header
        if not header.flags:
            return np.full(header.sequences, _WHOLE, _U1)
        return np.frombuffer(bytearray(ctypes.string_at(header.flags, header.sequences)), _U1)

    @property
    def keys(self) -> List[str]:
        """Each row's key in the dataset. Made anew by each call, at 1 us a row."""
        slot, size = self._held(), ctypes.c_size_t()
        place = ctypes.byref(size)
        return Keys(_abi.text(ctypes.string_at(_abi.batch_key(slot.handle, row, place), size.value))
                    for row in range(slot.header.sequences))

    @property
    def mask(self) -> np.ndarray[Any, Any]:
        """Where frames are real: bool [B, L] or, time-major, [L, B]. Made anew by each call."""
        return mask_over(self.lengths, self.batch_length, self.layout)

    def lengths_of(self, name: str) -> np.ndarray[Any, Any]:
        """The rows' lengths of one field, int64 [B]: an independent field has its own.

        Errors: NotFoundError; SchemaMismatchError for a scalar field.
        """
        slot, raw = self._find(name)
        if not raw.row_lengths:
            raise SchemaMismatchError(f'field "{name}" is a scalar: its rows have no lengths')
        return lengths_at(raw.row_lengths, slot.header.sequences)

    def mask_of(self, name: str) -> np.ndarray[Any, Any]:
        """The `mask` of one field. Errors: those of lengths_of()."""
        frames_axis = 0 if self.layout == "time-major" else 1
        longest = self._find(name)[1].shape[frames_axis]
        return mask_over(self.lengths_of(name), longest, self.layout)

    # ---- figures ----------------------------------------------------------------------------

    def _figure(self, which: str) -> int:
        figure: int = getattr(self._held().header, which)
        return figure

    @property
    def feed(self) -> str:
        return _abi.text(self._held().header.feed)

    @property
    def epoch(self) -> int:
        return self._figure("epoch")

    @property
    def step(self) -> int:
        """Global step within the epoch."""
        return self._figure("step")

    @property
    def index(self) -> int:
        """step * world + place in the step."""
        return self._figure("index")

    @property
    def world(self) -> int:
        """Batches of a global step."""
        return self._figure("world")

    @property
    def layout(self) -> str:
        """"batch-major" or "time-major"."""
        return LAYOUTS[self._figure("layout")]

    @property
    def sequences(self) -> int:
        """B: rows."""
        return self._figure("sequences")

    @property
    def batch_length(self) -> int:
        """L: frames of the longest row."""
        return self._figure("batch_length")

    @property
    def frames(self) -> int:
        """Real frames of this batch."""
        return self._figure("frames")

    @property
    def step_sequences(self) -> int:
        """Rows of the whole global step."""
        return self._figure("step_sequences")

    @property
    def step_frames(self) -> int:
        """Real frames of the whole global step."""
        return self._figure("step_frames")

    @property
    def loss_weight(self) -> float:
        """frames * world / step_frames: with it, the mean over a step's batches of
        loss_weight * (mean loss per frame) is the step's true mean per frame."""
        return float(self._held().header.loss_weight)

    @property
    def sequence_weight(self) -> float:
        """sequences * world / step_sequences: the same for losses by sequence, such as CTC's."""
        return self.sequences * self.world / self.step_sequences

    @property
    def rows_lost(self) -> int:
        """Planned rows whose record is corrupt, of a feed with on_corrupt = "skip": left out, or,
        where rows may be parts of sequences, all padding. There is always a row with frames."""
        return self._figure("rows_lost")

    @property
    def nbytes(self) -> int:
        """Of the whole batch, headers and payload."""
        return self._figure("bytes")

    @property
    def writable(self) -> bool:
        """Whether its arrays and tensors may be written to; see `Feed.subscribe()`."""
        return bool(self._figure("writable"))

    @property
    def rehearsal(self) -> bool:
        """Whether it is one of `worst_first`: it comes again at its place."""
        return bool(self._figure("rehearsal"))

    @property
    def fingerprint(self) -> str:
        """Of the plan it is from."""
        return fingerprint_text(self._held().header.fingerprint)

    @property
    def position(self) -> Position:
        """Where to go on when this batch was the last one finished. Within a step of several
        batches it is that step itself until its last one."""
        return Position.of(self._after())

    def _after(self) -> _abi.Position:
        slot, raw = self._held(), _abi.Position()
        _abi.check(_abi.batch_position(slot.handle, ctypes.byref(raw)))
        return raw

    def __repr__(self) -> str:
        slot = self._slot
        if slot is None:
            return "<batchwright.Batch, released>"
        if self._generation != _fork.generation:
            return "<batchwright.Batch of a parent process>"
        header = slot.header
        return (f"<batchwright.Batch of {_abi.text(header.feed)!r}: epoch {header.epoch}, "
                f"index {header.index}, {header.sequences} rows of {header.batch_length} frames>")
