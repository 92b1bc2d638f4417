#!/usr/bin/python3
"""Fails on a document that names a file which does not exist: references.py ROOT

Looked at are links and `paths` in every *.md, whose first folder is one of the project's; a path may be
relative to the document. NAME in a path stands for any name.
"""

import os
import pathlib
import re
import sys

SKIPPED = {"build", ".git"}


def documents(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        yield from (pathlib.Path(folder) / name for name in files if name.endswith(".md"))


def named(text, tops):
    links = re.findall(r"\]\(([^)#\s]+)\)", text)
    paths = re.findall(r"`([\w./-]+/[\w./-]*)`", text)
    return [path for path in links if "://" not in path] + [
        path for path in paths if path.split("/")[0] in tops and "NAME" not in path]


def main():
    root = pathlib.Path(sys.argv[1])
    tops = {path.name for path in root.iterdir() if path.is_dir() and path.name not in SKIPPED}
    count, missing = 0, []
    for document in documents(root):
        for path in named(document.read_text(), tops):
            count += 1
            if not (root / path).exists() and not (document.parent / path).exists():
                missing.append(f"{document.relative_to(root)} names {path}, which does not exist")
    print("\n".join(missing) or f"{count} files are where the documents say")
    return 1 if missing or not count else 0


sys.exit(main())
