"""A daemon of this process: for notebooks, and jobs of one machine.

    with batchwright.serve("data/train", order="semi-sorted", size=32) as endpoint:
        for batch in batchwright.connect(endpoint).feed("train").epoch(0):
            train(batch)

    server = batchwright.serve(train="data/train", valid=FeedConfig("data/dev", order="sorted"),
                               cut="frames", max_frames=6000)        # in a notebook's cell
    server.dashboard, server.log
    server.close()

`batchwright run` does the work, so nothing is left, however this process ends.
"""

from __future__ import annotations

import atexit
import difflib
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _fork, _library
from ._waits import warn
from .connection import connect
from .errors import BadConfigurationError, InvalidArgumentError, NotFoundError

__all__ = ["FeedConfig", "Server", "serve"]

_Path = Union[str, bytes, "os.PathLike[str]"]
_Shards = Union[_Path, Sequence[_Path]]
_Table = Mapping[str, Any]
# Says where the daemon is, and ends when this process closes its end of the pipe, or is gone.
_HOLD = 'echo "$BATCHWRIGHT_ENDPOINT"; exec cat >/dev/null'
_DASHBOARD = re.compile(r"dashboard at (https?://[^\s,\"]+)")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d \S+ (?=warning |error )")
_OPENING = "it is being opened"  # why a feed is absent of which the daemon knows nothing more yet
_LOOK_SECONDS = 0.1  # between two looks whether it is
_MANY = 4  # daemons of one process, as cells that were run again leave them
_PLAN_KEYS = frozenset(
    "select usage alpha beta lambda flat_after floor epochs chunk hop min_chunk lanes unroll "
    "mix_weights mix_exhausted min_length max_length order randomization bins bucket_size "
    "bucket_span bucket_count bucket_boundaries order_file row_weight cut size rule max_frames "
    "max_padded quadratic_scale length_multiple size_multiple max_size last seed shuffle world "
    "remainder".split())

_count = itertools.count()
_all: Set[_Running] = set()


class FeedConfig:
    """A feed of `serve()` with settings of its own, as in
    `serve(train="data/train", valid=FeedConfig("data/dev", order="sorted"), size=32)`.

    dataset: its folder, or several that are shards of one.
    plan: keys of [feed.plan]. They go before those of serve(), which are for all its feeds; None
        leaves one of these out.
    feed: keys of [[feed]], in the same way.
    features, styles: the recipe, and its styles, in place of those of serve(); {} and [] for none.
    """

    __slots__ = ("dataset", "feed", "features", "styles", "plan")

    def __init__(self, dataset: _Shards, *, feed: Optional[_Table] = None,
                 features: Optional[_Table] = None, styles: Optional[Sequence[_Table]] = None,
                 **plan: Any) -> None:
        self.dataset = dataset
        self.feed, self.features, self.styles, self.plan = feed, features, styles, plan

    def __repr__(self) -> str:
        more = "".join(f", {key}={value!r}" for key, value in self.plan.items())
        return f"FeedConfig({self.dataset!r}{more})"

    def _text(self, name: str, shared: FeedConfig) -> str:
        """Its tables. Errors: InvalidArgumentError."""
        features = shared.features if self.features is None else self.features
        # A recipe of its own has styles of its own.
        styles = self.styles
        if self.features is None and styles is None:
            styles = shared.styles
        feed = {"name": name,
                "dataset": [os.path.abspath(os.fsdecode(path)) for path in _shards(self.dataset)],
                **(shared.feed or {}), **(self.feed or {})}
        return "".join([_table("[[feed]]", feed),
                        _table("[feed.plan]", {**shared.plan, **self.plan}),
                        _table("[feed.features]", features or {}),
                        *(_table("[[feed.style]]", style) for style in styles or ())])


