"""One page in a headless Chromium, spoken to through a pipe in its own debugging protocol."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time
from typing import Any, Dict, List, Optional

SECONDS = 60  # that any single wait may take
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars"]


def program() -> Optional[str]:
    return shutil.which("chromium")


class Browser:
    """From the begin of a `with` to its end. What the page complains of is in `complaints`."""

    def __init__(self) -> None:
        self.number, self.session, self.unread = 0, "", b""
        self.complaints: List[str] = []

    def __enter__(self) -> Browser:
        self.folder = tempfile.mkdtemp(prefix="bw-chromium-")
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&"$READ" 4>&"$WRITE"', "bash", str(program()), *QUIET,
             f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank"],
            env={**os.environ, "READ": str(to_read), "WRITE": str(to_write)},
            pass_fds=[to_read, to_write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_: Any) -> None:
        self.session = ""
        self.call("Browser.close")
        self.process.wait(SECONDS)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        self.number += 1
        message: Dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def read(self) -> Dict[str, Any]:
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.back], [], [], SECONDS)
            assert ready, "the browser is silent"
            piece = os.read(self.back, 1 << 20)
            assert piece, "the browser has ended"
            self.unread += piece
        line, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(line)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(message["params"])[:500])
        return message

    def cpu_seconds(self) -> float:
        """Processor time of all of its processes since each began."""
        parents, seconds = {}, {}
        for process in pathlib.Path("/proc").iterdir():
            try:
                words = (process / "stat").read_text().rpartition(")")[2].split()
                threads = [task.read_text() for task in process.glob("task/*/schedstat")]
            except OSError:
                continue  # no process, or one that has ended meanwhile
            parents[process.name] = words[1]
            seconds[process.name] = sum(int(times.split()[0]) for times in threads) / 1e9
        family = {str(self.process.pid)}
        while True:
            more = {child for child, parent in parents.items() if parent in family} - family
            if not more:
                return sum(seconds[member] for member in family)
            family |= more

    def look(self, width: int, height: int, dark: bool = False) -> None:
        """The size of the screen, and what the reader prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """What the script comes to."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until the script comes to something true."""
        end = time.monotonic() + SECONDS
        while not self.run(condition):
            assert time.monotonic() < end, f"waited {SECONDS} s for {condition}"
            time.sleep(0.05)

    def picture(self, path: pathlib.Path, whole: bool = True) -> None:
        """The page as PNG, or what of it is on the screen."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
