"""A trainer without torch, which is there at once: takes its rank's batches, and writes a line for
each: time, epoch, step, index, checksum of the values, sequences. A gate lets a test have its say before
the last batches: the trainer waits there until the file exists."""
import argparse
import pathlib
import signal
import time
import zlib

import batchwright
from batchwright._ranks import resolve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=pathlib.Path, required=True, help="folder of the ranks' files")
    parser.add_argument("--epochs", type=int, default=0, help="0: no end")
    parser.add_argument("--batches", type=int, help="end after so many")
    parser.add_argument("--work", type=float, default=0.01, help="seconds a batch takes")
    parser.add_argument("--gate", type=pathlib.Path, help="file to wait for, after --gate-at batches")
    parser.add_argument("--gate-at", type=int)
    parser.add_argument("--stubborn", action="store_true", help="ends by SIGKILL alone")
    options = parser.parse_args()
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rank, ranks = resolve(None, None)
    with batchwright.connect() as connection, \
            (options.log / str(rank)).open("a", buffering=1) as log, \
            connection.feed("train").subscribe(rank=rank, ranks=ranks,
                                               epochs=options.epochs) as subscription:
        for count, batch in enumerate(subscription, 1):
            checksum = zlib.crc32(batch["features"].tobytes())
            log.write(f"{time.time()} {batch.epoch} {batch.step} {batch.index} {checksum} "
                      f"{','.join(map(str, batch.ordinals))}\n")
            if count == options.batches:
                return
            while count == options.gate_at and not options.gate.exists():
                time.sleep(0.01)
            if options.work:
                time.sleep(options.work)


if __name__ == "__main__":
    main()
