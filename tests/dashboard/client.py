"""A client that the dashboard shows. Ends with its standard input.

    client.py ENDPOINT FEED NAME [--rank R --ranks N] [--hold BATCHES] [--pause SECONDS]
                                 [--give-up]

Calls itself NAME. With --hold it takes so many batches, says so, and keeps them. Without, it takes
one after the other and rests --pause seconds with each. With --give-up it is a worker of the feed's
queue, gives its first batch back undone, says which one that was, and ends.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading

import batchwright


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("feed")
    parser.add_argument("name")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--hold", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--give-up", action="store_true")
    options = parser.parse_args()
    sys.argv[0] = options.name  # what a client calls itself
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with contextlib.closing(batchwright.connect(options.endpoint)) as connection:
        feed = connection.feed(options.feed)
        if options.give_up:
            batch = feed.subscribe(mode="queue", window=1).next()
            index = batch.index
            del batch
            print(f"holds not {index}", flush=True)
            return
        subscription = feed.subscribe(rank=options.rank, ranks=options.ranks,
                                      window=max(4, options.hold))
        held = [subscription.next() for _ in range(options.hold)]
        print(f"holds {len(held)}", flush=True)
        if options.hold:
            ended.wait()
        while not ended.is_set():
            subscription.next()
            ended.wait(options.pause)


main()
