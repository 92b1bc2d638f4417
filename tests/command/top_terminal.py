"""`batchwright top` on a terminal of its own: top_terminal.py BATCHWRIGHT

The daemon is a page that never changes; what is tested is the way it is shown.
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import threading
import time
from typing import Dict, List, Tuple

STATS = {
    "version": "0.1.0",
    "uptime_seconds": 5,
    "feeds": [{
        "name": "train",
        "state": "serving",
        "verdict": {"text": "storage-bound", "why": "reading takes 80 %"},
        "subscribers": [{"client": "cmvn", "position_share": 0.5, "waiting": "daemon"}],
    }],
}
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


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
    """A program on a terminal of 80 x 24."""

    def __init__(self, words: List[str], environment: Dict[str, str]) -> None:
        self.shown = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.pop("NO_COLOR", None)
            os.environ.update(environment)
            # The size is there before the program looks for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execv(words[0], words)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, what: bytes, seconds: float = 20.0) -> bytes:
        """What was shown since the last call, up to and with `what`."""
        deadline = time.monotonic() + seconds
        while what not in self.shown:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"{what!r} is not in {self.shown[-2000:]!r}")
            self.shown += os.read(self.master, 65536)
        at = self.shown.index(what) + len(what)
        before, self.shown = self.shown[:at], self.shown[at:]
        return before

    def write(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ended(self) -> int:
        """Waits for the end; the exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def flags(terminal: Terminal) -> Tuple[bool, bool]:
    """Whether the terminal echoes, and collects lines."""
    local = termios.tcgetattr(terminal.master)[3]
    return bool(local & termios.ECHO), bool(local & termios.ICANON)


def check(program: str, address: str, key: bytes, environment: Dict[str, str]) -> None:
    terminal = Terminal([program, "top", "--interval", "0.2", "--stats", address],
                        {"TERM": "xterm", **environment})
    terminal.read_until(ENTER)
    terminal.read_until(HIDE)
    first = terminal.read_until(b"cmvn")
    assert b"STORAGE-BOUND" in first, first
    assert (b"\x1b[1;33m" in first) == ("NO_COLOR" not in environment), first
    assert flags(terminal) == (False, False)
    assert b"[####" not in first + terminal.read_until(b"\x1b[J")  # no room for a bar
    terminal.resize(120, 40)
    terminal.read_until(b"[####")
    if key:
        terminal.write(key)
    else:
        os.kill(terminal.pid, signal.SIGTERM)
    terminal.read_until(SHOW)
    terminal.read_until(LEAVE)
    assert terminal.ended() == 0
    assert flags(terminal) == (True, True)


def main() -> None:
    signal.alarm(100)  # a hang is a failure
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for key in (b"q", b"\x03", b""):
        check(sys.argv[1], address, key, {})
    check(sys.argv[1], address, b"q", {"NO_COLOR": "1"})
    server.shutdown()


if __name__ == "__main__":
    main()
