"""How long after the SIGKILL of a trainer its slots are free again."""
import http.client
import json
import os
import select
import subprocess
import time

from setting import Setting, configuration, free_port, make_dataset
from trial import Child, Stuck

LIMIT_MS = 100  # of the 99th percentile
WINDOW = 4


def wait_for(what, condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Stuck(f"{what}: not within {seconds} s")
        time.sleep(0.001)


class Watch:
    """The daemon's page /stats over one connection."""

    def __init__(self, daemon):
        self._daemon = daemon
        wait_for("the daemon's port", lambda: self._port() is not None)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port())

    def _port(self):
        found = self._daemon.log.read_text().partition("/stats, port ")[2].split()
        return int(found[0]) if found else None

    def held(self):
        self._connection.request("GET", "/stats")
        page = json.loads(self._connection.getresponse().read())
        return page["feeds"][0]["slots"]["held"]


def one_kill(programs, folder, watch):
    """Milliseconds from the kill to the kernel's closing of what the trainer had open, and to the
    answer that shows no slot held. Both are later than the truth by the time of a look."""
    words = [programs / "chaos_worker", "mode=hold", f"window={WINDOW}", f"record={folder / 'r'}",
             f"endpoint=ipc://{folder / 's'}"]
    end, its_end = os.pipe()
    worker = subprocess.Popen(words, pass_fds=[its_end])
    os.close(its_end)
    try:
        wait_for("a trainer with its window full", lambda: watch.held() == WINDOW)
        began = time.monotonic()
        worker.kill()
        select.select([end], [], [])
        gone = time.monotonic()
        wait_for("slots given back", lambda: watch.held() == 0)
        return (gone - began) * 1000, (time.monotonic() - began) * 1000
    finally:
        os.close(end)
        worker.kill()
        worker.wait()


def percentile(times, share):
    return sorted(times)[max(0, -(-len(times) * share // 100) - 1)]


def describe(times):
    return (f"{percentile(times, 50):.1f} ms (median), {percentile(times, 99):.1f} ms (99th "
            f"percentile), {max(times):.1f} ms (longest)")


def measure_kills(count, folder, programs):
    plan = {"order": "sorted", "size": 4, "world": 1}
    setting = Setting("replica", 1, 300, plan, {"slots": 16}, free_port())
    dataset = make_dataset(folder, programs)
    (folder / "config.toml").write_text(configuration(setting, dataset, folder))
    words = [programs / "batchwrightd", "--config", folder / "config.toml"]
    daemon = Child("daemon", words, folder)
    daemon.start()
    try:
        watch = Watch(daemon)
        kills = [one_kill(programs, folder, watch) for _ in range(count)]
    finally:
        daemon.process.kill()
        daemon.process.wait()
    back = [times[1] for times in kills]
    print(f"{count} kills; allowed are {LIMIT_MS} ms for the 99th percentile\n"
          f"slots back after the kill:         {describe(back)}\n"
          f"the kernel closed its connection:  {describe([times[0] for times in kills])}\n"
          f"slots back after that:             {describe([b - a for a, b in kills])}")
    return percentile(back, 99) <= LIMIT_MS
