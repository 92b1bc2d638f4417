"""Writing datasets from Python, by the daemon's own writer: no file format is known here.

    fields = {
        "features": FieldSpec("float32", shape=(80,)),
        "labels": FieldSpec("int32", kind="aligned"),
        "speaker": FieldSpec("uint8", kind="scalar", categories=("ann", "bob")),
    }
    with DatasetWriter("train", fields, settings={"sample_rate_hz": 22050}) as writer:
        for key, features, labels, speaker in recordings():
            writer.add(key, features=features, labels=labels, speaker=speaker)
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _storage_abi as abi
from ._own import Own
from ._writer_values import FieldSpec, Finite, Parts, ValueProblem, normalized, slots_of
from .errors import (
    ClosedError, Error, ForkedError, InvalidArgumentError, SchemaMismatchError, TimedOutError,
)

__all__ = ["DatasetWriter", "FieldSpec"]

_POLL_SECONDS = 0.05  # while another process has the dataset


class DatasetWriter(Own):
    """Appends sequences to a dataset, which is created if it does not exist.

    Added sequences are kept in memory until a commit makes them durable and visible in one
    transaction; it follows automatically when `commit_bytes` or `commit_sequences` are pending. If
    the process is killed at any moment, the dataset has the sequences of all whole commits, and the
    next writer appends to them. As a context manager it closes, and so commits, at the end; when
    the block raises, uncommitted sequences are dropped and committed ones stay.

    Threads: any; they take turns. Fork: a forked child gets ForkedError.
    Errors: `batchwright.Error`, after which the writer is as if the call had not been made.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], fields: Optional[Mapping[str, Any]] = None, *,
                 settings: Optional[Mapping[str, Any]] = None, mode: str = "create_or_append",
                 commit_bytes: int = 64 << 20, commit_sequences: int = 10_000,
                 timeout: float = 60.0, map_bytes: int = 0, non_finite: str = "refuse") -> None:
        """Opens the dataset at `path`, a directory; its parent must exist.

        fields: by name, in their order, a FieldSpec, a mapping of its members,
            or a feed's batchwright.Field. The first one is primary unless it says otherwise, and
            may be given as a bare dtype. With an existing dataset they must be its own, and None
            takes them as they are.
        settings: how the data were made, kept as text with a dataset that is created.
        mode: "create_or_append"; "create", AlreadyExistsError if there is a dataset; or
            "append", NotFoundError if there is none.
        commit_bytes, commit_sequences: most that is pending before a commit, held in memory.
        timeout: seconds to wait for a writer of another process; then TimedOutError.
        map_bytes: initial address space, which grows automatically; 0: a sensible amount.
        non_finite: treatment of a value that is NaN or infinite: "refuse", as ingest does; or
            "accept", and `non_finite` counts them.
        Errors: InvalidArgumentError (names the field), SchemaMismatchError (the dataset has other
        fields), BusyError (this process has a writer of it), and those named above.
        """
        self._handle = ctypes.c_void_p()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.path = os.fspath(path)
        self._library = abi.library()
        try:
            self._finite = Finite(non_finite)
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from None
        options, kept = self._options(fields, settings, mode)
        options.commit_bytes, options.commit_sequences = int(commit_bytes), int(commit_sequences)
        options.map_bytes = int(map_bytes)
        self._open(options, mode, timeout)
        del kept
        self._fields = self._read_fields()
        values = (abi.Value * len(self._fields))()
        self._slots = slots_of(self._fields, values, self._finite)
        self._sequence = abi.Sequence(values=values, value_count=len(values))
        self._ordinal = ctypes.c_uint64()

    @staticmethod
    def _options(fields: Optional[Mapping[str, Any]], settings: Optional[Mapping[str, Any]],
                 mode: str) -> Tuple[abi.Options, List[Any]]:
        """The library's options, and the objects they point to."""
        if mode not in abi.OPENINGS:
            raise InvalidArgumentError(f"mode {mode!r}; allowed: {', '.join(abi.OPENINGS)}")
        options = abi.Options(struct_size=ctypes.sizeof(abi.Options),
                              opening=abi.OPENINGS[mode])
        declared: List[abi.Field] = []
        for name, given in (fields or {}).items():
            try:
                field = normalized(name, given, first=not declared)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError(str(error)) from None
            names = [each.encode() for each in field.categories]
            declared.append(abi.Field(
                name.encode(), abi.KINDS[field.kind], abi.DTYPES[field.dtype], len(field.shape),
                len(names), (ctypes.c_uint64 * abi.MAX_DIMENSIONS)(*field.shape),
                (ctypes.c_char_p * len(names))(*names) if names else None))
        if fields is not None and not declared:
            raise InvalidArgumentError("fields is empty; a dataset has 1 to 64 fields")
        pointers = (ctypes.POINTER(abi.Field) * len(declared))(*[ctypes.pointer(each)
                                                                 for each in declared])
        pairs = [abi.Setting(str(name).encode(), str(value).encode())
                 for name, value in (settings or {}).items()]
        texts = (abi.Setting * len(pairs))(*pairs)
        if declared:
            options.fields, options.field_count = pointers, len(declared)
        if pairs:
            options.settings, options.setting_count = texts, len(pairs)
        return options, [declared, pointers, pairs, texts]

    def _open(self, options: abi.Options, mode: str, timeout: float) -> None:
        """Opens with repeated short waits, so that Ctrl-C can end it."""
        path = os.fsencode(self.path)
        end = time.monotonic() + timeout
        while True:
            status = self._library.bw_writer_open(path, ctypes.byref(options),
                                                  ctypes.byref(self._handle))
            if status != abi.TIMED_OUT:
                break
            if time.monotonic() >= end:
                raise TimedOutError(f"dataset {self.path}: another process writes it, for longer "
                                    f"than {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        if status != abi.OK:
            raise abi.failed(status)

    def _read_fields(self) -> Dict[str, FieldSpec]:
        kinds = {number: name for name, number in abi.KINDS.items()}
        dtypes = {number: name for name, number in abi.DTYPES.items()}
        fields = {}
        for i in range(self._library.bw_writer_field_count(self._handle)):
            field = self._library.bw_writer_field_at(self._handle, i).contents
            names = [field.categories[n].decode() for n in range(field.category_count)]
            fields[field.name.decode()] = FieldSpec(dtypes[field.dtype],
                                                tuple(field.shape[:field.ndim]),
                                                kinds[field.kind], tuple(names))
        return fields

    @property
    def fields(self) -> Dict[str, FieldSpec]:
        """The dataset's fields by name, in their order."""
        return dict(self._fields)

    @property
    def non_finite(self) -> int:
        """Values given to this writer that are NaN or infinite, where they are accepted."""
        return self._finite.taken

    @property
    def closed(self) -> bool:
        """Whether close() or abort() has ended it."""
        return not self._handle

    def add(self, key: Union[str, bytes], /, **values: Any) -> int:
        """Adds a sequence: a key of 1 to 511 bytes, and a value for each field by its name.

        A value is an array of the field's dtype and of shape [T, *shape] (primary, aligned),
        [U, *shape] (independent) or [] (scalar): of NumPy, a tensor of torch on the CPU, or what
        exports DLPack or NumPy's array interface. bfloat16 comes as tensor or as uint16 patterns.
        C-contiguous memory is read in place, any other is copied once. Numbers of Python have no
        dtype and are converted, if the field can hold them; uint8 fields also take bytes, and
        fields with categories also take their names. A field without content, of which recipes have
        the rate of a sound, takes its length: rate=16000. A key that os.listdir() gave is its bytes.

        Returns the place of the sequence in the dataset.
        Errors: AlreadyExistsError (the key), SchemaMismatchError (names key and field, what was
        found and what is allowed), ForkedError, ClosedError, and those of commit(), which follows
        automatically when due.
        """
        name = abi.key_bytes(key)
        self._check_here()
        with self._lock:
            handle = self._open_handle()
            try:
                arrays = [slot.fill(values[slot.name]) for slot in self._slots]
            except ValueProblem as problem:
                raise SchemaMismatchError(f"key {_quoted(key)}: {problem}") from None
            except KeyError:
                raise self._wrong_names(f"key {_quoted(key)}", values) from None
            if len(values) != len(arrays):
                raise self._wrong_names(f"key {_quoted(key)}", values)
            self._sequence.key, self._sequence.key_bytes = name, len(name)
            status = self._library.bw_writer_add(handle, self._sequence, self._ordinal)
            if status != abi.OK:
                raise abi.failed(status)
            return self._ordinal.value

    def add_many(self, keys: Sequence[Union[str, bytes]], values: Any, lengths: Any = None) -> range:
        """Adds a sequence for each key, without a call of Python's for each of their values.

        keys: N of them, each as add() takes it.
        values: by field, the values of all sequences one after the other, as add() takes them: an
          array of shape [sum of the lengths, *shape], or [N] for a scalar field. Of a field without
          content the lengths alone, one for all or [N]. A dataset of one field may have the bare array.
        lengths: [N], in frames, of the primary field, and of the aligned ones with it; or by field,
          which the independent ones need. None: every sequence has one frame.

        Returns their places in the dataset.
        Errors: those of add(). What the values as a whole are is checked first, and then nothing was
        added; with another error, or Ctrl-C, the sequences before it are there, as `sequences` says.
        """
        names = [abi.key_bytes(key) for key in keys]
        if not isinstance(values, Mapping):
            values = {next(iter(self._fields)): values}
        self._check_here()
        with self._lock:
            handle = self._open_handle()
            if values.keys() != self._fields.keys():
                raise self._wrong_names(f"{len(names)} keys", values)
            try:
                parts = Parts(self._slots, values, lengths, len(names))
            except ValueProblem as problem:
                raise SchemaMismatchError(f"{len(names)} keys: {problem}") from None
            sequence, add = self._sequence, self._library.bw_writer_add
            first = None
            for number, name in enumerate(names):
                parts.point_to(number)
                sequence.key, sequence.key_bytes = name, len(name)
                status = add(handle, sequence, self._ordinal)
                if status != abi.OK:
                    raise abi.failed(status)
                if first is None:
                    first = self._ordinal.value
        return range(first or 0, (first or 0) + len(names))

    def _wrong_names(self, where: str, values: Mapping[str, Any]) -> SchemaMismatchError:
        unknown = ", ".join(f'"{name}"' for name in values if name not in self._fields)
        missing = ", ".join(f'"{name}"' for name in self._fields if name not in values)
        found = [f"the dataset has no field {unknown}"] * bool(unknown)
        found += [f"a value is missing for field {missing}"] * bool(missing)
        return SchemaMismatchError(f"{where}: {', and '.join(found)}; its fields are "
                                   f"{', '.join(self._fields)}")

    def __contains__(self, key: Union[str, bytes]) -> bool:
        """Whether a sequence of this key is there, committed or not."""
        name = abi.key_bytes(key)
        found = ctypes.c_int32()
        self._call("bw_writer_contains", name, len(name), ctypes.byref(found))
        return bool(found)

    @property
    def sequences(self) -> int:
        """The number of sequences in the dataset, pending ones included."""
        sequences = ctypes.c_uint64()
        self._call("bw_writer_sequences", ctypes.byref(sequences))
        return sequences.value

    def commit(self) -> None:
        """Makes all added sequences durable, synced to disk, and visible. Having nothing to do is
        fine.

        Errors: SystemRefusedError (the disk is full, for one), DoesNotFitError. Added sequences are
        kept: the call may be repeated.
        """
        self._call("bw_writer_commit")

    def close(self) -> None:
        """Commits, and ends the writer. Closing twice is fine.

        Errors: those of commit(); then the writer is still open, and close() may be repeated.
        """
        self._end("bw_writer_close")

    def abort(self) -> None:
        """Drops uncommitted sequences, and ends the writer. Committed ones stay."""
        self._end("bw_writer_abort")

    def _check_here(self) -> None:
        # Before the lock: in a child, the thread that would unlock it may not exist.
        if os.getpid() != self._process:
            raise ForkedError(f"dataset {self.path}: this writer was opened before fork(); a child "
                              "process must open its own")

    def _open_handle(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ClosedError(f"dataset {self.path}: this writer is closed")
        return self._handle

    def _call(self, function: str, *arguments: Any) -> None:
        self._check_here()
        with self._lock:
            status = getattr(self._library, function)(self._open_handle(), *arguments)
            if status != abi.OK:
                raise abi.failed(status)

    def _end(self, function: str) -> None:
        self._check_here()
        with self._lock:
            if not self._handle:
                return
            status = getattr(self._library, function)(self._handle)
            if status != abi.OK:
                raise abi.failed(status)
            self._handle = ctypes.c_void_p()

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, kind: Optional[type], *_: Any) -> None:
        if os.getpid() != self._process:
            return  # a child that leaves the block: what was added is its parent's to commit
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except Error:
            self.abort()
            raise

    def __del__(self) -> None:
        # Set first in __init__; not there when that never ran.
        handle = getattr(self, "_handle", None)
        if not handle or os.getpid() != self._process:
            return
        # Not a ResourceWarning, which Python hides by default: data are lost.
        warnings.warn(f"dataset {self.path}: a writer was not closed, and uncommitted sequences "
                      "are lost; use `with`, or close()", RuntimeWarning, stacklevel=2)
        self.abort()


def _quoted(key: Union[str, bytes]) -> str:
    return f'"{key}"' if isinstance(key, str) and key.isprintable() else ascii(key)
