"""The opponent: torch's DataLoader over the features in LMDB, written as well as we can.

It reads the very dataset that the daemon serves, so that both sides share one page cache. A
record's header is passed over by an offset (formats/README.md: the first field begins at byte 48),
lengths are known beforehand, and nothing is checked: the values might as well lie there raw.

What is tuned:

- One transaction and one look-up a value; LMDB's buffer is copied once, into the row of the padded
  tensor, and only the padding is set to zero.
- A whole batch is one call of the dataset: the sampler yields lists of ordinals, without end, so
  that no epoch's end empties the queues. It costs nothing, for its lists are made beforehand.
- In a worker the tensor is allocated in shared memory, as torch's own collate does it, so that the
  queue copies nothing. Workers live on, and have the LMDB map in their page tables from the start.

"lean" has features alone as a tensor, lengths and labels as arrays, and a collate_fn that leaves
all as it is; the other form has three tensors.
"""

import ctypes
import pathlib
import struct
import typing

import lmdb
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

PAYLOAD_AT = 48  # bytes into a record
POPULATE_READ = 22  # MADV_POPULATE_READ


class Form(typing.NamedTuple):
    """One way to write it."""

    workers: int
    lean: bool
    sharing: str

    @property
    def name(self):
        if self.workers == 0:
            return "workers 0"
        return f"workers {self.workers}{', lean' if self.lean else ''}, {self.sharing}"


FORMS = [Form(0, True, "file_descriptor")] + [
    Form(workers, lean, sharing) for workers in (1, 2) for lean in (False, True)
    for sharing in ("file_descriptor", "file_system")]


def populate(path):
    """Enters the pages of LMDB's map into the page tables, as a first epoch would."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if not line.endswith(str(path)):
            continue
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        size = min(end - start, path.stat().st_size) & -4096
        if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), POPULATE_READ) != 0:
            raise OSError(ctypes.get_errno(), f"madvise of {path}")


class Batches(Dataset):
    """Finished batches: dataset[ordinals]. LMDB is opened by the process that reads."""

    def __init__(self, path, lengths, bands, lean, warm):
        self.path, self.lengths, self.bands = path, lengths, bands
        self.lean, self.warm = lean, warm
        self.transaction = None

    def open(self):
        environment = lmdb.open(str(self.path), readonly=True, lock=False, readahead=False,
                                max_dbs=4)
        self.table = environment.open_db(b"sequences", integerkey=True, create=False)
        self.transaction = environment.begin(db=self.table, buffers=True)
        self.keys = [struct.pack("<Q", ordinal) for ordinal in range(len(self.lengths))]
        self.shared = get_worker_info() is not None
        if self.warm:
            populate(self.path / "data.mdb")

    def empty(self, rows, longest):
        shape = (rows, longest, self.bands)
        if not self.shared:
            return torch.empty(shape)
        storage = torch.FloatStorage._new_shared(rows * longest * self.bands)
        return torch.empty(0).set_(storage).view(shape)

    def __getitem__(self, ordinals):
        if self.transaction is None:
            self.open()
        lengths = self.lengths[ordinals]
        features = self.empty(len(ordinals), int(lengths.max()))
        rows, get, keys = features.numpy(), self.transaction.get, self.keys
        for row, ordinal, length in zip(rows, ordinals, lengths.tolist()):
            values = np.frombuffer(get(keys[ordinal]), np.float32, length * self.bands, PAYLOAD_AT)
            row[:length] = values.reshape(length, self.bands)
            row[length:] = 0
        labels = np.array(ordinals)
        if self.lean:
            return features, lengths, labels
        return features, torch.from_numpy(lengths), torch.from_numpy(labels)


class Sampler:
    """Lists of ordinals, the same as the daemon's batches, over and over."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        while True:
            yield from self.batches


def as_it_is(batch):
    return batch


class Loader:
    """Of one trainer. `next` gives the features and their lengths."""

    def __init__(self, form, path, plan, warm):
        torch.multiprocessing.set_sharing_strategy(form.sharing)
        dataset = Batches(pathlib.Path(path), np.array(plan["lengths"]), plan["bands"], form.lean,
                          warm)
        workers = dict(prefetch_factor=2, persistent_workers=True) if form.workers else {}
        loader = DataLoader(dataset, sampler=Sampler(plan["batches"]), batch_size=None,
                            num_workers=form.workers,
                            collate_fn=as_it_is if form.lean else None, **workers)
        self.loader, self.batches = loader, iter(loader)

    def begin(self):
        """It never stopped: the queues are full."""

    def next(self):
        features, lengths, _ = next(self.batches)
        return features, lengths

    def end(self):
        """Stays where it is."""
