"""The datasets that a minimal daemon is looked at with. BATCHWRIGHT_LIBRARY and
BATCHWRIGHT_STORAGE_LIBRARY name the libraries of a full build before this is imported."""

import pathlib
import subprocess
import sys
import wave

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client" / "python"))

import batchwright  # noqa: E402

SEQUENCES = 13_100
LARGE = 300_000
RATE = 16_000
SOUND = {"audio": batchwright.FieldSpec("int16"),
         "rate": batchwright.FieldSpec("uint8", shape=(0,), kind="independent")}


def write_features(path):
    """Frames of 13 values, 20 to 119 of them; every value follows from its place."""
    fields = {"features": batchwright.FieldSpec("float32", (13,))}
    with batchwright.DatasetWriter(path, fields) as writer:
        for i in range(SEQUENCES):
            frames = 20 + i * 7919 % 100
            writer.add(f"s{i:05}", features=numpy.full((frames, 13), i, numpy.float32))


def write_large(path):
    """So many sequences that their plan is large, and little else."""
    with batchwright.DatasetWriter(path, {"x": batchwright.FieldSpec("uint8")}) as writer:
        for i in range(LARGE):
            writer.add(str(i), x=numpy.zeros(1, numpy.uint8))


def noise(random, samples):
    return random.integers(-9000, 9000, samples)


def write_sound(path, count, seconds, fades=False):
    random = numpy.random.default_rng(count)
    with batchwright.DatasetWriter(path, SOUND) as writer:
        for i in range(count):
            samples = int(seconds * RATE) + 160 * i
            sound = noise(random, samples)
            if fades:
                sound = sound * numpy.exp(-8 * numpy.arange(samples) / samples)
            writer.add(f"{path.name}-{i:02}", audio=sound.astype(numpy.int16),
                       rate=numpy.zeros((RATE, 0), numpy.uint8))


def write_encoded(full, path):
    """Sound as the bytes of a file."""
    wavs = path.with_name("wav")
    wavs.mkdir()
    with wave.open(str(wavs / "a.wav"), "wb") as file:
        file.setparams((1, 2, RATE, RATE, "NONE", ""))
        file.writeframes(noise(numpy.random.default_rng(1), RATE).astype(numpy.int16).tobytes())
    subprocess.run([full / "batchwright", "ingest", "audio", wavs, "--into", path,
                    "--store", "encoded"], check=True, capture_output=True)


def write(full, folder):
    """All of them; `full` is the folder of a full build's programs."""
    write_features(folder / "data")
    write_large(folder / "large")
    write_sound(folder / "sound", 24, 1.0)
    write_sound(folder / "noise", 3, 3.0)
    write_sound(folder / "rooms", 2, 0.4, fades=True)
    write_encoded(full, folder / "files")
