"""`batchwright run` on a terminal: run_terminal.py BATCHWRIGHT

It prints where the daemon's page is, and how to watch it; the page is for those who know its whole
address, and everything on it works from there.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path


def expect(what: str, holds: bool) -> None:
    if not holds:
        raise SystemExit(f"failed: {what}")


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def read_until(terminal: int, text: str) -> str:
    """What the terminal has shown, until that is in it."""
    shown = ""
    end = time.monotonic() + 60
    while text not in shown:
        expect(f"{text!r} comes, after {shown!r}", time.monotonic() < end)
        if not select.select([terminal], [], [], 1)[0]:
            continue
        shown += os.read(terminal, 4096).decode()
    return shown


def make_dataset(program: str, folder: Path) -> Path:
    for i in range(8):
        header = f"{{'descr': '<i2', 'fortran_order': False, 'shape': ({i + 1}, 2), }}"
        file = folder / "arrays" / f"{i}.npy"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117).encode() + b"\n"
                         + bytes(4 * (i + 1)))
    dataset = folder / "data"
    subprocess.run([program, "ingest", "npy", str(folder / "arrays"), "--into", str(dataset)],
                   check=True, capture_output=True, timeout=60)
    return dataset


def main() -> None:
    signal.alarm(120)  # a hang is a failure
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        dataset = make_dataset(program, Path(folder))
        config = Path(folder) / "run.toml"
        config.write_text('[daemon]\nmemory = "64MiB"\n[[feed]]\nname = "train"\n'
                          f'dataset = "{dataset}"\nslots = 4\n[feed.plan]\nsize = 2\n')
        child, terminal = pty.fork()
        if child == 0:
            os.environ["XDG_RUNTIME_DIR"] = folder
            os.execv(program, [program, "run", "--config", str(config), "--", "/bin/sh", "-c",
                               "echo begun; read line; exit 5"])
        shown = read_until(terminal, "begun")
        page = re.search(r"page at (http://127\.0\.0\.1:\d+/)([0-9a-f]{32})/", shown)
        expect(f"an address is shown: {shown}", page is not None)
        assert page is not None
        root, secret = page.groups()
        expect("a call of top is shown", "batchwright top --endpoint ipc://" + folder in shown)
        expect("no news of the daemon are shown", "info" not in shown)
        for path in ("", "stats", "metrics", "live", "feeds/train/plan", secret, secret[:-1] + "/"):
            expect(f"403 for /{path}", status_of(root + path) == 403)
        for path in ("", "stats", "metrics", "feeds/train/plan"):
            expect(f"200 for SECRET/{path}", status_of(f"{root}{secret}/{path}") == 200)
        html = urllib.request.urlopen(f"{root}{secret}/", timeout=20).read().decode()
        expect("the page asks for nothing above its own path",
               not re.search(r"""(fetch|EventSource)\("/|href="/|src="/""", html))
        os.write(terminal, b"\n")
        _, status = os.waitpid(child, 0)
        expect("the command's exit code", os.waitstatus_to_exitcode(status) == 5)


if __name__ == "__main__":
    main()
