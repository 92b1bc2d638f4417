"""The dashboard in a real Chromium, against a daemon that stands still.

    dashboard_test.py PROGRAMS LIBRARY

Clients hold batches and take no more, so that all figures but the times stay as they are. Every
figure that the page shows must be what /stats says, as a value and as people read it.
"""

from __future__ import annotations

import html.parser
import json
import pathlib
import re
import sys
import urllib.request
from typing import Any, Dict, List, Optional, Tuple

import browser
import watched

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
FIGURES = 6 + 2 * 26  # of the daemon, and of two feeds without clients
CLIENT_FIGURES = 7
OPEN_ALL = "document.querySelectorAll('details').forEach(fold => { fold.open = true; })"
SHOWN_UPTIME = "JSON.parse(document.querySelector('[data-key=uptime_seconds]').dataset.value)"
UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
         "Ki": 2.0 ** 10, "Mi": 2.0 ** 20, "Gi": 2.0 ** 30, "Ti": 2.0 ** 40}
TIMES = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Figures(html.parser.HTMLParser):
    """Key, value and text of every element that has a data-key; tags and all text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Dict[str, Tuple[Any, str]] = {}
        self.tags: List[str] = []
        self.text = ""
        self.open: Optional[Tuple[str, Any]] = None

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        named = dict(attributes)
        if "data-key" in named:
            self.open = (named["data-key"], json.loads(named["data-value"]))
            self.found[self.open[0]] = (self.open[1], "")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open is not None:
            key, value = self.open
            self.found[key] = (value, self.found[key][1] + data)

    def handle_endtag(self, tag: str) -> None:
        self.open = None


def look_up(stats: Any, path: str) -> Any:
    for part in path.split("."):
        stats = stats[int(part)] if isinstance(stats, list) else stats[part]
    return stats


def read_aloud(text: str) -> Optional[float]:
    """The number that a figure's text says; None when it says that there is none."""
    if text == "–":
        return None
    match = re.fullmatch(r"(?:(?:epoch \d+, )?step )?([\d.,]+) ?(.*?)", text)
    assert match is not None, text
    number, unit = float(match[1].replace(",", "")), match[2]
    if unit == "%":
        return number / 100
    if unit in TIMES:
        return number * TIMES[unit]
    prefix = re.fullmatch(r"([kKMGT]i?)? ?(B/s|B|/s|of \d+|batch|batches)?", unit)
    assert prefix is not None, text
    return number * UNITS[prefix[1] or ""]


def check_figure(key: str, shown: Tuple[Any, str], before: Any, after: Any) -> None:
    """What the page shows lies between what /stats said before and after."""
    value, text = shown
    least, most = look_up(before, key), look_up(after, key)
    if not isinstance(value, (int, float)):
        may_change = key.endswith("text") or least is None or most is None
        assert value == least == most or (may_change and value in (least, most)), \
            (key, least, value, most)
        assert text == ("–" if value is None else value), (key, text, value)
        return
    if least is None or most is None:  # there was none yet, or is none any more
        least = most = most if least is None else least
    assert min(least, most) <= value <= max(least, most), (key, least, value, most)
    spoken = read_aloud(text)
    # Three digits are shown at least, shares with one place of a percent.
    coarse = 0.0006 if text.endswith("%") else 0.0051 * abs(value)
    assert spoken is not None and abs(spoken - value) <= coarse + 1e-9, (key, text, value)


def shown_figures(page: browser.Browser, least: int) -> Figures:
    page.wait_for(f"document.querySelectorAll('[data-key]').length >= {least}")
    figures = Figures()
    figures.feed(page.run("document.body.outerHTML"))
    return figures


def check_page(daemon: watched.Watched, page: browser.Browser, least: int) -> Figures:
    """Opens the page, which takes /stats after us and before we take it again. Rates rise and fall
    with each second's sample, so it is opened again when one was taken meanwhile."""
    for _ in range(20):
        before = daemon.stats()
        page.open(daemon.address + "/?once")
        page.wait_for("location.search === '?once'")
        figures = shown_figures(page, least)
        after = daemon.stats()
        if [feed["rates"] for feed in before["feeds"]] == [feed["rates"] for feed in after["feeds"]]:
            break
    for key, shown in figures.found.items():
        if key == "resident_bytes":  # rises and falls by itself
            assert 0.5 * before[key] < shown[0] < 2 * after[key]
        else:
            check_figure(key, shown, before, after)
    return figures


def check_headers(daemon: watched.Watched) -> None:
    with urllib.request.urlopen(daemon.address + "/", timeout=watched.SECONDS) as answer:
        policy = answer.headers["Content-Security-Policy"]
        page = answer.read().decode()
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy, policy
    # Nothing is loaded: no address stands where a browser would fetch it from.
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"'](?!data:,|stats|metrics|readyz)", outside), outside


