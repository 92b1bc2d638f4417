"""Documents name files that exist, and their examples in Python can be parsed; CONTRIBUTING.md shows
the rooms and arrows of the house."""

import ast
import os
import pathlib
import re

import house
from tree import Breach

_SKIPPED = {"build"}
_ROW = re.compile(r"^\| `([\w/.*]+)`.*?\| [^|]* \| ([^|]*) \|$", re.MULTILINE)
_BARE = re.compile(r"`(?!NAME)([\w-]+\.(?:h|hpp|cpp|c|fbs|py|js))`")


def _documents(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        yield from (pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def _named(text, tops):
    """Links, and `paths` whose first folder is one of the project's. NAME stands for any name."""
    links = re.findall(r"\]\(([^)#\s]+)\)", text)
    paths = re.findall(r"`([\w./-]+/[\w./-]*)`", text)
    return [path for path in links if "://" not in path] + [
        path for path in paths if path.split("/")[0] in tops and "NAME" not in path]


def check_references(tree):
    """A path may be relative to the root or to the document; a source file's bare name may be that
    of any file."""
    root = tree.root
    tops = {path.name for path in root.iterdir() if path.is_dir() and path.name not in _SKIPPED}
    names = {path.rpartition("/")[2] for path in tree.files}
    for document in _documents(root):
        shown = document.relative_to(root).as_posix()
        for path in _named(document.read_text(encoding="utf-8"), tops):
            if not (root / path).exists() and not (document.parent / path).exists():
                yield Breach("references", f"{shown}: {path}",
                             f"{shown} names {path}, which does not exist")
        for name in _BARE.findall(document.read_text(encoding="utf-8")):
            if name not in names:
                yield Breach("references", f"{shown}: {name}",
                             f"{shown} names {name}, which does not exist")


def check_examples(tree):
    """Every block of Python in a document is code."""
    for document in _documents(tree.root):
        shown = document.relative_to(tree.root).as_posix()
        for block in re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"),
                                re.MULTILINE | re.DOTALL):
            try:
                ast.parse(block)
            except SyntaxError as error:
                yield Breach("examples", f"{shown}: {error.text}",
                             f"{shown}: an example in Python: {error.msg}: {error.text}")


def check_readmes(tree):
    """Each room says what it promises, and where to begin reading."""
    for room in house.ROOMS:
        if not (tree.root / room.folder / "README.md").exists():
            yield Breach("readmes", room.folder, f"{room.folder} has no README.md")


def check_contributing(tree):
    """The table of CONTRIBUTING.md: folder, what it knows, the rooms that it may use."""
    text = (tree.root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = {folder: frozenset(re.findall(r"`(\w+)`", sees)) for folder, sees in _ROW.findall(text)}
    for room in house.ROOMS:
        if shown.pop(room.folder, None) != frozenset(room.sees):
            yield Breach("contributing", room.folder, f"CONTRIBUTING.md: {room.folder} may use "
                         f"{' '.join(room.sees) or 'nothing'}, as house.py says")
    for folder in shown:
        yield Breach("contributing", folder, f"CONTRIBUTING.md: {folder} is no room of house.py")
