"""A producer that the dashboard shows. Ends with its standard input.

    producer.py ENDPOINT FEED NAME [--push SEQUENCES] [--length FRAMES] [--claim SEQUENCES]

Pushes so many sequences, says so, and stays. With --claim it then claims so many, and pushes none.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading

import numpy

import batchwright


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("feed")
    parser.add_argument("name")
    parser.add_argument("--push", type=int, default=0)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--claim", type=int, default=0)
    options = parser.parse_args()
    sys.argv[0] = "generate.py"  # what a client calls itself
    # It may wait for room, or for a claim, without end.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    tokens = numpy.arange(options.length, dtype=numpy.int32)
    with contextlib.closing(batchwright.connect(options.endpoint)) as connection, \
            connection.live(options.feed).producer(options.name, area_bytes=1 << 16) as out:
        for _ in range(options.push):
            out.push(tokens=tokens, version=0)
        print(f"holds {options.push}", flush=True)
        if options.claim:
            out.claim(options.claim)
        threading.Event().wait()


main()