def check_still(daemon: watched.Watched, page: browser.Browser) -> int:
    """Clients hold batches and take no more; one of them has a name that is no name."""
    assert "No client has subscribed." in check_page(daemon, page, FIGURES).text
    daemon.client("train", HOSTILE, "--hold", "3", "--rank", "0", "--ranks", "2")
    daemon.client("train", "steady", "--hold", "2", "--rank", "1", "--ranks", "2")
    seen: List[Any] = []

    def stands_still() -> bool:
        seen.append([(feed["slots"], feed["counters"], feed["rates"], feed["verdict"]["text"])
                     for feed in daemon.stats()["feeds"]])
        return len(seen) > 10 and all(each == seen[-1] for each in seen[-10:])

    watched.eventually(stands_still, "figures that stand still")
    figures = check_page(daemon, page, FIGURES + 2 * CLIENT_FIGURES)
    ranks = page.run("[...document.querySelectorAll('td.rank')].map(cell => cell.innerText)")
    assert ranks == ["0 / 2", "1 / 2"], ranks
    held = page.run("[...document.querySelectorAll('td.held')].map(cell => cell.innerText)")
    assert len(held) == 2, held
    assert all(re.fullmatch(r"4 of 4 \([\d.]+ m?s\)", text) for text in held), held
    assert HOSTILE in figures.text and "img" not in figures.tags
    # A name from right to left turns nothing around it.
    names = page.run("[...document.querySelectorAll('td.name bdi')].map(name => name.textContent)")
    assert names[0].startswith(HOSTILE) and names[1].startswith("steady"), names
    return len(figures.found)


def check_background(page: browser.Browser) -> None:
    """A page that no one sees is not drawn; once it is seen again it shows what came last."""
    hide = ("Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
            "document.dispatchEvent(new Event('visibilitychange'));" + SHOWN_UPTIME)
    begin = page.run(hide % "true")
    page.wait_for(f"latest.uptime_seconds > {begin} + 1.5")
    assert page.run(SHOWN_UPTIME) == begin
    assert page.run(hide % "false") >= begin + 1.5


# The least contrast of any text with what lies behind it, as WCAG 2.1 defines it.
CONTRAST = """(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha] = parts(getComputedStyle(at).backgroundColor);
      if (alpha === undefined || alpha > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("body *")].filter(element => element.offsetParent &&
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  return Math.min(...texts.map(element => {
    const pair = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  }));
})()"""


def check_colours(page: browser.Browser) -> None:
    """Readable by day and by night, the charts too, whose colours are drawn and not styled."""
    inks = []
    for dark in (False, True):
        page.look(1400, 900, dark)
        page.wait_for("Chart.defaults.color === colour('faint')")
        assert page.run(CONTRAST) >= 4.5, (dark, page.run(CONTRAST))
        inks.append(page.run("document.querySelector('.feed').throughput.data.datasets[0]"
                             ".borderColor"))
        assert page.run("document.querySelectorAll('.feed canvas').length") == 4
    assert inks[0] != inks[1], inks


def check_marks(page: browser.Browser) -> None:
    """Beside the curve of the throughput stand round figures, however much it is."""
    steps = page.run("[0, 1, 5e5, 205 * 2 ** 20, 2.5e9, 7e12].map(most => byteStep(most))")
    for most, step in zip((0, 1, 5e5, 205 * 2 ** 20, 2.5e9, 7e12), steps):
        unit = max(size for size in (1, 2 ** 10, 2 ** 20, 2 ** 30, 2 ** 40) if size <= step)
        assert step / unit in (1, 2, 5, 10, 20, 50, 100, 200, 256, 512), (most, step)
        assert most <= 4 * step, (most, step)
    marks = page.run("document.querySelector('.feed').throughput.scales.y.ticks.map(t => t.label)")
    assert 2 <= len(marks) <= 5 and marks[0] == "0 B/s", marks
    assert all(re.fullmatch(r"\d+(\.[05]0?)? ([KMGT]i)?B/s", mark) for mark in marks), marks


def check_live(daemon: watched.Watched, page: browser.Browser) -> None:
    """Time passes on the page, on a phone as on a wall, and what is lost is said to be."""
    page.open(daemon.address + "/")
    page.wait_for("location.search === ''")
    page.wait_for("document.querySelectorAll('.fold').length === 2")
    page.run(OPEN_ALL)  # what is idle, and plans, lie folded
    shown_figures(page, FIGURES)  # waits until all are there
    page.run(OPEN_ALL)
    for width in (360, 2560):
        page.look(width, 900)
        begin = page.run(SHOWN_UPTIME)
        page.wait_for(f"{SHOWN_UPTIME} > {begin} + 1.5")
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("document.getElementById('connection').dataset.state") == "live"
    check_background(page)
    check_colours(page)
    check_marks(page)
    page.wait_for("[...document.querySelectorAll('.plan .note')]"
                  ".every(note => note.textContent.startsWith('epoch 0: '))")
    assert not page.complaints, page.complaints
    daemon.stop()
    page.wait_for("document.getElementById('connection').dataset.state === 'lost'")


def main() -> None:
    if browser.program() is None:
        print("dashboard: skipped, there is no chromium")
        return
    with watched.Watched(pathlib.Path(sys.argv[1]), sys.argv[2], 300, 4) as daemon:
        check_headers(daemon)
        with browser.Browser() as page:
            figures = check_still(daemon, page)
            check_live(daemon, page)
    print(f"dashboard: {figures} figures are those of /stats")


if __name__ == "__main__":
    main()
