"""Looks on at a feed that a job trains on. Call: onlooker.py JOB, a file of JSON.

It reads epochs in a `for` loop, or takes a batch, holds it for some time, and goes; each some
times. No trial waits for it to be done.
"""
import json
import random
import sys
import time
from pathlib import Path

import batchwright

PATIENCE = 600  # seconds; it is ended with the trial


def read(feed):
    for batch in feed.epoch(0, timeout=PATIENCE):
        if not (batch["features"][0, 0] == batch.ordinals[0]).all():
            raise ValueError(f"batch {batch.index} is not of its sequences")


def hold(feed, seconds):
    with feed.subscribe(window=2, timeout=PATIENCE) as subscription:
        held = subscription.next()
        time.sleep(seconds)
        held.release()


def main():
    job = json.loads(Path(sys.argv[1]).read_text())
    draw = random.Random(job["seed"])
    for _ in range(job["rounds"]):
        with batchwright.connect(job["endpoint"], program="onlooker", reconnect=PATIENCE,
                                 timeout=PATIENCE, inline=job["inline"]) as one:
            if job["reads"]:
                read(one.feed("train"))
            else:
                hold(one.feed("train"), draw.uniform(0.02, 0.3))
        time.sleep(draw.uniform(0, 0.1))


if __name__ == "__main__":
    main()
