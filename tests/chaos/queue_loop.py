"""A worker of a queue whose program fails: exceptions, `break`, interrupts, its end with a batch.

Call: queue_loop.py JOB, a file of JSON. It has one line in its record for each batch that it has
finished, written as the last thing of the work on it. So a batch that counts as done and is not in
the record was lost. Each of its rounds is a subscription and a loop of some kind; one that fails is
followed by another one, until the queue is over.
"""
import gc
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import batchwright

AGAIN = 7  # exit code: started again, it goes on
HELD = []  # what the interpreter's end takes


class Trouble(Exception):
    """Of the program."""


def interrupt(*_):
    raise KeyboardInterrupt


class Worker:
    def __init__(self, job):
        self.job = job
        self.draw = random.Random(f"{job['seed']} {os.getpid()}")
        self.record = os.open(job["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        os.ftruncate(self.record, Path(job["record"]).read_bytes().rfind(b"\n") + 1)
        self.connection = None

    def happens(self, share):
        return self.draw.random() < share

    # ---- the work --------------------------------------------------------------------------

    def train(self, batch):
        """Errors: Trouble, before the work is finished, and sometimes after it."""
        if self.happens(self.job["fails"]):
            self.give_back(batch)
            raise Trouble
        values = batch["features"]
        for row, (ordinal, length) in enumerate(zip(batch.ordinals, batch.lengths)):
            if not (values[row, :length] == ordinal).all():
                raise ValueError(f"batch {batch.index} of epoch {batch.epoch}: row {row} is not of "
                                 f"sequence {ordinal}")
        time.sleep(self.draw.uniform(0, 0.002))
        ordinals = ",".join(map(str, batch.ordinals))
        os.write(self.record, (f"{os.getpid()} {batch.epoch} {batch.index} {ordinals} "
                               f"{batch.position.fingerprint} {batch.rows_lost} "
                               f"{batch.attempt}\n").encode())

    def give_back(self, batch):
        """Says so in the record; what follows has to do it."""
        os.write(self.record, f"returned {os.getpid()} {batch.epoch} {batch.index} "
                              f"{batch.attempt}\n".encode())

    def is_enough(self):
        return self.happens(0.1)

    # ---- kinds of loops: each returns whether the queue is over ------------------------------

    def loop(self, subscription):
        for batch in subscription:
            self.train(batch)
        return True

    def blocks(self, subscription):
        for batch in subscription:
            with batch:
                self.train(batch)
        return True

    def blocks_alone(self, subscription):
        while True:
            batch = subscription.next()
            if batch is None:
                return True
            if isinstance(batch, batchwright.EpochEnd):
                continue
            with batch:
                self.train(batch)

    def short_waits(self, subscription):
        while True:
            try:
                batch = subscription.next(timeout=self.draw.uniform(0.001, 0.05))
            except batchwright.TimedOutError:
                continue
            if batch is None:
                return True
            if isinstance(batch, batchwright.EpochEnd):
                continue
            self.train(batch)
            batch.release()

    def breaks(self, subscription):
        for batch in subscription:
            if self.is_enough():
                self.give_back(batch)
                break
            self.train(batch)
            if self.is_enough():
                batch.done()
                break
        else:
            return True
        return False

    def generator(self, subscription):
        batches = (batch for batch in subscription)
        for batch in batches:
            if self.is_enough():
                self.give_back(batch)
                batches.close()
                return False
            self.train(batch)
        return True

    def garbage(self, subscription):
        """Loops, generators and batches that only the collector finds."""
        batches = iter(subscription)
        for batch in batches:
            if self.is_enough():
                self.give_back(batch)
                cycle = [batch, batches]
                cycle.append(cycle)
                del cycle, batch, batches
                gc.collect()
                return False
            self.train(batch)
        return True

    def closes(self, subscription):
        """A batch outlives its subscription."""
        for batch in subscription:
            self.train(batch)
            if self.is_enough():
                batch.done()
                break
        else:
            return True
        batch = subscription.next()
        if isinstance(batch, batchwright.Batch):
            subscription.close()
            self.train(batch)
            batch.release()
        return False

    def leaves(self, subscription):
        """The interpreter ends with a batch in hand."""
        for batch in subscription:
            if self.is_enough():
                self.give_back(batch)
                HELD.append(batch)
                signal.setitimer(signal.ITIMER_REAL, 0)
                sys.exit(AGAIN)
            self.train(batch)
        return True

    KINDS = (loop, blocks, blocks_alone, short_waits, breaks, generator, garbage, closes, leaves)

    # -----------------------------------------------------------------------------------------

    def round(self):
        self.mark()
        kind = self.draw.choice(self.KINDS)
        if self.happens(self.job["interrupts"]):
            signal.setitimer(signal.ITIMER_REAL, self.draw.uniform(0.0005, 0.1))
        if self.connection is None:
            self.connection = batchwright.connect(
                self.job["endpoint"], program=f"loop {kind.__name__}",
                reconnect=self.job["patience"], timeout=self.job["patience"],
                inline=self.job["inline"])
        subscription = self.connection.feed("train").subscribe(
            mode="queue", window=self.job["window"], until_epoch=self.job["epochs"],
            timeout=self.job["patience"])
        over = kind(self, subscription)
        if self.happens(0.5):
            subscription.close()
        return over

    def mark(self):
        """Before anything can end a subscription: what it had not begun goes to others then."""
        line = json.dumps({"event": "mark", "what": "troubled", "pid": os.getpid()})
        ledger = os.open(self.job["ledger"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        os.write(ledger, f"\n{line}\n".encode())
        os.close(ledger)


def main():
    signal.signal(signal.SIGALRM, interrupt)
    worker = Worker(json.loads(Path(sys.argv[1]).read_text()))
    print(f"ready {os.getpid()}", file=sys.stderr, flush=True)
    over = False
    while not over:
        try:
            over = worker.round()
        except (Trouble, KeyboardInterrupt):
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
