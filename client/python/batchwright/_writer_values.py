"""The values that a writer accepts for a field, and their conversion to plain memory.

An array that is C-contiguous and of the field's dtype is read in place; any other layout is copied
once. A dtype is never converted silently: only Python's own numbers, which have none, are
converted, and those that an integer field cannot hold are refused. Names of categories become their
numbers. A number that is no category, and a value that is not finite, is refused here, for no
reader of the dataset would notice it.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _storage_abi as abi

# As NumPy carries them: it has no bfloat16, whose 16-bit patterns travel as unsigned numbers.
_LONGEST = (1 << 32) - 1  # frames of a value, as a record has them
_NUMPY = {name: np.dtype("uint16" if name == "bfloat16" else name) for name in abi.DTYPES}


@dataclasses.dataclass(frozen=True)
class FieldSpec:
    """One named tensor of every sequence of a dataset.

    dtype: float32, float16, bfloat16, int64, int32, int16 or uint8.
    shape: of one frame: (80,) for 80 values a frame, () for one. A frame takes at most 16 MiB.
    kind: how it relates to the T frames of its sequence.
        "primary": [T, *shape], which sets T; every dataset has exactly one such field.
        "aligned": [T, *shape], one entry a frame of the primary: frame targets.
        "independent": [U, *shape], with a length of its own, which may be 0: token ids.
        "scalar": one value a sequence: a speaker's number. Its shape is (). One vector a sequence, such
        as an embedding, is independent, and given as [1, *shape].
    categories: names of the values 0, 1, ... of an integer field.
    """

    dtype: Any
    shape: Tuple[int, ...] = ()
    kind: str = "primary"
    categories: Tuple[str, ...] = ()


class ValueProblem(Exception):
    """A fault of a value, without the key, which the caller knows."""


def is_tensor(given: Any) -> bool:
    torch = sys.modules.get("torch")  # a program that has a tensor has imported it
    return torch is not None and isinstance(given, torch.Tensor)


def plain_tensor(tensor: Any) -> Any:
    """The tensor without its graph, in memory that NumPy can see. Errors: ValueError, the tensor in
    words."""
    if tensor.device.type != "cpu":
        raise ValueError(f"a tensor on {tensor.device}, which is not the CPU: use .cpu()")
    if tensor.layout != sys.modules["torch"].strided:
        raise ValueError(f"a tensor of layout {tensor.layout}: use .to_dense()")
    return tensor.detach()


def array_of_tensor(tensor: Any) -> np.ndarray[Any, Any]:
    """A view of the tensor. Errors: ValueError, the tensor in words."""
    plain = plain_tensor(tensor)
    try:
        view: np.ndarray[Any, Any] = plain.numpy()
        return view
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"a tensor that NumPy cannot take: {error}") from error


def dtype_name(dtype: Any) -> str:
    """The name of a dtype given by name, by NumPy or by torch. Errors: ValueError."""
    name = dtype if isinstance(dtype, str) else str(dtype)
    name = name[6:] if name.startswith("torch.") else name
    if name in abi.DTYPES:
        return name
    try:
        name = np.dtype(dtype).name
    except TypeError:
        pass
    if name in abi.DTYPES:
        return name
    raise ValueError(f"dtype {name}; allowed: {', '.join(abi.DTYPES)}")


def normalized(name: str, given: Any, first: bool) -> FieldSpec:
    """A field as declared by the caller, checked. Errors: TypeError, ValueError."""
    if type(given) is tuple:
        raise ValueError(f'field "{name}" is a tuple, {given!r}; write '
                         'FieldSpec("float32", shape=(80,), kind="primary") with what it has')
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - {"dtype", "shape", "kind", "categories"})
        if unknown or "dtype" not in given:
            found = f"has no {unknown[0]!r}" if unknown else "has no dtype"
            raise ValueError(f'field "{name}" {found}; '
                             "dtype, shape, kind and categories are what a field has")
        if not first and "kind" not in given:
            raise ValueError(f'field "{name}" has no kind; allowed: {", ".join(abi.KINDS)} '
                             "(only the first one is primary when nothing is said)")
        spec = FieldSpec(**given)
    elif hasattr(given, "categories"):  # a spec, or the field of a feed
        spec = FieldSpec(given.dtype, given.shape, given.kind, tuple(given.categories or ()))
    else:
        if not first:
            raise ValueError(f'field "{name}" is only a dtype; a FieldSpec, or a '
                             "mapping with dtype, shape and kind, is allowed")
        spec = FieldSpec(given)
    if spec.kind not in abi.KINDS:
        raise ValueError(f'field "{name}": kind {spec.kind!r}; allowed: {", ".join(abi.KINDS)}')
    try:
        dtype = dtype_name(spec.dtype)
        shape = (spec.shape,) if isinstance(spec.shape, int) else tuple(spec.shape)
        shape = tuple(int(extent) for extent in shape)
    except (TypeError, ValueError) as error:
        raise ValueError(f'field "{name}": {error}') from None
    if spec.kind == "scalar" and shape:
        raise ValueError(f'field "{name}": a scalar has no shape. One vector a sequence, such as an '
                         f'embedding, is FieldSpec("{dtype}", shape={shape}, kind="independent"), and '
                         f"is given as [1, {', '.join(map(str, shape))}]")
    if len(shape) > abi.MAX_DIMENSIONS or any(extent < 0 for extent in shape):
        raise ValueError(f'field "{name}": shape {shape}; at most 6 dimensions, each from 0, are '
                         "allowed")
    return FieldSpec(dtype, shape, spec.kind, tuple(str(each) for each in spec.categories))


class Finite:
    """The treatment of values that are NaN or infinite: refused, or accepted and counted."""

    CHOICES = ("refuse", "accept")

    def __init__(self, choice: str) -> None:
        """Errors: ValueError."""
        if choice not in self.CHOICES:
            raise ValueError(f"non_finite is {choice!r}; allowed: {', '.join(self.CHOICES)}")
        self.refused = choice == "refuse"
        self.taken = 0

    def look_at(self, array: np.ndarray[Any, Any], bfloat16: bool) -> Optional[str]:
        """The value's fault, or None."""
        good = (array & 0x7F80) != 0x7F80 if bfloat16 else np.isfinite(array)
        if good.all():
            return None
        bad = int(good.size - np.count_nonzero(good))
        if not self.refused:
            self.taken += bad
            return None
        first = [int(each) for each in np.argwhere(~good)[0]]
        return (f"has {bad} values that are NaN or infinite, the first at {first}; allowed: finite "
                'ones, or all with DatasetWriter(..., non_finite="accept")')


