"""A producer in Python, for tests/bench/live/run: producer.py ENDPOINT FEED SEQUENCES

Pushes sequences of 400 bytes, 64 at a time. Says "ready", begins at a line, and prints an object, as
bench_live does.
"""

import json
import sys
import time

import batchwright
import numpy

MANY = 64


def main(endpoint, feed, sequences):
    many = {"values": [numpy.full(400, i, numpy.uint8) for i in range(MANY)]}
    with batchwright.connect(endpoint) as connection:
        with connection.live(feed).producer(area_bytes=1 << 28) as out:
            print("ready", flush=True)
            sys.stdin.readline()
            start, pushed = time.monotonic(), 0
            while pushed < sequences:
                pushed += len(out.push_many(many))
            print(json.dumps({"seconds": time.monotonic() - start, "bytes": 400,
                              "sequences": [pushed]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
