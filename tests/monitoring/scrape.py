"""A real Prometheus watches a real daemon: scrape.py BIN

The page, the rules and the dashboard are those that are installed. What is asked: does /metrics pass
promtool, does every metric and every event that rules and dashboard name exist, is every expression
valid, does the dashboard show health and not speed alone, has each rule its tests, and does a rate of
delivered batches arrive.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Callable, Dict, List, Set, TypeVar

import numpy as np
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEMD = ROOT / "systemd"
CONFIG = """
[daemon]
endpoints = ["ipc://{folder}/s"]
stats = "127.0.0.1:0"
memory = "64MiB"

[[feed]]
name = "train"
dataset = "{folder}/data"
"""

Found = TypeVar("Found")
# What tells whether a daemon is well.
HEALTH = {"batchwright_" + name for name in (
    "ready", "feed_state", "config_last_reload_successful", "dataset_stale", "blocked_seconds", "disk_free_bytes",
    "clients_refused_total", "events_total", "readahead_disk_latency_seconds", "memory_ceiling_bytes",
    "memory_pressure_share")}


def eventually(look: Callable[[], Found], what: str, seconds: float = 60.0) -> Found:
    """The first answer of `look` that holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come within {seconds} s")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def listening_port(process: subprocess.Popen) -> int:
    """The port that a process listens on, 0 as yet: it took any free one, and does not say which."""
    if process.poll() is not None:
        raise AssertionError(f"{process.args} ended with {process.returncode}")
    sockets: Set[str] = set()
    for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            sockets |= set(re.findall(r"socket:\[(\d+)\]", str(link.readlink())))
        except OSError:
            continue  # closed meanwhile
    for line in pathlib.Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in sockets:
            return int(words[1].split(":")[1], 16)
    return 0


def metric_names(expression: str) -> Set[str]:
    return set(re.findall(r"batchwright_[a-z_]+", expression))


def rule_expressions() -> List[str]:
    """Those of alerts.yml, as Prometheus reads them; see the rules' page."""
    text = (SYSTEMD / "alerts.yml").read_text()
    found = re.findall(r"^        expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)", text, re.MULTILINE)
    assert len(found) == text.count("- alert:"), "an expression was not found"
    return [folded or plain for folded, plain in found]


def dashboard_expressions() -> List[str]:
    """The dashboard's, with its variables filled in; and whether Grafana can lay it out."""
    dashboard = json.loads((SYSTEMD / "grafana.json").read_text())
    assert dashboard["schemaVersion"] >= 36 and dashboard["title"] and dashboard["uid"]
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: Set[tuple] = set()
    expressions = [variable["definition"] for variable in dashboard["templating"]["list"]
                   if variable["type"] == "query"]
    expressions = re.findall(r"label_values\((.*), \w+\)", "\n".join(expressions))
    assert len(expressions) == 2
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        mine = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])}
        assert not mine & cells, f"{panel['title']} lies over another panel"
        cells |= mine
        assert panel["type"] == "row" or panel["targets"], panel["title"]
        expressions += [target["expr"] for target in panel.get("targets", [])]
    return [expression.replace("$__rate_interval", "10s").replace("$instance", ".*")
            .replace("$feed", ".*") for expression in expressions]


def events_of(expression: str) -> Set[str]:
    """The events that an expression selects."""
    return {event for names in re.findall(r'event=~?"([^"]*)"', expression) for event in names.split("|")}


def check_rule_tests() -> None:
    """Each alert has a test in which it fires, and one in which it does not."""
    rules = yaml.safe_load((SYSTEMD / "alerts.yml").read_text())["groups"][0]["rules"]
    text = (pathlib.Path(__file__).parent / "alerts_test.yml").read_text()
    tests = [each for test in yaml.safe_load(text)["tests"] for each in test["alert_rule_test"]]
    for wanted in (True, False):
        tested = {each["alertname"] for each in tests if bool(each["exp_alerts"]) == wanted}
        untested = {rule["alert"] for rule in rules} - tested
        assert not untested, f"{untested} have no test in which they {'fire' if wanted else 'are silent'}"


class Processes:
    """In a folder, with a log each. Stops what it started."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.processes: List[subprocess.Popen] = []

    def start(self, name: str, *words: object, **environment: str) -> subprocess.Popen:
        """Its log is `name`.log, and goes on where there is one."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log,
                                       env={**os.environ, **environment})
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        """The end of each."""
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}"
                         for log in sorted(self.folder.glob("*.log")))