class Slot:
    """A field's place in the table of values that is given to the library."""

    def __init__(self, name: str, field: FieldSpec, value: abi.Value, finite: Finite) -> None:
        self.name = name
        self._finite = finite
        self._numbers = {each: number for number, each in enumerate(field.categories)}
        self.field = field
        self.value = value
        self.dtype = _NUMPY[field.dtype]
        self._ndim = len(field.shape) + (field.kind != "scalar")
        #: Its lengths are all that its sequences have of it.
        self.has_no_content = 0 in field.shape

    def fill_many(self, given: Any) -> np.ndarray[Any, Any]:
        """As fill(), of the values of many sequences, one after the other: [N] for a scalar."""
        if self.field.kind != "scalar":
            return self.fill(given)
        array = given if type(given) is np.ndarray else self._as_array(given)
        if array.dtype != self.dtype:
            array = self._of_dtype(array, given)
        if array.ndim != 1:
            raise self._problem(f"{self.field.dtype} of shape {list(array.shape)}, for many sequences")
        self.check_numbers(array)
        return np.ascontiguousarray(array)

    def fill(self, given: Any) -> np.ndarray[Any, Any]:
        """Points the slot to the bytes of `given`. The returned object holds them, and must live
        until they are copied. Errors: ValueProblem.
        """
        array = given if type(given) is np.ndarray else (
            self._of_length(given) if self.has_no_content else self._as_array(given))
        if array.dtype is not self.dtype and array.dtype != self.dtype:
            array = self._of_dtype(array, given)
        shape = array.shape
        if shape[1:] != self.field.shape or array.ndim != self._ndim:
            array = self._of_shape(array)
            shape = array.shape
        self.check_numbers(array)
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        value = self.value
        value.data = array.__array_interface__["data"][0]
        value.bytes = array.nbytes
        value.length = shape[0] if self._ndim > len(self.field.shape) else 1
        return array

    def check_numbers(self, array: np.ndarray[Any, Any]) -> None:
        if self._numbers and array.size:
            least, most = int(array.min()), int(array.max())
            if least < 0 or most >= len(self._numbers):
                found = least if least < 0 else most
                raise ValueProblem(f'field "{self.name}" has the value {found}; allowed: 0 to '
                                   f"{len(self._numbers) - 1}, for its categories are "
                                   f"{self._categories()}")
        bfloat16 = self.field.dtype == "bfloat16"
        if bfloat16 or self.dtype.kind == "f":
            wrong = self._finite.look_at(array, bfloat16)
            if wrong is not None:
                raise ValueProblem(f'field "{self.name}" {wrong}')

    def _categories(self) -> str:
        shown = list(self._numbers)[:10]
        return ", ".join(shown) + ", ..." * (len(self._numbers) > len(shown))

    def _allowed(self) -> str:
        """The allowed shape and dtype of a value, as text."""
        frames = {"scalar": "", "independent": "U"}.get(self.field.kind, "T")
        extents = ", ".join([frames] * bool(frames) + [str(each) for each in self.field.shape])
        pattern = ", as a tensor of torch or as uint16 patterns"
        return (f"{self.field.dtype} of shape [{extents}]"
                + (pattern if self.field.dtype == "bfloat16" else ""))

    def _problem(self, found: str) -> ValueProblem:
        return ValueProblem(f'field "{self.name}" is {found}; allowed: {self._allowed()}')

    def _as_array(self, given: Any) -> np.ndarray[Any, Any]:
        if isinstance(given, str) or (isinstance(given, (list, tuple)) and given and
                                      all(isinstance(each, str) for each in given)):
            return self._of_names(given)
        if is_tensor(given):
            return self._of_tensor(given)
        if isinstance(given, (bytes, bytearray)) and self.field.dtype == "uint8":
            return np.frombuffer(given, np.uint8)
        if isinstance(given, np.ma.MaskedArray):
            raise self._problem("a masked array: use .filled()")
        if isinstance(given, np.ndarray):
            return np.asarray(given)
        if isinstance(given, (bool, int, float, list, tuple, np.generic)):
            return self._of_numbers(given)
        try:
            if hasattr(given, "__dlpack__") and hasattr(np, "from_dlpack"):
                return np.from_dlpack(given)
            array = np.asarray(given)
        except Exception as error:
            found = f"a {type(given).__name__} that NumPy cannot take: {error}"
            raise self._problem(found) from error
        if array.dtype == object:
            raise self._problem(f"a {type(given).__name__}, which is not an array")
        return array

    def _of_tensor(self, tensor: Any) -> np.ndarray[Any, Any]:
        try:
            if not str(tensor.dtype).endswith("bfloat16"):
                return array_of_tensor(tensor)
            tensor = plain_tensor(tensor)
        except ValueError as error:
            raise self._problem(str(error)) from error
        if self.field.dtype != "bfloat16":
            raise self._problem(f"bfloat16 of shape {list(tensor.shape)}")
        torch = sys.modules["torch"]
        found: np.ndarray[Any, Any] = tensor.contiguous().view(torch.int16).numpy()
        return found.view(np.uint16)

    def _of_length(self, given: Any) -> np.ndarray[Any, Any]:
        """The value of a field without content by its length."""
        if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, np.integer)):
            return self._as_array(given)
        if not 0 <= given <= _LONGEST:
            raise ValueProblem(f'field "{self.name}" is {given}; allowed: its length, 0 to {_LONGEST}')
        return np.empty((int(given), *self.field.shape), self.dtype)

    def _of_names(self, given: Any) -> np.ndarray[Any, Any]:
        """Converts a category's name, or several."""
        found = "a str" if isinstance(given, str) else "a list of str"
        if not self._numbers:
            hint = ("; text is given as bytes: .encode()" if self.field.dtype == "uint8" else
                    "; text has a field of uint8, and is given as bytes")
            raise ValueProblem(f'field "{self.name}" is {found}; allowed: {self._allowed()}{hint}')
        try:
            return np.asarray([self._numbers[each] for each in given] if not isinstance(given, str)
                              else self._numbers[given], self.dtype)
        except KeyError as error:
            raise ValueProblem(f'field "{self.name}" has no category {error.args[0]!r}; it has '
                               f"{self._categories()}") from None

    def _of_numbers(self, given: Any) -> np.ndarray[Any, Any]:
        """Converts Python's own numbers, which have no dtype."""
        try:
            found = np.asarray(given)
        except ValueError:
            raise self._problem("ragged: its rows have different lengths") from None
        if found.dtype == object:
            raise self._problem("ragged, or has what is no number in it")
        if found.shape == (0,):
            return np.empty((0, *self.field.shape), self.dtype)
        whole = self.dtype.kind != "f"
        if self.field.dtype == "bfloat16" or found.dtype.kind not in ("biu" if whole else "biuf"):
            raise self._problem(f"numbers that NumPy takes for {found.dtype}")
        with np.errstate(over="ignore"):
            array = found.astype(self.dtype)
        held = np.array_equal(array, found) if whole else (
            np.array_equal(np.isfinite(array), np.isfinite(found)))
        if not held:
            raise self._problem(f"numbers from {found.min()} to {found.max()}")
        return array

    def _of_dtype(self, array: np.ndarray[Any, Any], given: Any) -> np.ndarray[Any, Any]:
        # As ml_dtypes makes them for NumPy.
        if self.field.dtype == "bfloat16" and array.dtype.name == "bfloat16":
            return np.ascontiguousarray(array).view(np.uint16)
        name = array.dtype.name if array.dtype.isnative else f"{array.dtype.name}, big-endian,"
        problem = self._problem(f"{name} of shape {list(array.shape)}")
        whole = self.dtype.kind in "iu"
        if self.field.dtype == "bfloat16" or array.dtype.kind not in ("iub" if whole else "f"):
            raise problem
        by = (f".to(torch.{self.field.dtype})" if type(given).__module__.startswith("torch") else
              f'.astype("{self.field.dtype}")')
        raise ValueProblem(f"{problem}; {by} converts it")

    def _of_shape(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.field.kind == "scalar" and array.shape in ((), (1,)):
            return array.reshape(())
        raise self._problem(f"{self.field.dtype} of shape {list(array.shape)}")


def slots_of(fields: Mapping[str, FieldSpec], values: Any,
             finite: Finite) -> Tuple[Slot, ...]:
    """A slot for each field, in their order."""
    return tuple(Slot(name, field, value, finite)
                 for (name, field), value in zip(fields.items(), values))


class Parts:
    """The values of many sequences, which lie one after the other."""

    def __init__(self, slots: Sequence[Slot], values: Mapping[str, Any], lengths: Any,
                 count: int) -> None:
        """Errors: ValueProblem."""
        by_name = dict(lengths) if isinstance(lengths, Mapping) else {}
        unknown = set(by_name) - {slot.name for slot in slots}
        if unknown:
            raise ValueProblem(f'there are lengths of "{min(unknown)}", which is no field')
        primary = next(slot for slot in slots if slot.field.kind == "primary")
        frames = by_name.get(primary.name, None if isinstance(lengths, Mapping) else lengths)
        self._rows: List[Tuple[abi.Value, List[Any], List[int], List[int]]] = []
        self._kept: List[np.ndarray[Any, Any]] = []  # the memory that the addresses are of
        for slot in slots:
            given, own = values[slot.name], by_name.get(slot.name)
            if slot.field.kind == "scalar":
                own = 1
            elif slot.field.kind == "independent" and own is None:
                if not slot.has_no_content:
                    raise ValueProblem(f'field "{slot.name}" is independent, and has no lengths of its '
                                       f'own; allowed: lengths={{"{slot.name}": [...], ...}}')
                found = _lengths_of(slot, given, count).tolist()
                self._rows.append((slot.value, [None] * count, [0] * count, found))
                continue
            elif own is None:
                own = 1 if frames is None else frames
            self._add(slot, given, _lengths_of(slot, own, count))

    def _add(self, slot: Slot, given: Any, lengths: np.ndarray[Any, Any]) -> None:
        array = slot.fill_many(given)
        total = int(lengths.sum())
        if array.shape[0] != total:
            raise ValueProblem(f'field "{slot.name}" has {array.shape[0]} frames, and its lengths are '
                               f"{total} together")
        self._kept.append(array)
        frame = array.dtype.itemsize
        for extent in slot.field.shape:
            frame *= extent
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else lengths
        base = array.__array_interface__["data"][0]
        self._rows.append((slot.value, (base + starts * frame).tolist(), (lengths * frame).tolist(),
                           lengths.tolist()))

    def point_to(self, number: int) -> None:
        """Has the table of values hold those of this sequence."""
        for value, addresses, sizes, lengths in self._rows:
            value.data, value.bytes, value.length = addresses[number], sizes[number], lengths[number]


def _lengths_of(slot: Slot, given: Any, count: int) -> np.ndarray[Any, Any]:
    """int64 [count]: one for all, or one each. Errors: ValueProblem."""
    found = np.asarray(array_of_tensor(given) if is_tensor(given) else given)
    found = found.astype(np.int64) if found.shape == (0,) else found
    if found.dtype.kind not in "iu" or found.shape not in ((), (count,)):
        raise ValueProblem(f'the lengths of field "{slot.name}" are {found.dtype} of shape '
                           f"{list(found.shape)}; allowed: whole numbers of shape [{count}]")
    wrong = found[(found < 0) | (found > _LONGEST)]
    if wrong.size:
        raise ValueProblem(f'the lengths of field "{slot.name}" have {wrong.flat[0]}; allowed: 0 to '
                           f"{_LONGEST}")
    return np.broadcast_to(found, (count,)).astype(np.int64)
