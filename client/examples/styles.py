"""Sound for example servers: prompts with a target for each frame, noise, and rooms.

Everything is a dataset of sound, written by `batchwright.DatasetWriter`: 16-bit samples, and the
rate as the length of a field without content. Noise and rooms are made here, so that nothing has to
be fetched.
"""

from __future__ import annotations

import pathlib
import sys
import wave
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

import batchwright
from batchwright import FieldSpec

import prompts

RATE = 16000  # Hz, of the features; prompts of a telephone exchange have 8,000
SILENCE = 0  # the target of frames without speech; those of language i have 1 + i
_SPLITS = 3  # datasets to train on: one for each server
_SOUND = {"audio": FieldSpec("int16"), "rate": FieldSpec("uint8", (0,), "independent")}

Sound = Tuple["np.ndarray[Any, Any]", int]  # int16 samples, and Hz


def read_wav(path: pathlib.Path) -> Sound:
    """Errors: SystemExit, naming the file."""
    try:
        with wave.open(str(path)) as file:
            if file.getsampwidth() != 2 or file.getnchannels() != 1:
                sys.exit(f"{path}: {file.getnchannels()} channels of {8 * file.getsampwidth()} "
                         "bits; allowed: one of 16")
            return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
    except (wave.Error, EOFError) as error:
        sys.exit(f"{path}: {error}; allowed: WAV files of 16 bits")


def _values(sound: Sound) -> Dict[str, np.ndarray[Any, Any]]:
    samples, rate = sound
    return {"audio": samples, "rate": np.zeros((rate, 0), np.uint8)}


def write_sounds(path: pathlib.Path, sounds: Dict[str, Sound]) -> None:
    with batchwright.DatasetWriter(path, _SOUND) as writer:
        for key, sound in sounds.items():
            writer.add(key, **_values(sound))


def targets_of(sound: Sound, language: int,
               front_end: batchwright.FrontEnd) -> np.ndarray[Any, Any]:
    """A target for each frame that the front end will make: of the language where it is louder than
    a hundredth of the loudest frame, else SILENCE."""
    samples, rate = sound
    frames = front_end.frames(len(samples) * RATE // rate)
    hop = rate // 100
    loud = [float(np.square(samples[t * hop:(t + 1) * hop].astype(np.float64)).mean() or 0.0)
            if t * hop < len(samples) else 0.0 for t in range(frames)]
    speech = np.asarray(loud) > 1e-4 * max(loud, default=0.0)
    return np.where(speech, 1 + language, SILENCE).astype(np.int32)


def _prompts(folder: pathlib.Path, languages: List[str],
             most: int) -> Iterator[Tuple[str, int, Sound]]:
    """Key, language and sound of up to `most` prompts of each language."""
    for number, language in enumerate(languages):
        files = sorted((folder / language).rglob("*.wav"))
        for path in files[:most]:
            samples, rate = read_wav(path)
            # Half a second to twelve: shorter ones have no frame to tell a language by.
            if 0.5 <= len(samples) / rate <= 12:
                yield f"{language}/{path.relative_to(folder / language)}", number, (samples, rate)


def write_prompts(links: pathlib.Path, work: pathlib.Path, most: int) -> int:
    """Makes train-0 ... and held-out in `work`, of the folders that prompts.split() made. Returns
    how many prompts are trained on."""
    languages = sorted(each.name for each in (links / "train").iterdir())
    if not any((links / "train").rglob("*.wav")):
        sys.exit(f"{links / 'train'}: no .wav file below it")
    fields = {**_SOUND, "targets": FieldSpec("int32", kind="independent",
                                             categories=("silence", *languages)),
              "language": FieldSpec("int32", kind="scalar", categories=tuple(languages))}
    front_end = batchwright.FrontEnd(RATE, "variani")
    count = 0
    for side, paths in (("train", [work / f"train-{i}" for i in range(_SPLITS)]),
                        ("held-out", [work / "held-out"])):
        writers = [batchwright.DatasetWriter(path, fields) for path in paths]
        for key, language, sound in _prompts(links / side, languages, most):
            writers[count % len(writers)].add(key, **_values(sound), language=np.int32(language),
                                              targets=targets_of(sound, language, front_end))
            count += side == "train"
        for writer in writers:
            writer.close()
    return count


def _scaled(sound: np.ndarray[Any, Any]) -> Sound:
    return (sound / np.abs(sound).max() * 20000).astype(np.int16), RATE


def _coloured(random: np.random.Generator, seconds: float, power: float) -> np.ndarray[Any, Any]:
    """Noise whose power falls as frequency to the `power`."""
    samples = int(seconds * RATE)
    spectrum = np.fft.rfft(random.normal(size=samples))
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (power / 2)
    return np.fft.irfft(spectrum, samples)


def _babble(random: np.random.Generator, speech: List[Sound],
            seconds: float) -> np.ndarray[Any, Any]:
    """Eight voices at once."""
    mixed = np.zeros(int(seconds * RATE))
    for _ in range(8):
        voice: List[np.ndarray[Any, Any]] = []
        while sum(map(len, voice)) < len(mixed):
            samples, rate = speech[random.integers(len(speech))]
            voice.append(np.repeat(samples.astype(np.float64), RATE // rate))
        mixed += np.concatenate(voice)[:len(mixed)]
    return mixed


def write_noise(work: pathlib.Path, name: str, speech: List[Sound], seed: int,
                seconds: float = 20) -> List[pathlib.Path]:
    """Five datasets of noise, of which `speech` is what the babble is made of."""
    random = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    hum = sum(np.sin(2 * np.pi * 50 * (1 + random.normal() / 100) * k * time) / k
              for k in range(1, 9))
    steps = np.repeat(random.random(int(4 * seconds)) > 0.6, RATE // 4)
    kinds = {
        "white": _coloured(random, seconds, 0), "pink": _coloured(random, seconds, 1),
        "hum": hum + random.normal(size=len(time)) / 30,
        "machine": _coloured(random, seconds, 0.5) * (0.05 + steps),
        "babble": _babble(random, speech, seconds),
    }
    paths = [work / f"{name}-{kind}" for kind in kinds]
    for path, sound in zip(paths, kinds.values()):
        write_sounds(path, {"noise": _scaled(sound)})
    return paths


def write_rooms(work: pathlib.Path, seed: int) -> List[pathlib.Path]:
    """Five datasets of four impulse responses each: noise that decays by 60 dB in 0.15 to 0.75 s."""
    random = np.random.default_rng(seed)
    paths = []
    for i, decay in enumerate((0.15, 0.3, 0.45, 0.6, 0.75)):
        time = np.arange(int(decay * RATE)) / RATE
        responses = {}
        for k in range(4):
            tail = random.normal(size=len(time)) * 10 ** (-3 * time / decay) / 15
            tail[0] = 1
            responses[f"place-{k}"] = _scaled(tail)
        paths.append(work / f"room-{i}")
        write_sounds(paths[-1], responses)
    return paths
