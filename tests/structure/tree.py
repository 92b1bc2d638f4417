"""A tree of source files, read once, and what a check finds in it."""

import functools
import os
import pathlib
from dataclasses import dataclass

from cpp import Parsed, without_comments

TOPS = ("formats", "storage", "daemon", "client", "tests")
CPP = {".h", ".hpp", ".c", ".cpp", ".cu"}
SOURCES = CPP | {".py", ".js"}
SKIPPED = {"__pycache__", "build"}


@dataclass(frozen=True)
class Breach:
    """A rule that is broken. `what` is what an exception names it by."""

    rule: str
    what: str
    text: str
    figure: int = 0  # for a limit: what was found


class Tree:
    """The files below `root`, by their paths relative to it, in order."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(path for top in TOPS for path in self._below(top))

    def _below(self, top):
        for folder, folders, names in os.walk(self.root / top):
            folders[:] = [name for name in folders
                          if name not in SKIPPED and not name.startswith(".")]
            for name in names:
                yield (pathlib.Path(folder) / name).relative_to(self.root).as_posix()

    def of_kind(self, kinds, tests=True):
        """The files with one of these endings; without `tests`, those of the house alone."""
        return [path for path in self.files
                if os.path.splitext(path)[1] in kinds and (tests or not path.startswith("tests/"))]

    @functools.lru_cache(maxsize=None)
    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    @functools.lru_cache(maxsize=None)
    def code(self, path):
        """A C++ file's text without comments, strings and preprocessor, line by line."""
        return without_comments(self.text(path))

    @functools.lru_cache(maxsize=None)
    def parsed(self, path):
        return Parsed(self.code(path))
