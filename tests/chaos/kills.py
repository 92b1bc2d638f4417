"""How long after the SIGKILL of a trainer its slots are free again."""
import http.client
import json
import os
import queue
import re
import select
import subprocess
import threading
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
        found = re.search(r"dashboard at http://[^ ]*:(\d+)/", self._daemon.log.read_text())
        return int(found[1]) if found else None

    def held(self):
        self._connection.request("GET", "/stats")
        page = json.loads(self._connection.getresponse().read())
        return page["feeds"][0]["slots"]["held"]


class Departures:
    """When the daemon's events told of clients that left, once their slots were free."""

    def __init__(self, programs, endpoint):
        self._process = subprocess.Popen(
            [programs / "batchwright", "events", "--events", endpoint, "--json"],
            stdout=subprocess.PIPE, text=True)
        self._times = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            if json.loads(line)["event"] == "client_left":
                self._times.put(time.monotonic())

    def next(self, seconds=30):
        """None when no one was reported in so many seconds."""
        try:
            return self._times.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()


def one_kill(programs, folder, watch, departures, seconds=30):
    """Milliseconds from the kill to the kernel's closing of what the trainer had open, and to the
    event of its end; both are later than the truth by the way of the news. None without event."""
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
        free = departures.next(seconds)
        wait_for("slots given back", lambda: watch.held() == 0)
        return None if free is None else ((gone - began) * 1000, (free - began) * 1000)
    finally:
        os.close(end)
        worker.kill()
        worker.wait()


def some_kills(count, programs, folder, watch, departures):
    """From the first one on that is heard of: a new listener misses what comes at once."""
    tries = (one_kill(programs, folder, watch, departures, 0.5) for _ in range(20))
    if not any(tries):
        raise Stuck("no event told of a trainer's end")
    kills = [one_kill(programs, folder, watch, departures) for _ in range(count)]
    if None in kills:
        raise Stuck("an event is missing")
    return kills


def percentile(times, share):
    return sorted(times)[max(0, -(-len(times) * share // 100) - 1)]


def describe(times):
    return (f"{percentile(times, 50):.1f} ms (median), {percentile(times, 99):.1f} ms (99th "
            f"percentile), {max(times):.1f} ms (longest)")


def measure_kills(count, folder, programs):
    plan = {"order": "sorted", "size": 4, "world": 1}
    setting = Setting("replica", 1, 300, plan, {"slots": 16}, free_port())
    dataset = make_dataset(folder, programs)
    events = f"ipc://{folder / 'e'}"
    (folder / "config.toml").write_text(configuration(setting, dataset, folder, events))
    words = [programs / "batchwrightd", "--config", folder / "config.toml"]
    daemon = Child("daemon", words, folder)
    daemon.start()
    try:
        watch = Watch(daemon)
        departures = Departures(programs, events)
        try:
            kills = some_kills(count, programs, folder, watch, departures)
        finally:
            departures.close()
    finally:
        daemon.process.kill()
        daemon.process.wait()
    back = [times[1] for times in kills]
    print(f"{count} kills; allowed are {LIMIT_MS} ms for the 99th percentile\n"
          f"slots back after the kill:         {describe(back)}\n"
          f"the kernel closed its connection:  {describe([times[0] for times in kills])}\n"
          f"slots back after that:             {describe([b - a for a, b in kills])}")
    return percentile(back, 99) <= LIMIT_MS
