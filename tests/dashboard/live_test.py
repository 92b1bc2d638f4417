"""The dashboard of a live feed that stands still, in a real Chromium.

    live_test.py PROGRAMS LIBRARY [PICTURE]

A trainer waits for a step, for which a producer has claimed what it does not push. What the page
shows is what /stats says. With PICTURE the page is drawn there.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
import tempfile
from typing import Any, Dict

import browser
import watched
from dashboard_test import HOSTILE, check_page

CONFIG = """
[daemon]
endpoints = ["ipc://{folder}/bw.sock"]
stats = ["127.0.0.1:0"]
memory = "64MiB"

[[feed]]
name = "rollouts"
pool = "1MiB"
[feed.fields]
tokens = {{ dtype = "int32" }}
[feed.live]
step = {{ sequences = 16 }}
max_length = 64
max_staleness = 1
linger = "never"
pool_sequences = 64
"""
PRODUCER_FIGURES = 7
WHY = (r"in the last \d+ s clients waited for batches \d+ % of the time; the next step has 9 of 16 "
       r"sequences; 3 producers are connected, the last sequence came \d+ s ago; 3 are to come")


class Live(watched.Watched):
    """A daemon with a live feed."""

    def __enter__(self) -> Live:
        self.stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bw-dashboard-")))
        (self.folder / "config.toml").write_text(CONFIG.format(folder=self.folder))
        self.start()
        return self

    def producer(self, name: str, *more: str) -> None:
        self.client("rollouts", name, *more, program="producer.py")

    def feed(self) -> Dict[str, Any]:
        return self.stats()["feeds"][0]

    def stop(self) -> None:
        for client in self.clients:
            client.kill()  # the trainer waits for a step, and would for long
        super().stop()


def stand_still(daemon: Live) -> None:
    daemon.client("rollouts", "train.py")
    daemon.producer("actor-1", "--push", "5")
    daemon.producer(HOSTILE, "--push", "4", "--length", "32")
    daemon.producer("slow", "--claim", "3")
    watched.eventually(lambda: daemon.feed()["verdict"]["text"] == "producer-bound"
                       and daemon.feed()["live"]["pool"]["claimed"] == 3, "the verdict")
    watched.eventually(lambda: re.fullmatch(WHY, daemon.feed()["verdict"]["why"]), "its reason")


def check(daemon: Live, page: browser.Browser) -> None:
    figures = check_page(daemon, page, 3 * PRODUCER_FIGURES)
    assert HOSTILE in figures.text and "img" not in figures.tags
    live = {key for key in figures.found if key.startswith("feeds.0.live.")}
    assert len({key for key in live if ".producers." in key}) == 3 * PRODUCER_FIGURES, live
    assert {"feeds.0.live.pool.waiting", "feeds.0.live.version", "feeds.0.live.steps"} <= live
    # The one that never pushed is the first suspect.
    names = page.run("[...document.querySelectorAll('.producers bdi')].map(name => name.textContent)")
    assert [name.startswith(begin) for name, begin in zip(names, ("slow, ", "actor-1, ", HOSTILE))] \
        == [True] * 3, names
    assert page.run("document.querySelector('.live .waits_for').textContent") == "waits for"
    assert page.run("document.querySelector('.verdict p').textContent").endswith("3 are to come")
    assert not page.complaints, page.complaints


def main() -> None:
    if browser.program() is None:
        print("dashboard: skipped, there is no chromium")
        return
    with Live(pathlib.Path(sys.argv[1]), sys.argv[2], 0, 0) as daemon, browser.Browser() as page:
        stand_still(daemon)
        page.look(1400, 900)
        check(daemon, page)
        if len(sys.argv) > 3:
            page.picture(pathlib.Path(sys.argv[3]))


main()
