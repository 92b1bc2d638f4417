"""`batchwright top` on a terminal of its own: top_terminal.py BATCHWRIGHT

The daemon is a page that changes only when a test says so; what is tested is the way it is shown,
what keys do, and that the terminal is given back on every way out.
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import threading
import time
from typing import Any, Callable, Dict, List, Tuple

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
FEEDS = 50
FAILED = 7
BUSY = 20  # delivers most
LONG = "a-client-whose-name-takes-more-than-sixteen-columns.py"


def feed(number: int) -> Dict[str, Any]:
    failed = number == FAILED
    return {
        "name": f"corpus-{number:02d}",
        "state": "failed" if failed else "serving",
        "reason": "data.mdb is truncated" if failed else "",
        "verdict": {"text": "failed" if failed else "storage-bound", "why": "reading takes 80 %"},
        "rates": {"batches_per_second": 900.0 if number == BUSY else 1.0},
        "subscribers": [{"client": LONG, "pid": 42, "session": "a", "held_batches": 3,
                         "held_seconds": 12.0, "window_batches": 8}],
    }


STATS = {"version": "0.1.0", "host": "gpu-07", "uptime_seconds": 5,
         "feeds": [feed(number) for number in range(FEEDS)]}


class Page(http.server.BaseHTTPRequestHandler):
    """/stats of a daemon that stands still."""

    def do_GET(self) -> None:
        body = json.dumps(STATS).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Terminal:
    """`top` on a terminal of 80 x 24."""

    def __init__(self, program: str, address: str, environment: Dict[str, str]) -> None:
        self.shown = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            for name in ("NO_COLOR", "LC_ALL", "LC_CTYPE"):
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm", "LANG": "C.UTF-8", **environment})
            # The size is there before the program looks for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execv(program, [program, "top", "--interval", "0.2", "--stats", address])

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, holds: Callable[[bytes], bool], what: object) -> None:
        deadline = time.monotonic() + 20
        while not holds(self.shown):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"{what!r} is not in {self.shown[-2000:]!r}")
            self.shown += os.read(self.master, 65536)

    def read_bytes(self, what: bytes) -> None:
        self.read_until(lambda shown: what in shown, what)

    def lines(self) -> List[str]:
        """The last frame that was drawn to its end, without its colours."""
        frames = self.shown.split(b"\x1b[H")[1:]
        whole = [frame for frame in frames if b"\x1b[J" in frame]
        text = whole[-1].split(b"\x1b[J")[0].decode() if whole else ""
        return re.sub(r"\x1b\[[0-9;]*[mK]|\r", "", text).split("\n")

    def read_line(self, begin: str) -> List[str]:
        """Waits until a line of the screen begins so; all its lines."""
        self.read_until(lambda _: any(line.startswith(begin) for line in self.lines()), begin)
        return self.lines()

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ended(self) -> int:
        """Waits for the end; the exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def flags(self) -> Tuple[bool, bool, bool]:
        """Whether the terminal echoes, collects lines, and makes signals of keys."""
        local = termios.tcgetattr(self.master)[3]
        return bool(local & termios.ECHO), bool(local & termios.ICANON), bool(local & termios.ISIG)

    def take(self) -> None:
        """It has taken the terminal, and drawn."""
        self.read_bytes(ENTER + HIDE)
        self.read_line("> corpus-07")
        assert self.flags() == (False, False, False)

    def is_given_back(self, code: int) -> None:
        self.read_bytes(SHOW + LEAVE)
        assert self.ended() == code
        assert self.flags() == (True, True, True)


