"""The dashboard of a busy daemon as a picture: see tests/dashboard/picture.

    picture.py PROGRAMS LIBRARY FILE [--width PIXELS] [--height PIXELS] [--dark]
"""

from __future__ import annotations

import argparse
import pathlib
import time

import browser
import watched

WATCHED_SECONDS = 60  # so that the picture of the throughput has something to show


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("library")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, help="default: down to where the clients are")
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()
    with watched.Watched(options.programs, options.library, 5000, 80) as daemon, \
            browser.Browser() as page:
        for rank in ("0", "1"):
            daemon.client("train", "train.py", "--rank", rank, "--ranks", "2", "--pause", "0.04")
        daemon.client("train", "probe.py", "--pause", "0.02")
        daemon.client("held-out", "validate.py", "--pause", "0.1")
        page.look(options.width, options.height or 1100, options.dark)
        page.open(daemon.address + "/")
        page.wait_for("document.querySelectorAll('tbody tr').length > 4")
        time.sleep(WATCHED_SECONDS)
        if options.height is None:
            bottom = page.run("document.querySelector('.positions').getBoundingClientRect().bottom")
            page.look(options.width, round(bottom) + 16, options.dark)
            time.sleep(2)  # the charts follow
        page.picture(options.file, whole=False)
    print(f"{options.file}: {options.file.stat().st_size} bytes")


main()
