"""Features of sound in memory, by the daemon's own front end: what a model was trained on, for
serving it.

    features = batchwright.features(samples, 16000, like="whisper", pad_to=480000)   # [T, values]

    front_end = batchwright.FrontEnd(16000, "kaldi", mel_bands=40, snip_edges=False)
    for samples in requests():
        answer(model(front_end(samples)))

Conventions and options are those of `batchwright ingest audio --like` and of a feed's recipe; the
README of storage/features/frontend says what each computes. Nothing is described here a second time: names
and values go to the library as text, and its refusals list what is allowed.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import weakref
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _storage_abi as abi
from ._writer_values import array_of_tensor, is_tensor
from .errors import InvalidArgumentError

__all__ = ["FrontEnd", "features"]

_ALLOWED = ("one channel, [N], of int16 (32768 would be 1), or of float32 or float64 in -1 to 1 that "
            "are finite")
_MOST_RATE = (1 << 32) - 1

# Names and values of options, as text.
_Texts = Tuple[Tuple[str, str], ...]


class FrontEnd:
    """Makes features of sound of one rate, by one convention.

    Threads: any number at once; a front end never changes, and computing releases the GIL. Fork,
    copy and pickle: fine; another process makes the same one.
    """

    def __init__(self, rate: int, like: str = "kaldi", *, features: str = "logmel",
                 **options: Any) -> None:
        """Makes filters and tables, so that calls need not.

        rate: samples a second; sound is not resampled.
        like: htk, kaldi, kaldi-lhotse, kaldi-hires, whisper, nemo, librosa, torchaudio, tacotron2,
            hifigan or variani.
        features: "logmel", "mfcc", or "plp" (kaldi and kaldi-lhotse).
        options: what differs from the convention, by the names that `batchwright ingest audio` and a
            recipe's `options` have: window_ms=25, mel_bands=40, fmin=20, window="hann",
            remove_dc=False. Numbers, True and False, words.
        Errors: InvalidArgumentError, a ValueError, which names the option, what was found and what
        is allowed; LibraryError (libbatchwright-storage is not found).
        """
        self._make(_rate(rate), _word("like", like), _word("features", features), _texts(options))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> FrontEnd:
        """The front end that has these `settings`, which may have been stored with a model.

        Errors: InvalidArgumentError (some are missing, or are none of a front end's), LibraryError.
        """
        made = cls.__new__(cls)
        made._make(0, None, None, _texts(settings))
        return made

    def _make(self, rate: int, like: Optional[str], features: Optional[str],
              options: _Texts) -> None:
        self._library = abi.library()
        texts = (abi.Setting * len(options))(*(
            abi.Setting(name.encode(), value.encode()) for name, value in options))
        given = abi.FrontEndOptions(
            struct_size=ctypes.sizeof(abi.FrontEndOptions), like=like and like.encode(),
            features=features and features.encode(), settings=texts, setting_count=len(texts),
            sample_rate_hz=rate)
        handle = ctypes.c_void_p()
        status = self._library.bw_front_end_open(ctypes.byref(given), ctypes.byref(handle))
        if status != abi.OK:
            raise abi.failed(status)
        self._handle = handle
        weakref.finalize(self, self._library.bw_front_end_close, handle)
        self._values: int = self._library.bw_front_end_values(handle)

    def __call__(self, samples: Any) -> np.ndarray[Any, Any]:
        """The features of one sound: [T, values], float32, T = frames(N).

        samples: [N], N from 0 on: one channel, int16, or floats in -1 to 1, whatever the convention
            multiplies them by. An array, a tensor of torch on the CPU, or what NumPy makes an array
            of. Contiguous int16 and float32 are read in place, and must not be written to during
            the call; float64 is rounded to float32. Sound too short for the convention has T = 0.
        Errors: InvalidArgumentError, a ValueError (another shape or dtype, NaN or infinity),
        DoesNotFitError (out of memory).
        """
        array = _samples(samples)
        made = np.empty((self.frames(len(array)), self._values), np.float32)
        dtype = abi.DTYPES[array.dtype.name]
        sound = abi.Sound(array.__array_interface__["data"][0], len(array), dtype)
        status = self._library.bw_front_end_compute(
            self._handle, ctypes.byref(sound), made.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            made.size)
        if status != abi.OK:
            raise abi.failed(status)
        return made

    def frames(self, samples: int) -> int:
        """Frames of so many samples, as the convention counts them. Errors: InvalidArgumentError."""
        count = _whole(samples)
        if count is None or not 0 <= count < 1 << 62:
            raise InvalidArgumentError(f"frames of {samples!r} samples; allowed: a whole number, 0 "
                                       "or more")
        return int(self._library.bw_front_end_frames(self._handle, count))

    @property
    def values(self) -> int:
        """Values of one frame."""
        return self._values

    @property
    def bands(self) -> int:
        """Mel bands; `values` counts cepstra, and an energy beside the bands."""
        return int(self.settings["mel_bands"])

    @property
    def rate(self) -> int:
        """Samples a second."""
        return int(self.settings["sample_rate_hz"])

    @property
    def like(self) -> str:
        """The convention."""
        return self.settings.get("like", "htk")

    @property
    def settings(self) -> Dict[str, str]:
        """All by which features are made, as text: what every front end has, and what differs from
        convention htk. from_settings() makes the same front end of it."""
        count = self._library.bw_front_end_setting_count(self._handle)
        found = (self._library.bw_front_end_setting_at(self._handle, i).contents
                 for i in range(count))
        return {each.name.decode(): each.value.decode() for each in found}

    def __reduce__(self) -> Any:
        return _from_settings, (self.settings,)

    def __repr__(self) -> str:
        return (f"<batchwright.FrontEnd like {self.like}, {self.rate} Hz, {self.values} values a "
                "frame>")


def features(samples: Any, rate: int, like: str = "kaldi", *, features: str = "logmel",
             **options: Any) -> np.ndarray[Any, Any]:
    """The features of one sound: [T, values], float32. See FrontEnd, one of which is made for each
    combination of rate, convention and options, and kept while it is among the last 32.

    Threads: any; computing releases the GIL.
    Errors: InvalidArgumentError, a ValueError; DoesNotFitError, LibraryError.
    """
    return _kept(_rate(rate), _word("like", like), _word("features", features),
                 _texts(options))(samples)


@functools.lru_cache(maxsize=32)
def _kept(rate: int, like: str, kind: str, options: _Texts) -> FrontEnd:
    return FrontEnd(rate, like, features=kind, **dict(options))


def _from_settings(settings: Mapping[str, str]) -> FrontEnd:
    return FrontEnd.from_settings(settings)


def _whole(value: Any) -> Optional[int]:
    try:
        return None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return None


def _rate(rate: Any) -> int:
    found = _whole(rate)
    if found is None or not 1 <= found <= _MOST_RATE:
        raise InvalidArgumentError(f"rate {rate!r}; allowed: a whole number of samples a second, 1 "
                                   f"to {_MOST_RATE}")
    return found


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} is of type {type(value).__name__}; allowed: str")
    return value


def _texts(options: Mapping[str, Any]) -> _Texts:
    return tuple((name, _text(name, value)) for name, value in options.items())


def _text(name: str, value: Any) -> str:
    """A value as the library's options have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    raise InvalidArgumentError(f"{name} is of type {type(value).__name__}; allowed: numbers, True "
                               "and False, words")


