"""The prompts of a telephone exchange as two datasets: to train on, and held out.

Held out are about a fifth of the texts, in all languages alike: the file name, which says the text,
decides. A text that is held out in one language is held out in all.
"""

from __future__ import annotations

import pathlib
import subprocess
import zlib
from typing import Dict, List, Tuple

SOUNDS = pathlib.Path("/usr/share/asterisk/sounds")
SIDES = ("train", "held-out")
_AUDIO = (".wav", ".flac", ".ogg")


def side_of(name: str) -> str:
    """Of a prompt's name below its language's folder: the same in all languages, everywhere."""
    return SIDES[1] if zlib.crc32(name.encode()) % 5 == 0 else SIDES[0]


def languages(sounds: pathlib.Path) -> List[pathlib.Path]:
    """The folders in `sounds`, each once: Debian's packages have links such as `es` beside the
    folder of a speaker's prompts. A folder that lies there goes before a link to it."""
    folders = sorted((each for each in sounds.iterdir()
                      if each.is_dir() and not each.name.startswith(".")),
                     key=lambda each: (each.is_symlink(), each.name))
    once: Dict[Tuple[int, int], pathlib.Path] = {}
    for folder in folders:
        once.setdefault((folder.stat().st_dev, folder.stat().st_ino), folder)
    return sorted(once.values())


def split(sounds: pathlib.Path, into: pathlib.Path) -> None:
    """Makes the folders `train` and `held-out` in `into`, of links to the files of `sounds`."""
    for language in languages(sounds):
        for file in sorted(language.rglob("*")):
            name = file.relative_to(language)
            if file.suffix.lower() in _AUDIO and "silence" not in name.parts:
                link = into / side_of(name.with_suffix("").as_posix()) / language.name / name
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.resolve())


def ingest(programs: pathlib.Path, folder: pathlib.Path, dataset: pathlib.Path,
           front_end: List[str]) -> None:
    """Errors: subprocess.CalledProcessError, with what the command said."""
    subprocess.run([programs / "batchwright", "ingest", "audio", folder, "--into", dataset,
                    "--label-from-folder", "--on-error", "skip", *front_end], check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def make_datasets(programs: pathlib.Path, sounds: pathlib.Path, work: pathlib.Path,
                  front_end: List[str]) -> None:
    """`work`/train.data and `work`/held-out.data. `front_end` is for `batchwright ingest audio`."""
    split(sounds, work / "links")
    for side in SIDES:
        ingest(programs, work / "links" / side, work / f"{side}.data", front_end)
