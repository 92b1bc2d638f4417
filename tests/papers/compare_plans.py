"""Compares whole plans of `batchwright plan` and of the second planner, batch by batch.

Call: compare_plans.py BATCHWRIGHT
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import second_order_file
import second_planner

ORDERS = [
    {"order": "random"},
    {"order": "sorted"},
    {"order": "semi-sorted", "randomization": 0.1},
    {"order": "semi-sorted", "randomization": 1000.0},
    {"order": "bucket", "bucket_size": 64},
    {"order": "alternated", "bins": 7},
    {"order": "bucket-span", "bucket_span": 60},
    {"order": "bucket-span", "bucket_boundaries": [50, 120, 300, 5000]},
    {"order": "bucket-optimal", "bucket_count": 5},
]
CUTS = [
    {"cut": "fixed", "size": 8, "last": "drop"},
    {"cut": "fixed", "size": 24, "size_multiple": 8},
    {"cut": "dynamic", "size": 4},
    {"cut": "dynamic", "size": 4, "rule": "overrun", "max_size": 30, "last": "drop"},
    {"cut": "frames", "max_frames": 6000, "size_multiple": 8},
    {"cut": "real-frames", "max_frames": 6000, "last": "drop"},
    {"cut": "real-frames", "max_frames": 6000, "max_padded": 6500, "size_multiple": 4},
    {"cut": "real-frames", "max_frames": 6000, "rule": "overrun", "max_padded": 9000,
     "last": "drop"},
    {"cut": "quadratic", "max_frames": 60000, "quadratic_scale": 200, "rule": "overrun"},
]
ENDS = [
    {"shuffle": "off"},
    {"shuffle": "batches", "world": 4, "remainder": "drop"},
    {"shuffle": "groups", "world": 4, "remainder": "spread"},
    {"shuffle": "groups", "world": 3, "remainder": "wrap"},
    {"shuffle": "off", "world": 5, "remainder": "spread"},
]
OTHERS = [
    {"chunk": 40, "hop": 25, "order": "random"},
    {"chunk": 40, "hop": 25, "min_chunk": 30, "min_length": 30, "order": "random"},
    {"chunk": 64, "min_chunk": 20, "min_length": 20, "order": "semi-sorted", "cut": "dynamic"},
    {"chunk": 100, "order": "semi-sorted", "randomization": 0.3, "cut": "dynamic"},
    {"lanes": 6, "unroll": 20, "world": 2, "order": "random"},
    {"lanes": 5, "unroll": 33, "order": "sorted", "last": "drop"},
    {"select": "fixed", "alpha": 0.3, "order": "alternated", "bins": 5},
    {"select": "linear", "usage": 0.55, "flat_after": 9, "floor": 0.2, "epochs": 16},
    {"select": "cosine", "usage": 0.55, "flat_after": 7, "floor": 0.2, "epochs": 16,
     "order": "semi-sorted"},
    {"select": "cosine", "lambda": 0.1, "flat_after": 3, "floor": 0.5, "order": "sorted"},
    {"min_length": 30, "max_length": 200, "order": "semi-sorted", "cut": "dynamic"},
    {"chunk": 100, "length_multiple": 16, "order": "semi-sorted", "cut": "dynamic"},
]
MIXES = [
    {"mix_weights": [0.5, 0.3, 0.2], "order": "random"},
    {"mix_weights": [1.0, 1.0, 5.0], "mix_exhausted": "end", "order": "semi-sorted"},
    {"mix_weights": [1.0, 2.0, 1.0], "select": "fixed", "alpha": 0.4, "order": "sorted"},
    {"mix_weights": [1.0, 4.0, 1.0], "chunk": 40, "hop": 25, "order": "semi-sorted"},
]


def text(value):
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def with_file(settings, folder):
    """The settings as the command takes them: it reads an order file, of which we have the text."""
    if "order_file" not in settings:
        return settings
    (folder / "order").write_text(settings["order_file"])
    return {**settings, "order_file": str(folder / "order")}


def listed(lengths, chance, world):
    """An order file of every form of row, with repeats."""
    lines = ["# rows of a test"]
    for _ in range(world * 30):
        rows = []
        for _ in range(1 + chance.randrange(9)):
            ordinal = chance.randrange(len(lengths) // 2)
            start = chance.choice([0, 0, chance.randrange(lengths[ordinal])])
            count = 1 + chance.randrange(lengths[ordinal] - start)
            row = chance.choice([f"#{ordinal}", f"#{ordinal} {start} {count}"])
            rows.append(row + chance.choice(["", "", " *0", " *0.5", " *-2"]))
        lines.append("\t".join(rows))
    return "\n".join(lines) + "\n"


def listed_cases(lengths, chance):
    """Settings with order files, of which each way to cut has one."""
    ends = [{}, {"world": 5, "remainder": "spread"}, {"world": 3, "remainder": "wrap"}]
    for cut in CUTS:
        for end in ends:
            yield {"order": "file", "order_file": listed(lengths, chance, 1), **cut, **end}
    for world in (1, 4):
        rows = listed(lengths, chance, world).replace("*-2", "*-2\t-")
        yield {"order": "file", "order_file": rows, "cut": "file", "world": world}
    whole = "".join(f"#{chance.randrange(50)}\n" for _ in range(300))
    whole = {"order": "file", "order_file": whole}
    yield {**whole, "lanes": 6, "unroll": 20, "world": 2}
    yield {**whole, "lanes": 5, "unroll": 33, "last": "drop"}


def ours(program, files, settings, epoch):
    call = [program, "plan", "--json", "--batches", "--epoch", str(epoch)]
    for file in files:
        call += ["--lengths", file]
    for name, value in settings.items():
        call += ["--" + name.replace("_", "-"), text(value)]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{settings}: {done.stderr}")
    return json.loads(done.stdout)


def compare(program, folder, lists, settings, epoch):
    files = []
    for i, lengths in enumerate(lists):
        files.append(str(folder / f"lengths{i}"))
        Path(files[-1]).write_text("".join(f"{x}\n" for x in lengths))
    got = ours(program, files, with_file(settings, folder), epoch)
    joined = [x for lengths in lists for x in lengths]
    if settings.get("order") == "file":
        wanted = second_order_file.plan(joined, settings)
    else:
        wanted = second_planner.plan(joined, settings, epoch, [len(x) for x in lists])
    ordinals = [[row[0] for row in batch] for batch in wanted]
    if got["batch_list"] != ordinals:
        raise SystemExit(f"different batches with {settings}, epoch {epoch}, {len(joined)} lengths")
    if "row_list" in got and got["row_list"] != [[list(row[:4]) for row in b] for b in wanted]:
        raise SystemExit(f"different rows with {settings}, epoch {epoch}")
    if "weight_list" in got and got["weight_list"] != [[row[4] for row in b] for b in wanted]:
        raise SystemExit(f"different weights with {settings}, epoch {epoch}")
    frames = sum(row[2] for batch in wanted for row in batch)
    grid = settings.get("length_multiple", 1)
    padded = sum(len(batch) * -(-max(row[2] for row in batch) // grid) * grid for batch in wanted)
    if (got["frames"], got["padded_frames"]) != (frames, padded):
        raise SystemExit(f"different figures with {settings}")


def main(program):
    chance = random.Random(1)
    log_normal = [int(chance.lognormvariate(4.5, 0.6)) + 1 for _ in range(1500)]
    few = [17, 5, 9, 9, 9, 120, 33, 8, 400, 3, 77, 1]
    cases = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for order in ORDERS:
            for cut in CUTS:
                for end in ENDS:
                    settings = {**order, **cut, **end, "seed": chance.choice([0, 7, 2**64 - 1])}
                    compare(program, folder, [log_normal], settings, chance.choice([0, 1, 5]))
                    cases += 1
        for order in ORDERS:
            for cut in CUTS:
                end = ENDS[cases % len(ENDS)]
                settings = {**order, **cut, **end, "length_multiple": chance.choice([8, 50, 300])}
                compare(program, folder, [log_normal], {**settings, "seed": 5}, 1)
                cases += 1
        for settings in OTHERS:
            for epoch in (0, 1, 8):
                compare(program, folder, [log_normal], {**settings, "seed": 3}, epoch)
                cases += 1
        for settings in MIXES:
            for epoch in (0, 4):
                parts = [log_normal[:700], log_normal[700:800], log_normal[800:]]
                compare(program, folder, parts, {**settings, "seed": 3}, epoch)
                cases += 1
        for settings in listed_cases(log_normal, chance):
            compare(program, folder, [log_normal], settings, chance.choice([0, 3]))
            cases += 1
        for order in ORDERS:
            compare(program, folder, [few], {**order, "size": 3, "seed": 11}, 2)
            compare(program, folder, [[5] * 40], {**order, "size": 3, "seed": 11}, 2)
            cases += 2
    print(f"{cases} plans agree batch by batch")


if __name__ == "__main__":
    main(sys.argv[1])