def _refused(found: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"samples are {found}; allowed: {_ALLOWED}")


def _array(given: Any) -> np.ndarray[Any, Any]:
    try:
        if is_tensor(given):
            return array_of_tensor(given)
        if isinstance(given, np.ma.MaskedArray):
            raise ValueError("a masked array: use .filled()")
        array = np.asarray(given)
    except Exception as error:
        found = str(error) if is_tensor(given) or isinstance(given, np.ndarray) else (
            f"a {type(given).__name__} that NumPy cannot take: {error}")
        raise _refused(found) from None
    if array.dtype == object:
        raise _refused(f"a {type(given).__name__}, which is no array of numbers")
    return array


def _samples(given: Any) -> np.ndarray[Any, Any]:
    """Contiguous int16 or float32 of one dimension. Errors: InvalidArgumentError."""
    array = _array(given)
    if array.ndim != 1:
        raise _refused(f"of shape {list(array.shape)}")
    native = array.dtype.newbyteorder("=")
    if native not in (np.int16, np.float32, np.float64):
        raise _refused(f"of dtype {array.dtype.name}")
    # What is too large for float32 becomes infinite, and is refused as that.
    with np.errstate(over="ignore"):
        return np.require(array, native if native == np.int16 else np.float32, ("C", "A"))
