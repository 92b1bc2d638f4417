"""A daemon for as long as a block lasts: for notebooks, and jobs of one machine.

    with batchwright.serve("data/train", order="semi-sorted", size=32) as endpoint:
        for batch in batchwright.connect(endpoint).feed("train").epoch(0):
            train(batch)

`batchwright run` does the work, so nothing stays behind, however this process ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from .errors import BadConfigurationError, InvalidArgumentError, NotFoundError

__all__ = ["serve"]

_Path = Union[str, "os.PathLike[str]"]
# Says where the daemon is, and ends when this process closes its end of the pipe, or is gone.
_HOLD = 'echo "$BATCHWRIGHT_ENDPOINT"; exec cat >/dev/null'


@contextlib.contextmanager
def serve(dataset: Union[_Path, Sequence[_Path]], *, name: str = "train",
          feed: Optional[Mapping[str, Any]] = None, features: Optional[Mapping[str, Any]] = None,
          styles: Sequence[Mapping[str, Any]] = (), daemon: Optional[Mapping[str, Any]] = None,
          program: Optional[_Path] = None, **plan: Any) -> Iterator[str]:
    """Serves one feed while the block lasts; the value is the endpoint, for connect() and for
    BATCHWRIGHT_ENDPOINT of other processes.

    dataset: its folder, or several that are shards of one.
    name: what the feed is called.
    plan: the keys of [feed.plan], such as order="semi-sorted", cut="dynamic", size=32, seed=7.
    feed, features, daemon: keys of [[feed]], of [feed.features], which is its recipe, and of
        [daemon]; `styles` has those of a [[feed.style]] each. All are as in batchwrightd.toml(5).
    program: the command `batchwright`; None: the one in PATH.
    Errors: BadConfigurationError, with what the daemon says; NotFoundError (no program);
    InvalidArgumentError (a value that no configuration has).
    """
    command = shutil.which(os.fspath(program) if program is not None else "batchwright")
    if command is None:
        raise NotFoundError(f"no program {os.fspath(program or 'batchwright')}: install the package "
                            "batchwright, or name it by `program`")
    paths = [dataset] if isinstance(dataset, (str, bytes, os.PathLike)) else list(dataset)
    tables = {"daemon": daemon or {},
              "feed": {"name": name, "dataset": [os.path.abspath(os.fsdecode(path)) for path in paths],
                       **(feed or {})},
              "feed.plan": plan, "feed.features": features or {}}
    with tempfile.TemporaryDirectory(prefix="batchwright-serve-") as folder:
        config = pathlib.Path(folder) / "batchwrightd.toml"
        # The number makes the text this process's own: its daemon is no other's.
        config.write_text(f"# process {os.getpid()}\n" + _toml(tables, styles))
        with (pathlib.Path(folder) / "log").open("w+") as log:
            process = subprocess.Popen(
                [command, "run", "--config", config, "--", "/bin/sh", "-c", _HOLD],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            with process:  # closes the pipe, and waits for the daemon's end
                endpoint = process.stdout.readline().strip()
                if not endpoint:
                    process.wait()
                    raise BadConfigurationError(_said(log))
                yield endpoint


def _said(log: Any) -> str:
    log.seek(0)
    lines = [line.strip() for line in log if " info " not in line]
    return "; ".join(lines) or "the daemon ended, and did not say why"


def _toml(tables: Mapping[str, Mapping[str, Any]], styles: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for table, values in tables.items():
        if not values and table != "feed":
            continue
        lines.append("[[feed]]" if table == "feed" else f"[{table}]")
        lines += [f"{key} = {_value(key, value)}" for key, value in values.items()]
    for style in styles:
        lines.append("[[feed.style]]")
        lines += [f"{key} = {_value(key, value)}" for key, value in style.items()]
    return "\n".join(lines) + "\n"


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        return _text(key, os.fsdecode(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{each} = {_value(key, of)}" for each, of in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(key, each) for each in value) + "]"
    raise InvalidArgumentError(f"{key} is of type {type(value).__name__}; allowed: numbers, True and "
                               "False, text, paths, lists and mappings of these")


def _text(key: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{key} is {ascii(value)}, which is not UTF-8, and a configuration has nothing else: "
            "rename the folder, or make a link of another name to it") from None
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