def check_walk(terminal: Terminal) -> None:
    """Scrolls, sorts, opens a feed, and goes back."""
    terminal.take()
    lines = terminal.lines()
    assert lines[0] == "Batchwright  gpu-07  1 of 50 feeds failed", lines
    assert any("corpus-07: data.mdb is truncated" in line for line in lines), lines
    assert not any("corpus-49" in line for line in lines) and len(lines) <= 24
    terminal.press(b"\x1b[F")  # End
    assert sum(line[2:].startswith("corpus-") for line in terminal.read_line("> corpus-49")) < 20
    terminal.press(b"\x1b[5~")  # PgUp
    terminal.read_until(lambda _: not any("> corpus-49" in line for line in terminal.lines()), "up")
    terminal.press(b"g")
    terminal.read_line("> corpus-07")
    terminal.press(b">>>>")  # by batches a second
    terminal.read_line("> corpus-20")  # at the top is whatever stands there
    terminal.press(b"j")
    terminal.read_line("> corpus-07")  # the worst of those with as many
    terminal.press(b"r")
    terminal.read_line("  1 to 16 of 50 feeds, by batches/s, reversed")
    terminal.press(b"\r")
    lines = terminal.read_line("corpus-07  failed  nothing is served")
    assert not any(line.startswith("> ") for line in lines), lines
    terminal.press(b"\x1b")  # Escape, and nothing after it
    terminal.read_line("> corpus-07")
    terminal.press(b"\x1a")  # Ctrl-Z, which stops nothing here: no shell could let it go on
    terminal.read_until(lambda shown: ENTER in shown.partition(LEAVE)[2], "taken again")
    terminal.read_until(lambda shown: b"> corpus-07" in shown.rpartition(ENTER)[2], "drawn again")


def check_feed(terminal: Terminal) -> None:
    """A feed with its client, whose name is whole where there is room."""
    terminal.take()
    terminal.press(b"\x1bOB\r")  # the arrow down of another mode, and Enter
    lines = terminal.read_line("corpus-00")
    client = next(line for line in lines if "(process 42)" in line)
    assert LONG not in client and "\u2026" in client and "3 of 8 (12.0 s)" in client, lines
    terminal.resize(200, 60)
    lines = terminal.read_line(f"  {LONG} (process 42)")
    terminal.press(b"\x7f")
    lines = terminal.read_line("> corpus-00")
    assert sum(line[2:].startswith("corpus-") and "serving" in line for line in lines) == FEEDS - 1
    terminal.press(b"?")
    terminal.read_line("  Arrows")


def check_ends(program: str, address: str) -> None:
    """The terminal is given back on every way out: keys, signals, a crash, a stop."""
    ways: List[Tuple[Callable[[Terminal], None], int]] = [
        (lambda terminal: terminal.press(b"q"), 0), (lambda terminal: terminal.press(b"\x03"), 0)]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        ways.append((lambda terminal, number=number: os.kill(terminal.pid, number), 0))
    for number in (signal.SIGSEGV, signal.SIGABRT):
        ways.append((lambda terminal, number=number: os.kill(terminal.pid, number), -number))
    for leave, code in ways:
        terminal = Terminal(program, address, {})
        terminal.take()
        leave(terminal)
        terminal.is_given_back(code)


def check_colours(program: str, address: str) -> None:
    for environment, colours, cut in (({}, True, True), ({"NO_COLOR": "1"}, False, True),
                                      ({"LANG": "C"}, True, False)):
        terminal = Terminal(program, address, environment)
        terminal.take()
        assert (b"\x1b[1;31m" in terminal.shown) == colours, terminal.shown
        terminal.press(b"j\r")
        terminal.read_line("corpus-00")
        assert ("\u2026".encode() in terminal.shown) == cut, terminal.shown
        assert cut or terminal.shown.isascii()
        terminal.press(b"q")
        terminal.is_given_back(0)


def check_lost(program: str, address: str, server: http.server.ThreadingHTTPServer) -> None:
    """A daemon that goes is said to be gone, and keys go on working."""
    terminal = Terminal(program, address, {})
    terminal.take()
    server.shutdown()
    server.server_close()
    terminal.read_line("Batchwright  gpu-07  connection lost")
    terminal.press(b"\x1b[B")
    terminal.read_line("> corpus-00")
    terminal.press(b"q")
    terminal.is_given_back(0)


def main() -> None:
    signal.alarm(100)  # a hang is a failure
    program = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for check in (check_walk, check_feed):
        terminal = Terminal(program, address, {})
        check(terminal)
        terminal.press(b"q")
        terminal.is_given_back(0)
    check_ends(program, address)
    check_colours(program, address)
    check_lost(program, address, server)


if __name__ == "__main__":
    main()
