#!/usr/bin/python3
"""A second implementation of the random numbers by which rows are made.

    second_draws.py check FOLDER    compares augment.json and draws.json with what it computes
    second_draws.py write FILE      writes draws.json

It is written from storage/features/frontend/DEFINITIONS.md and storage/features/recipe/README.md alone, and shares no
code with the first. Ends with 1 and names the first difference. Needs nothing but Python.
"""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "support"))

from checksum import crc32c  # noqa: E402

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def state(key, stage):
    """`key` has no identity in version 1."""
    if "identity" in key:
        h = mix(mix(mix(key["seed"]) + key["identity"] & MASK) + key["epoch"] & MASK)
    else:
        h = mix(key["seed"] + key["epoch"] & MASK)
    h = mix(h + 64 + stage & MASK)
    return mix(mix(h + key["ordinal"] & MASK) + key["use"] & MASK)


class Stream:
    """The numbers of one stage for one row."""

    def __init__(self, key, stage):
        self.state = state(key, stage)

    def next(self):
        self.state = self.state + STEP & MASK
        return mix(self.state)

    def uniform(self):
        return (self.next() >> 11) * 2.0 ** -53

    def below(self, bound):
        product = (self.next() >> 32) * bound
        while product % 2 ** 32 < 2 ** 32 % bound:
            product = (self.next() >> 32) * bound
        return product >> 32


def identity(key, length, payload):
    """FNV-1a (64 bits) of the key's bytes, the length in 8 bytes and the checksum in 4."""
    value = 0xCBF29CE484222325
    for byte in key + struct.pack("<QI", length, crc32c(payload)):
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def numbers_of(key, stage):
    streams = [Stream(key, stage) for _ in range(3)]
    return {"next": [str(streams[0].next()) for _ in range(4)],
            "uniform": [streams[1].uniform() for _ in range(3)],
            "below_100": [streams[2].below(100) for _ in range(6)]}


def stream_line(key, stage):
    return {**{name: str(value) for name, value in key.items()}, "stage": stage,
            **numbers_of(key, stage)}


def golden():
    """What draws.json holds."""
    payload = bytes(n * 7 % 256 for n in range(1000))
    identities = [{"key": key.decode(), "length": length, "payload": data.hex(),
                   "identity": str(identity(key, length, data))}
                  for key, length, data in ((b"a", 1, b""), (b"sound-0", 500, payload),
                                            ("gr\u00fc\u00dfe/1".encode(), 2 ** 32 - 1, b"\0"))]
    keys = [dict(seed=seed, identity=shard, epoch=epoch, ordinal=ordinal, use=use)
            for seed, shard, epoch, ordinal, use in (
                (0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (0, 0, 1, 0, 0), (7, 12345, 3, 1, 2),
                (MASK, MASK, MASK, MASK, MASK), (2, int(identities[1]["identity"]), 5, 10 ** 6, 1))]
    return {"streams": [stream_line(key, stage) for key in keys for stage in (1, 2, 7, 12)],
            "identities": identities}


def check(folder):
    first = json.loads((folder / "augment.json").read_text())
    for line in first["streams"]:
        key = {name: int(line[name]) for name in ("seed", "epoch", "ordinal", "use")}
        if {name: line[name] for name in ("next", "uniform", "below_100")} != numbers_of(
                key, line["stage"]):
            sys.exit(f"augment.json: stage {line['stage']} of {key} has other numbers")
    second = json.loads((folder / "draws.json").read_text())
    for part, wanted in golden().items():
        for here, there in zip(wanted, second[part]):
            if here != there:
                sys.exit(f"draws.json: {part}: {there} is not {here}")
        if len(wanted) != len(second[part]):
            sys.exit(f"draws.json: {part}: {len(second[part])} lines, not {len(wanted)}")
    # Seed 2's epoch 0 was seed 1's epoch 1: no longer.
    row = dict(epoch=0, ordinal=3, use=0)
    if state(dict(row, seed=2), 4) != state(dict(row, seed=1, epoch=1), 4):
        sys.exit("version 1: seeds and epochs are no longer added")
    if state(dict(row, seed=2, identity=9), 4) == state(dict(row, seed=1, epoch=1, identity=9), 4):
        sys.exit("version 2: an epoch of one seed is one of another")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    if sys.argv[1] == "check":
        check(pathlib.Path(sys.argv[2]))
    else:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(golden(), indent=1) + "\n")


if __name__ == "__main__":
    main()