class Server(str):
    """The endpoint of a daemon that `serve()` started: text for connect(), and for
    BATCHWRIGHT_ENDPOINT of other processes.

    Lifetime: the daemon ends with close(), with the `with` block, and with this process, however it
    ends; not with this object. Ctrl-C and a notebook's interrupt do not reach it.
    Threads: any. Processes: a copy in another one is the text alone. A forked child does not keep the
    daemon, and cannot end it.
    """

    _running: _Running

    def __new__(cls, endpoint: str, running: _Running) -> Server:
        made = super().__new__(cls, endpoint)
        made._running = running
        return made

    @property
    def dashboard(self) -> Optional[str]:
        """The URL of its page, on this machine's loopback; None where the daemon has none."""
        found = _DASHBOARD.findall(self.log)
        return found[-1] if found else None

    @property
    def log(self) -> str:
        """What the daemon has said so far; also when it has ended."""
        return self._running.log()

    def close(self) -> None:
        """Ends the daemon, and waits for that. Batches that are held stay good. Calling it twice is
        fine. Errors: ForkedError."""
        if not self._running.is_ours():
            raise _fork.refuse("this server")
        self._running.end()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        self._running.end()

    def __reduce__(self) -> Tuple[Any, ...]:
        return str, (str(self),)


class _Running:
    """`batchwright run`, and a folder with its configuration and its log."""

    def __init__(self, command: str, text: str) -> None:
        self._generation = _fork.generation
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="batchwright-serve-"))
        self._log = ""  # once the folder is gone
        config = self._folder / "batchwrightd.toml"
        # The daemon lasts as long as this end. No file of Python's: a forked child closes it, whatever
        # lock another thread had.
        held, self._hold = os.pipe()
        try:
            config.write_text(text, encoding="utf-8")
            with (self._folder / "log").open("wb") as log:
                # In a session of its own: the terminal's Ctrl-C, and a notebook's interrupt, go to
                # the whole process group.
                self._process = subprocess.Popen(
                    [command, "run", "--config", config, "--", "/bin/sh", "-c", _HOLD],
                    stdin=held, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        except BaseException:
            self._let_go()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        finally:
            os.close(held)
        _all.add(self)
        atexit.register(self.end)

    def is_ours(self) -> bool:
        return self._generation == _fork.generation

    def endpoint(self) -> str:
        """Waits until the daemon listens. Empty: it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def log(self) -> str:
        try:
            return (self._folder / "log").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return self._log

    def said(self) -> str:
        """What the log has beside news, on one line."""
        lines = [_STAMP.sub("", line.strip()) for line in self.log().splitlines()
                 if " info " not in line]
        return "; ".join(lines) or "the daemon ended, and did not say why"

    def end(self) -> None:
        """Does nothing in a forked child. After an interrupt it may be called again."""
        if not self.is_ours() or self not in _all:
            return
        self._let_go()
        self._process.terminate()  # for one that has not come to its command, which has the pipe
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log = self.log()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.end)
        _all.discard(self)

    def _let_go(self) -> None:
        hold, self._hold = self._hold, -1
        if hold >= 0:
            os.close(hold)

    def leave_to_parent(self) -> None:
        self._let_go()  # otherwise the daemon would stay as long as this child
        self._process.returncode = 0  # which is not this process's to wait for


def _begin_child() -> None:
    for each in _all:
        each.leave_to_parent()
    _all.clear()


os.register_at_fork(after_in_child=_begin_child)


def serve(dataset: Union[_Shards, FeedConfig, Mapping[str, Union[_Shards, FeedConfig]], None] = None,
          *, name: str = "train", feed: Optional[_Table] = None, features: Optional[_Table] = None,
          styles: Sequence[_Table] = (), daemon: Optional[_Table] = None,
          program: Optional[_Path] = None, **feeds_and_plan: Any) -> Server:
    """Starts a daemon that serves one feed or several, and waits until it does. Returns its endpoint,
    which is text, and has `dashboard`, `log` and `close()`; `with` gives the same, and ends the daemon
    with the block.

    dataset: the folder of the feed `name`'s dataset; a list has shards of one dataset; a mapping has
        a feed's name and its dataset, or FeedConfig, each.
    feeds_and_plan: the keys of [feed.plan], such as order="semi-sorted", cut="dynamic", size=32,
        seed=7, for all feeds; and feeds by name, as train="data/train",
        valid=FeedConfig("data/dev", order="sorted"). What is the name of no such key, and has a path,
        several, or a FeedConfig, is a feed.
    feed, features, daemon: keys of [[feed]], of [feed.features], which is its recipe, and of
        [daemon]; `styles` has those of a [[feed.style]] each. All are as in batchwrightd.toml(5).
        Unless `daemon` has `stats`, the pages are at a free port of the loopback.
    program: the command `batchwright`; None: the one that is installed with this package, otherwise
        the one in PATH.

    Threads: any. Waiting ends with Ctrl-C, and the daemon with it.
    Errors: BadConfigurationError, with what the daemon says, also of a feed that it cannot serve;
    NotFoundError (no program); InvalidArgumentError (a value that no configuration has, or no feed).
    """
    feeds, plan = _sorted_out(dataset, name, feeds_and_plan)
    command = (_library.program("batchwright") if program is None
               else shutil.which(os.fsdecode(program)))
    if command is None:
        raise NotFoundError(f"no program {os.fsdecode(program or 'batchwright')}: install the package "
                            "batchwright, or name it by `program`")
    shared = FeedConfig((), feed=feed, features=features, styles=styles, **plan)
    text = _table("[daemon]", {**_pages(), "log_level": "info", **(daemon or {})}) + "".join(
        each._text(name, shared) for name, each in feeds.items())
    if len(_all) >= _MANY:
        warn(f"{len(_all)} daemons of this process are serving, and one more is started: close() ends "
             "one that is not needed")
    # The numbers make the text this call's own: its daemon is no other's.
    return _started(command, f"# process {os.getpid()}, daemon {next(_count)}\n{text}", feeds)


def _started(command: str, text: str, feeds: Mapping[str, FeedConfig]) -> Server:
    running = _Running(command, text)
    try:
        endpoint = running.endpoint()
        if endpoint:
            refused = _refused(endpoint, feeds)
            if not refused:
                return Server(endpoint, running)
    except BaseException:
        running.end()
        raise
    running.end()
    raise BadConfigurationError(refused if endpoint else running.said())


def _sorted_out(dataset: Any, name: str, more: Mapping[str, Any]) -> Tuple[
        Dict[str, FeedConfig], Dict[str, Any]]:
    """The feeds by name, and the keys of the plan. Errors: InvalidArgumentError."""
    feeds = dict(dataset) if isinstance(dataset, Mapping) else {}
    if dataset is not None and not isinstance(dataset, Mapping):
        feeds[name] = dataset
    plan: Dict[str, Any] = {}
    for key, value in more.items():
        if key in _PLAN_KEYS or not _is_feed(value):
            plan[key] = value
        elif key in feeds:
            raise InvalidArgumentError(f'feed "{key}" is given twice')
        else:
            feeds[key] = value
    if not feeds:
        raise InvalidArgumentError('no feed is given: serve("data/train"), or serve(train="data/train", '
                                   'valid="data/dev")')
    return {key: value if isinstance(value, FeedConfig) else FeedConfig(value)
            for key, value in feeds.items()}, plan


def _is_feed(value: Any) -> bool:
    """Whether it is a dataset, or a feed, rather than a setting."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_feed, value))
    return isinstance(value, (FeedConfig, str, bytes, os.PathLike))


def _shards(dataset: _Shards) -> List[_Path]:
    found: Any = [dataset] if isinstance(dataset, (str, bytes, os.PathLike)) else dataset
    if isinstance(found, Sequence) and all(
            isinstance(each, (str, bytes, os.PathLike)) for each in found):
        return list(found)
    raise InvalidArgumentError(f"dataset is {dataset!r}; allowed: a path, or a list of paths, which "
                               "are shards of one dataset")


def _pages() -> Dict[str, Any]:
    """Where a browser gets to. Without a loopback, as in some sandboxes, they stay at a socket."""
    try:
        with socket.socket() as tried:
            tried.bind(("127.0.0.1", 0))
    except OSError:
        return {}
    return {"stats": "127.0.0.1:0"}


def _refused(endpoint: str, feeds: Mapping[str, Any]) -> str:
    """The daemon's reasons not to serve these; empty: it serves them. Waits while it opens them."""
    while True:
        with connect(endpoint, reconnect=0.0, program="batchwright.serve", inline=True) as connection:
            absent = {name: why for name, why in connection.absent.items() if name in feeds}
        if _OPENING not in absent.values():
            return "; ".join(f'feed "{name}" is not served: {why}{_hint(name)}'
                             for name, why in absent.items())
        time.sleep(_LOOK_SECONDS)


def _hint(name: str) -> str:
    meant = difflib.get_close_matches(name, _PLAN_KEYS, 1)
    return f' (did you mean "{meant[0]}", a key of the plan?)' if meant else ""


def _table(title: str, values: _Table) -> str:
    lines = [f"{key} = {_value(key, value)}\n" for key, value in values.items() if value is not None]
    return f"{title}\n" + "".join(lines) if lines or title.startswith("[[") else ""


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
