"""Fifty feeds, one of which fails, in a real Chromium: the overview says so on one screen.

    overview_test.py PROGRAMS LIBRARY
"""

from __future__ import annotations

import pathlib
import signal
import sys

import browser
import watched

FEEDS = 50
FAILS = "held-out"
QUEUE = "train"

HEAD = """
[daemon]
endpoints = ["ipc://{folder}/bw.sock"]
stats = ["127.0.0.1:0", "unix://{folder}/stats.sock"]
memory = "1GiB"
feed_grace = "0s"
"""
FEED = """
[[feed]]
name = "%s"
dataset = "{folder}/%s"
slots = 4
%s
[feed.plan]
size = 4
"""
FIRST_ROW = "document.querySelector('#overview tbody tr')"
NAMES = "[...document.querySelectorAll('#overview tbody td.name')].map(cell => cell.textContent)"


def configuration() -> str:
    """Names in an order in which the one that fails is neither first nor last."""
    names = [FAILS if number == 3 else QUEUE if number == 7 else f"corpus-{number:02d}"
             for number in range(FEEDS)]
    queue = 'journal = "{folder}/journal"\nqueue_attempts = 1'
    return HEAD + "".join(FEED % (name, FAILS if name == FAILS else "train",
                                  queue if name == QUEUE else "") for name in names)


def break_dataset(daemon: watched.Watched) -> None:
    with (daemon.folder / FAILS / "data.mdb").open("r+b") as file:
        file.truncate(4 * 4096)
    try:
        daemon.client(FAILS, "probe")
    except AssertionError:
        pass  # it is refused once the feed has failed

    def failed() -> bool:
        return any(feed["state"] == "failed" for feed in daemon.stats()["feeds"])

    watched.eventually(failed, "the feed to fail")


def check_overview(page: browser.Browser) -> None:
    page.wait_for(f"{FIRST_ROW}.dataset.severity === '4'")
    assert page.run(f"{FIRST_ROW}.querySelector('a').textContent") == FAILS
    assert page.run("document.getElementById('connection').textContent") == "1 of 50 feeds failed"
    assert page.run("document.title").startswith("1 of 50 feeds failed")
    assert page.run("document.getElementById('host').textContent")
    # All of them on one screen, and nothing else but folded cards behind.
    bottom = "document.getElementById('overview').getBoundingClientRect().bottom"
    assert page.run(bottom) <= 900, page.run(bottom)
    assert page.run("document.querySelectorAll('.fold[open]').length") == 0
    assert page.run("document.querySelectorAll('canvas').length") == 0


def check_order(page: browser.Browser) -> None:
    """By a click on a column's name, the other way round by a second, and back by a third."""
    worst_first = page.run(NAMES)
    click = "document.querySelector('#overview th.name button').click()"
    page.run(click)
    assert page.run(NAMES) == sorted(worst_first)
    page.run(click)
    assert page.run(NAMES) == sorted(worst_first, reverse=True)
    page.run(click)
    assert page.run(NAMES)[0] == FAILS


def check_card(page: browser.Browser) -> None:
    """A link opens a card, which says why the feed failed, and what to do."""
    page.run(f"location.hash = '#feed-{FAILS}'")
    page.wait_for(f"document.getElementById('feed-{FAILS}').open")
    page.wait_for("document.querySelectorAll('.feed').length === 1")
    text = page.run("document.querySelector('.feed').innerText")
    assert "batchwright verify" in text and text.count("failed") <= 3, text


def check_set_aside(daemon: watched.Watched, page: browser.Browser) -> None:
    """A batch that no worker did is named on the card of its feed, from then on."""
    page.run(f"location.hash = '#feed-{QUEUE}'")
    words = f"document.querySelector('#feed-{QUEUE} .undone')"
    page.wait_for(f"{words} !== null")
    assert page.run(f"{words}.hidden && {words}.textContent === ''")
    daemon.client(QUEUE, "worker", "--give-up")
    page.wait_for(f"!{words}.hidden")
    page.wait_for(f"{words}.textContent === '1 batch of the queue was set aside since the daemon "
                  "started (queue_attempts). Epoch 0 of the queue: batch 0, begun 1 time and not "
                  "done (set aside).'")


def check_words(page: browser.Browser) -> None:
    """Columns, the process's figures, and the events are there, in words."""
    columns = page.run("[...document.querySelectorAll('#overview th')].map(c => c.innerText).join()")
    for column in ("feed", "verdict", "batches/s", "clients", "worst wait", "corrupt", "skipped"):
        assert column in columns.lower(), (column, columns)
    page.wait_for("/core/.test(document.getElementById('process').innerText)")
    assert "clients refused" in page.run("document.getElementById('process').innerText")
    page.wait_for(f"/{FAILS}/.test(document.getElementById('events').textContent)")
    links = page.run("[...document.querySelectorAll('footer a')].map(a => a.pathname)")
    assert links == ["/stats", "/metrics", "/readyz"], links


def check_reload(daemon: watched.Watched, page: browser.Browser) -> None:
    """A refused reload stands on the page until one is taken."""
    configuration_file = daemon.folder / "config.toml"
    good = configuration_file.read_text()
    banner = "document.getElementById('reload')"
    configuration_file.write_text(good + "nonsense = 1\n")
    daemon.process.send_signal(signal.SIGHUP)
    page.wait_for(f"{banner}.dataset.state === 'refused' && !{banner}.hidden")
    assert "nonsense" in page.run(f"{banner}.innerText")
    configuration_file.write_text(good)
    daemon.process.send_signal(signal.SIGHUP)
    page.wait_for(f"{banner}.dataset.state === 'taken'")


def main() -> None:
    if browser.program() is None:
        print("dashboard: skipped, there is no chromium")
        return
    watched.CONFIG = configuration()
    with watched.Watched(pathlib.Path(sys.argv[1]), sys.argv[2], 100, 4) as daemon, \
            browser.Browser() as page:
        page.look(1440, 900)
        page.open(daemon.address + "/")
        page.wait_for(f"document.querySelectorAll('.fold').length === {FEEDS}")
        break_dataset(daemon)
        check_overview(page)
        check_order(page)
        check_words(page)
        check_card(page)
        check_set_aside(daemon, page)
        check_reload(daemon, page)
        page.look(390, 844, dark=True)
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert not page.complaints, page.complaints
    print("dashboard: fifty feeds on one screen, the one that failed first")


main()
