"""What reading alone costs a trainer, on batches that another core has just written.

    trainers_reading.py PLAN SLOTS

It bounds what any loader can reach whose work is done elsewhere. A process on the last core fills a
slot of a shared ring as a daemon would, one on the first core then reads it as trainer.py does, by
turns. Prints {"page", "all"}: medians of the seconds a batch, and "bytes" of it.
"""

import json
import mmap
import os
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

from trainer import FLOAT_BYTES, PAGE_FLOATS

BATCHES = 400


def write(sizes, ring, asked, telling):
    """Fills a slot for each byte that comes. The values are from memory that no cache holds."""
    source = np.ones(1 << 26, np.float32)
    at = 0
    for i, size in enumerate(sizes):
        at = at if at + size <= source.size else 0
        os.read(asked, 1)
        ring[i % len(ring)][:size] = source[at:at + size]
        os.write(telling, b".")
        at += size


def read(sizes, ring, told, asking):
    """Seconds of each batch, by how much of it is read."""
    seconds = {"page": [], "all": []}
    slots = torch.from_numpy(ring)
    for i, size in enumerate(sizes):
        os.write(asking, b".")
        os.read(told, 1)
        start = time.perf_counter()
        flat = slots[i % len(ring)][:size]
        (flat[::PAGE_FLOATS] if i % 2 else flat).sum().item()
        seconds["page" if i % 2 else "all"].append(time.perf_counter() - start)
    return seconds


def main():
    torch.set_num_threads(1)
    plan, slots = json.loads(pathlib.Path(sys.argv[1]).read_text()), int(sys.argv[2])
    lengths = plan["lengths"]
    sizes = [max(lengths[row] for row in rows) * len(rows) * plan["bands"]
             for rows in plan["batches"][:BATCHES]]
    memory = mmap.mmap(-1, max(sizes) * slots * FLOAT_BYTES)
    ring = np.frombuffer(memory, np.float32).reshape(slots, max(sizes))
    ring.fill(0)
    asking, telling = os.pipe(), os.pipe()
    cores, child = sorted(os.sched_getaffinity(0)), os.fork()
    os.sched_setaffinity(0, {cores[-1 if child == 0 else 0]})
    if child == 0:
        write(sizes, ring, asking[0], telling[1])
        os._exit(0)
    seconds = read(sizes, ring, telling[0], asking[1])
    os.waitpid(child, 0)
    found = {name: statistics.median(of) for name, of in seconds.items()}
    print(json.dumps({**found, "bytes": statistics.median(sizes) * FLOAT_BYTES}))


if __name__ == "__main__":
    main()
