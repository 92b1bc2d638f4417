"""What Python adds to a batch: from next() to a tensor of torch, when the batch is there already.

Call: BATCHWRIGHT_BIN=DIR BATCHWRIGHT_LIBRARY=FILE ticket_cost.py [--batches N]
Prints microseconds: median and 9th decile, and of which the C library takes. Each batch has 16 rows
of the small dataset that the tests use; a batch's size makes no difference, for no one reads it.
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import statistics
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3] / "client" / "python")]

import served  # noqa: E402
import batchwright  # noqa: E402
from batchwright import _abi  # noqa: E402

PAUSE = 0.0005  # between two batches, in which the next one arrives: a trainer's step


def tick():
    """As long as a step, without giving the core away."""
    end = time.perf_counter() + PAUSE
    while time.perf_counter() < end:
        pass


def in_python(subscription, batches):
    """Seconds from the call of next() to the tensor."""
    found = []
    while len(found) < batches:
        tick()
        begin = time.perf_counter()
        batch = subscription.next()
        if isinstance(batch, batchwright.Batch):
            tensor = batch.torch("features")
            found.append(time.perf_counter() - begin)
            del tensor
        del batch
    return found


def in_c(subscription, batches):
    """The same of bw_next alone, as ctypes calls it."""
    found, raw = [], ctypes.c_void_p()
    place = ctypes.byref(raw)
    while len(found) < batches:
        tick()
        begin = time.perf_counter()
        status = _abi.next_event(subscription._raw, 60000, place, None)
        if status == _abi.OK:
            found.append(time.perf_counter() - begin)
        _abi.release(raw)
    return found


def show(what, seconds):
    tenths = statistics.quantiles(seconds, n=10)
    print(f"{what:40} median {statistics.median(seconds) * 1e6:6.1f} us   "
          f"9th decile {tenths[-1] * 1e6:6.1f} us")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--batches", type=int, default=5000)
    batches = words.parse_args().batches
    with tempfile.TemporaryDirectory(prefix="bw-") as name:
        folder = pathlib.Path(name)
        daemon = served.Daemon(folder, served.make_dataset(folder), size=16, poison="false").start()
        try:
            with batchwright.connect(daemon.endpoint) as connection:
                feed = connection.feed("train")
                with feed.subscribe(window=4) as subscription:
                    in_python(subscription, 200)  # torch is imported, types are made
                    show("next() and batch.torch(), all of it", in_python(subscription, batches))
                    show("of that bw_next()", in_c(subscription, batches))
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
