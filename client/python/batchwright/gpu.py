"""Batches on a GPU: the arena page-locked once, an asynchronous copy, and the slot back after it.

The memory that batches lie in is registered with CUDA through torch's own cudart when the first
batch is copied: once for each mapping and process, read-only, for it is mapped so. From then on a
copy is one DMA from the daemon's memory. Where a device cannot register read-only memory, and for
batches that came as messages, a copy in torch's pinned memory lies between; that is said once, as a
RuntimeWarning. A registration lives as long as a batch in that memory, or the connection.

The trainer waits for nothing: the slot of a batch goes back when the event after its copies has
come, which is looked at when the next batch is asked for, copied or released.
"""

from __future__ import annotations

import ctypes
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional

import numpy as np

from . import _abi, _fork
from ._memory import in_flight
from ._memory.slot import finish, let_go, note
from ._waits import warn
from .errors import InvalidArgumentError, NotFoundError, SchemaMismatchError, UnsupportedError
from .values import Figures

if TYPE_CHECKING:
    import torch

_PORTABLE, _READ_ONLY = 0x01, 0x08  # flags of cudaHostRegister
_READ_ONLY_SUPPORTED = 113  # the device attribute that says whether the latter will do


class Cuda:
    """What is needed of torch.cuda. The one place that calls it."""

    def read_only_supported(self, device: Any) -> bool:
        """torch does not tell, so the driver is asked, which torch has loaded."""
        found = ctypes.c_int(0)
        try:
            ask = ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute
        except (OSError, AttributeError):
            return False
        number = self._number(device)
        return ask(ctypes.byref(found), _READ_ONLY_SUPPORTED, number) == 0 and found.value == 1

    @staticmethod
    def _torch_cuda() -> Any:
        """Much of which has no annotations."""
        import torch
        return torch.cuda

    def _number(self, device: Any) -> int:
        return int(self._torch_cuda().current_device() if device.index is None else device.index)

    def available(self) -> bool:
        import torch
        return torch.cuda.is_available()

    def register(self, address: int, size: int) -> int:
        """Returns an error's number, 0 for none."""
        torch_cuda = self._torch_cuda()
        torch_cuda.init()
        error = int(torch_cuda.cudart().cudaHostRegister(address, size, _PORTABLE | _READ_ONLY))
        if error != 0:
            self._forget_error()
        return error

    @staticmethod
    def _forget_error() -> None:
        """CUDA keeps the last error until it is asked for, and the next launch would report it."""
        import torch
        try:
            torch.zeros(1, device="cuda")
        except RuntimeError:
            pass  # this is the report; the error is forgotten now

    def unregister(self, address: int) -> None:
        self._torch_cuda().cudart().cudaHostUnregister(address)

    def stage(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same in pinned memory of torch's."""
        return tensor.pin_memory()

    def copy(self, tensor: torch.Tensor, device: Any, non_blocking: bool) -> torch.Tensor:
        return tensor.to(device, non_blocking=non_blocking)

    def synchronize(self, device: Any) -> None:
        """Waits for all that a device of another kind has been given, where its kind has a word for
        that."""
        import torch
        wait = getattr(getattr(torch, device.type, None), "synchronize", None)
        if wait is not None:
            wait()

    def event(self, device: Any) -> Any:
        """After all that the device's current stream has been given."""
        torch_cuda = self._torch_cuda()
        event = torch_cuda.Event()
        event.record(torch_cuda.current_stream(device))
        return event


cuda: Any = Cuda()
_guard = threading.RLock()  # a collection within it may drop a lock, which takes it again
_locks: weakref.WeakValueDictionary[int, PageLock] = weakref.WeakValueDictionary()
_said: List[str] = []


def _say_once(what: str) -> None:
    if what not in _said:
        _said.append(what)
        warn(f"{what}; batches go to the GPU through a copy in pinned memory")


class PageLock:
    """A mapping that is registered with CUDA, or of which it is known that it cannot be. Keeps the
    mapping, so that it is unregistered before it goes."""

    __slots__ = ("_address", "_memory", "_generation", "_cuda", "active", "__weakref__")

    def __init__(self, handle: int, address: int, size: int, device: Any) -> None:
        self.active = False
        self._address = address
        self._generation = _fork.generation
        self._cuda = cuda
        self._memory = _abi.batch_memory(handle)
        if not self._cuda.read_only_supported(device):
            _say_once("the device cannot register read-only memory")
            return
        error = self._cuda.register(address, size)
        if error != 0:
            _say_once(f"registering {size} bytes of the arena failed with CUDA's error {error}")
            return
        self.active = True

    def __del__(self, release: Any = _abi.memory_release) -> None:
        if self._generation != _fork.generation:
            return  # the parent's: its driver is not ours to call
        if self.active:
            try:
                self._cuda.unregister(self._address)
            except Exception:  # the interpreter ends, and torch went first
                return
        release(self._memory)


def _page_lock(slot: Any, device: Any) -> Optional[PageLock]:
    """That of the memory the slot lies in; None when there is none to be had."""
    header = slot.header
    if not header.shared:
        _say_once("writable batches lie in memory of their own" if header.writable else
                  "batches come as messages")
        return None
    with _guard:
        lock = _locks.get(header.memory)
        if lock is None:
            lock = PageLock(slot.handle, header.memory, header.memory_bytes, device)
            _locks[header.memory] = lock
    slot.homes.keep(_abi.text(header.feed), lock)
    slot.pagelock = lock
    return lock if lock.active else None


class DeviceBatch(Figures):
    """A batch whose tensors are on a device. Its figures mean what those of `Batch` mean, and are
    its own: the batch it was made from is released. What it has not is `keys`: take them before.

    Lifetime: its own memory. One of a queue keeps the batch until it is done, as `Batch` says: by
    `release()`, `done()`, a `with`, or the loop's next step. A tensor is used on the stream that was
    current in `to()`, or after an event of that stream, like any other that was copied with
    `non_blocking=True`.
    """

    def __init__(self, batch: Any, tensors: Dict[str, torch.Tensor],
                 own_lengths: Dict[str, Optional[np.ndarray[Any, Any]]]) -> None:
        """`own_lengths` are the rows' lengths of each field; None for a scalar one."""
        super().__init__(batch)
        self._tensors = tensors
        self._own_lengths = own_lengths
        slot = batch._slot
        self._slot = slot if slot.in_queue else None

    def done(self) -> None:
        """Marks a queue's batch as done, and gives it back. Does nothing for other batches."""
        slot, self._slot = self._slot, None
        if slot is not None:
            finish(slot)
            let_go(slot)

    release = done

    def __enter__(self) -> DeviceBatch:
        return self

    def __exit__(self, kind: Any = None, *_: Any) -> None:
        if kind is None:
            self.done()
        else:
            self._slot = None

    @property
    def names(self) -> List[str]:
        """The fields that were copied."""
        return list(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    __iter__ = None

    def __getitem__(self, name: str) -> torch.Tensor:
        """Errors: NotFoundError, which lists the fields."""
        found = self._tensors.get(name)
        if found is None:
            raise NotFoundError(f'the batch has no field "{name}"; it has ' +
                                ", ".join(f'"{each}"' for each in self._tensors))
        return found

    torch = __getitem__

    def lengths_of(self, name: str) -> np.ndarray[Any, Any]:
        """As Batch.lengths_of()."""
        self[name]
        found = self._own_lengths[name]
        if found is None:
            raise SchemaMismatchError(f'field "{name}" is a scalar: its rows have no lengths')
        return found


def copied_to(device: torch.device, slot: Any, views: Dict[str, torch.Tensor],
              non_blocking: bool) -> Dict[str, torch.Tensor]:
    """Copies of these views of the slot. The slot is kept until they are done."""
    if device.type == "cpu":
        return {name: view.clone() for name, view in views.items()}
    if device.type != "cuda":  # there are no events of it to wait for: the copies end here
        made = {name: cuda.copy(view, device, False) for name, view in views.items()}
        cuda.synchronize(device)
        return made
    lock = _page_lock(slot, device)
    if lock is None:
        views = {name: cuda.stage(view) for name, view in views.items()}
    made = {name: cuda.copy(view, device, non_blocking) for name, view in views.items()}
    if lock is not None and non_blocking:
        event = cuda.event(device)
        note(slot, event, "its copy to a GPU")
        in_flight.add(event, slot)
    return made


def device_of(wanted: Any) -> torch.device:
    """torch's device of that name. Errors: InvalidArgumentError, UnsupportedError."""
    from ._memory import torch_views  # says what to install when torch is missing
    import torch
    del torch_views
    if isinstance(wanted, torch.dtype):
        raise InvalidArgumentError(f"to({wanted}): a batch moves to a device; of another dtype is "
                                   f'batch.torch(name).to({wanted}), which copies')
    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{wanted!r} is no device of torch's: "
                                   f"{str(error).splitlines()[0]}") from None
    if device.type == "cuda" and not cuda.available():
        raise UnsupportedError(f'to("{device}"): torch finds no CUDA here (torch.cuda.is_available() '
                               'is False); to("cpu") is a copy in memory')
    return device
