#!/usr/bin/env python3
"""A job of a fixed step time: job.py ENDPOINT FEED RANKS STEP RECORD [--keeps]

Its ranks wait for each other at every step, as at a collective, and then compute for STEP seconds. RECORD
is written again after each step of rank 0, as JSON: for each rank its batches, and the seconds for which
its next() has not returned. With --keeps it takes what its window allows and goes no further.
"""
import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "client/python"))

import batchwright  # noqa: E402


class Job:
    def __init__(self, endpoint, feed, ranks, step, record):
        self.endpoint, self.feed, self.ranks, self.step = endpoint, feed, ranks, step
        self.record = Path(record)
        self.barrier = threading.Barrier(ranks)
        self.figures = [{"batches": 0, "waited": 0.0} for _ in range(ranks)]

    def run(self):
        threads = [threading.Thread(target=self.train, args=(rank,), daemon=True)
                   for rank in range(self.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def subscription(self, rank, **more):
        connection = batchwright.connect(self.endpoint, program=f"job-{self.feed}", timeout=120.0,
                                         reconnect=3600.0)
        place = {"rank": rank, "ranks": self.ranks, "ranks_here": self.ranks} if self.ranks > 1 else {}
        return connection.feed(self.feed).subscribe(timeout=3600.0, **place, **more)

    def train(self, rank):
        mine = self.figures[rank]
        batches = iter(self.subscription(rank))
        batch = None
        while True:
            began = time.monotonic()
            batch = next(batches)  # the one before is held until this one has come
            mine["waited"] += time.monotonic() - began
            mine["batches"] += 1
            self.barrier.wait()
            if rank == 0:
                self.write()
            time.sleep(self.step)

    def write(self):
        fresh = self.record.with_suffix(".new")
        fresh.write_text(json.dumps(self.figures))
        fresh.replace(self.record)

    def keep(self):
        subscription = self.subscription(0)
        held = [subscription.next() for _ in range(subscription.grant.window)]
        self.figures[0]["batches"] = len(held)
        self.write()
        threading.Event().wait()


def main():
    endpoint, feed, ranks, step, record = sys.argv[1:6]
    job = Job(endpoint, feed, int(ranks), float(step), record)
    if "--keeps" in sys.argv[6:]:
        job.keep()
    job.run()


if __name__ == "__main__":
    main()