class Watched(Processes):
    """A daemon, a client that takes batches, and Prometheus."""

    def __init__(self, binaries: pathlib.Path, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.binaries = binaries

    def start_daemon(self) -> str:
        """Where its pages are."""
        arrays = self.folder / "arrays"
        arrays.mkdir()
        for i in range(100):
            np.save(arrays / f"{i}.npy", np.zeros((20 + i, 8), np.float32))
        subprocess.run([self.binaries / "batchwright", "ingest", "npy", arrays, "--into",
                        self.folder / "data"], check=True, stdout=subprocess.DEVNULL)
        config = self.folder / "batchwrightd.toml"
        config.write_text(CONFIG.format(folder=self.folder))
        daemon = self.start("batchwrightd", self.binaries / "batchwrightd", "--config", config)
        port = eventually(lambda: listening_port(daemon), "the daemon's port")
        self.start("tail", self.binaries / "batchwright", "tail", "--feed", "train", "--epochs", "0",
                   "--endpoint", f"ipc://{self.folder}/s")
        return f"127.0.0.1:{port}"

    def start_prometheus(self, target: str) -> str:
        """With the configuration that is installed, but for the daemon's port and the haste."""
        text = (SYSTEMD / "prometheus.yml").read_text()
        assert "127.0.0.1:9477" in text and "15s" in text
        text = text.replace("127.0.0.1:9477", target).replace("15s", "1s")
        (self.folder / "prometheus.yml").write_text(text)
        (self.folder / "alerts.yml").write_text((SYSTEMD / "alerts.yml").read_text())
        prometheus = self.start("prometheus", "/usr/bin/prometheus",
                                f"--config.file={self.folder}/prometheus.yml",
                                f"--storage.tsdb.path={self.folder}/tsdb",
                                "--web.listen-address=127.0.0.1:0")
        port = eventually(lambda: listening_port(prometheus), "Prometheus's port")
        return f"http://127.0.0.1:{port}/api/v1/"


def query(api: str, expression: str) -> List[Dict]:
    try:
        answer = json.loads(get(api + "query?" + urllib.parse.urlencode({"query": expression})))
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return []  # it is still starting
        raise AssertionError(f"{expression}: {error.read().decode()}") from None
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def check(watched: Watched) -> None:
    check_rule_tests()
    target = watched.start_daemon()
    page = get(f"http://{target}/metrics")
    lint = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert lint.returncode == 0 and not lint.stdout, lint.stdout

    # From the start: also those of which nothing has happened yet.
    known = set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))
    known |= {name + end for name in re.findall(r"^# TYPE (\S+) histogram", page, re.MULTILINE)
              for end in ("_bucket", "_sum", "_count")}
    expressions = rule_expressions() + dashboard_expressions()
    for expression in expressions:
        unknown = metric_names(expression) - known
        assert not unknown, f"/metrics has no {unknown}, which {expression!r} names"
        never = events_of(expression) - set(re.findall(r'events_total\{event="(\w+)"', page))
        assert not never, f"/metrics has no events {never}, which {expression!r} names"
        # Pods are scraped by jobs of other names. What never answered is known by nothing else.
        jobs = re.findall(r'job=~?"[^"]*"', expression)
        assert set(jobs) <= {'job=~".*batchwright.*"'}, f"{expression!r} is of one job only"
    shown = {name for expression in dashboard_expressions() for name in metric_names(expression)}
    assert HEALTH <= shown, f"the dashboard does not show {HEALTH - shown}"

    api = watched.start_prometheus(target)
    rate = 'sum(rate(batchwright_batches_delivered_total{feed="train"}[10s]))'
    eventually(lambda: any(float(each["value"][1]) > 0 for each in query(api, rate)), "a rate")
    for expression in expressions:
        query(api, expression)
    rules = json.loads(get(api + "rules"))["data"]["groups"][0]["rules"]
    assert len(rules) == len(rule_expressions())
    eventually(lambda: all(rule["health"] == "ok" for rule in json.loads(
        get(api + "rules"))["data"]["groups"][0]["rules"]), "the rules' evaluation")
    assert query(api, 'up{job="batchwright"}')[0]["value"][1] == "1"


def main() -> None:
    signal.alarm(280)  # a hang is a failure
    with tempfile.TemporaryDirectory(prefix="bw") as name:
        watched = Watched(pathlib.Path(sys.argv[1]), pathlib.Path(name))
        try:
            check(watched)
        except BaseException:
            print(watched.logs(), file=sys.stderr)
            raise
        finally:
            watched.stop()


if __name__ == "__main__":
    main()
