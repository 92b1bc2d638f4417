"""The page of `batchwright show` in a real browser: its sound, pictures and labels are the rows'.

    show_test.py PROGRAMS LIBRARY STORAGE_LIBRARY
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, List

import numpy

import browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
RATE = 16000
# A key may be anything; the page must not end its script, nor run what stands in it.
KEYS = ["plain", "</script><script>window.broken = 1</script>", "/*CHART*/ \"quoted\" ü", "damaged"]

CONFIG = """
[[feed]]
name = "train"
dataset = "{folder}/train"
[feed.plan]
size = 2
seed = 5
[feed.features]
like = "kaldi"
speeds = [0.9, 1.1]
aligned = ["phones"]
spec_augment = true
[[feed.style]]
noise = ["{folder}/noise"]
snr_db = [0, 10]
"""


def make_datasets(folder: pathlib.Path) -> None:
    import batchwright
    rate = batchwright.FieldSpec("uint8", shape=(0,), kind="independent")
    fields = {"audio": batchwright.FieldSpec("int16"), "rate": rate}
    random = numpy.random.default_rng(3)
    count = numpy.zeros((RATE, 0), numpy.uint8)
    with batchwright.DatasetWriter(folder / "noise", fields) as writer:
        writer.add("hiss", audio=random.integers(-900, 900, 3 * RATE, numpy.int16), rate=count)
    phones = batchwright.FieldSpec("int32", kind="independent", categories=("a", "b", "c"))
    text = batchwright.FieldSpec("uint8", kind="independent")
    with batchwright.DatasetWriter(folder / "train",
                                   {**fields, "phones": phones, "text": text}) as writer:
        for i, key in enumerate(KEYS):
            samples = RATE + 1600 * i
            sound = 8000 * numpy.sin(numpy.arange(samples) * 0.05 * (i + 1))
            frames = 1 + (samples - 400) // 160
            labels = numpy.minimum(numpy.arange(frames) // 30, 2).astype(numpy.int32)
            # Of another length than the sound's frames: this row cannot be made.
            writer.add(key, audio=sound.astype(numpy.int16), rate=count,
                       phones=labels[:20] if key == "damaged" else labels,
                       text=f"<b>text {i}</b>".encode())


def show(programs: pathlib.Path, folder: pathlib.Path, *options: str) -> List[Any]:
    done = subprocess.run([programs / "batchwright", "show", "--feed-config", folder / "c.toml",
                           "--json", *options], stdout=subprocess.PIPE, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == any("wrong" in row for row in rows), (options, done.returncode)
    return rows


# What the page has of a section, as it is seen and heard.
READ = """[...document.querySelectorAll("section")].map(section => {
  const colours = canvas => {
    const levels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < levels.length; i += 4) seen.add(levels.slice(i, i + 4).join());
    return seen.size;
  };
  return {
    head: section.querySelector("h2").textContent,
    facts: Object.fromEntries([...section.querySelectorAll("dl div")].map(
      one => [one.children[0].textContent, one.children[1].textContent])),
    seconds: [...section.querySelectorAll("audio")].map(player => player.duration),
    waves: [...section.querySelectorAll("canvas.wave")].map(colours),
    pictures: [...section.querySelectorAll(".picture canvas:first-child")].map(
      canvas => [canvas.width, canvas.height, colours(canvas)]),
    masks: [...section.querySelectorAll("canvas.masks")].map(colours),
    labels: [...section.querySelectorAll(".labels span")].map(
      run => [run.textContent, Number(run.style.flexGrow)]),
    wrong: section.querySelector(".wrong")?.textContent,
  };
})"""


def check_section(section: Any, row: Any) -> None:
    assert section["head"] == f"{row['key']} sequence {row['ordinal']}", section
    if "wrong" in row:
        assert section["wrong"] == row["wrong"] and "phones" in row["wrong"], section
        return
    facts = section["facts"]
    assert facts.pop("text") == f"<b>text {row['ordinal']}</b>", facts
    assert facts == row["drawn"], (facts, row)
    assert facts["noise"].endswith("noise: hiss") and facts["speed"] in ("0.9", "1.1"), facts
    for heard, seconds in zip(section["seconds"], (row["stored_seconds"], row["seconds"])):
        assert abs(heard - seconds) < 1e-3, (section, row)
    assert len(section["waves"]) == 2 and min(section["waves"]) >= 2, section
    frames = row["frames"]
    assert [size[:2] for size in section["pictures"]] == [[frames, 80], [frames, 80]], section
    assert min(size[2] for size in section["pictures"]) > 100, section
    assert min(section["masks"]) >= 2, section
    assert [name for name, _ in section["labels"]] == ["a", "b", "c"], section
    assert sum(count for _, count in section["labels"]) == frames, section


def main() -> None:
    programs = pathlib.Path(sys.argv[1])
    if browser.program() is None:
        print("dashboard: skipped, there is no Chromium")
        return
    os.environ["BATCHWRIGHT_LIBRARY"] = sys.argv[2]
    os.environ["BATCHWRIGHT_STORAGE_LIBRARY"] = sys.argv[3]
    sys.path.insert(0, str(ROOT / "client/python"))
    with tempfile.TemporaryDirectory(prefix="bw-show-") as name, browser.Browser() as page:
        folder = pathlib.Path(name)
        make_datasets(folder)
        (folder / "c.toml").write_text(CONFIG.format(folder=folder))
        rows = show(programs, folder, "--epoch", "3", "--html", str(folder / "page.html"), *KEYS)
        assert [row["key"] for row in rows] == KEYS, rows
        page.look(1200, 900)
        page.open((folder / "page.html").as_uri())
        page.wait_for("document.readyState == 'complete' && "
                      "[...document.querySelectorAll('audio')].every(a => a.duration > 0)")
        sections = page.run(READ)
        assert len(sections) == len(rows), sections
        for section, row in zip(sections, rows):
            check_section(section, row)
        assert not page.run("window.broken"), "a key was run as a script"
        assert "4 rows of feed train, epoch 3" in page.run("document.body.textContent")
        assert not page.complaints, page.complaints
        # Chosen by seed and epoch, so that two people see the same ones.
        some = show(programs, folder, "--random", "2", "--epoch", "1")
        assert some == show(programs, folder, "--random", "2", "--epoch", "1")
        assert len({row["ordinal"] for row in some}) == 2
        assert len(show(programs, folder, "--random", "10")) == len(KEYS)
        assert show(programs, folder, KEYS[0], "--epoch", "3") == rows[:1]
    print("dashboard: the page of show is as its rows are")


main()
