"""Daemons, jobs and a Prometheus with the rules that are installed."""
import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/monitoring"))
sys.path.insert(0, str(ROOT / "client/python"))

from scrape import Processes, eventually, get, listening_port, query  # noqa: E402

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Broken(Exception):
    """What an operator is told is not so."""


def expect(holds, what):
    if not holds:
        raise Broken(what)


def hastened(rules, haste):
    """Rules for a world in which all goes `haste` times as fast: each of their times is as much shorter."""
    def shorter(match):
        seconds = int(match.group(1)) * UNITS[match.group(2)] / haste
        return f"{max(1, round(1000 * seconds))}ms"

    for rule in rules["groups"][0]["rules"]:
        # Ranges, offsets and `for`; numbers in formulas have no unit.
        rule["expr"] = re.sub(r"(?<=[\[ ])(\d+)(ms|s|m|h|d)\b", shorter, rule["expr"])
        if "for" in rule:
            rule["for"] = re.sub(r"^(\d+)(ms|s|m|h|d)$", shorter, rule["for"])
    return rules


class Stage(Processes):
    """The processes of a run, in a folder of its own."""

    def __init__(self, options, folder):
        super().__init__(folder)
        self.options = options


class Daemon:
    def __init__(self, stage, name, feeds, memory="1GiB", **environment):
        self.stage, self.name = stage, name
        self.socket = stage.folder / f"{name}.sock"
        self.endpoint = f"ipc://{self.socket}"
        config = stage.folder / f"{name}.toml"
        config.write_text(f'[daemon]\nendpoints = ["{self.endpoint}"]\nstats = "127.0.0.1:0"\n'
                          f'memory = "{memory}"\n' + "".join(feeds))
        self.process = stage.start(name, stage.options.bin / "batchwrightd", "--config", config,
                                   **environment)
        self.port = eventually(lambda: listening_port(self.process), f"the port of {name}", 120)

    def page(self, path="/stats"):
        return get(f"http://127.0.0.1:{self.port}{path}")

    def feed(self, name):
        return next(feed for feed in json.loads(self.page())["feeds"] if feed["name"] == name)


class Job:
    def __init__(self, stage, daemon, feed, ranks=1, step=0.02, *more):
        self.name, self.feed, self.daemon = f"job-{feed}-{ranks}" + "".join(more), feed, daemon
        self.record = stage.folder / f"{self.name}.json"
        self.process = stage.start(self.name, sys.executable, "-B", Path(__file__).parent / "job.py",
                                   daemon.endpoint, feed, ranks, step, self.record, *more)

    def figures(self):
        expect(self.process.poll() is None, f"{self.name} has ended with {self.process.returncode}")
        return json.loads(self.record.read_text()) if self.record.exists() else []

    def batches(self):
        return min((rank["batches"] for rank in self.figures()), default=0)

    def trains(self, batches):
        eventually(lambda: self.batches() >= batches, f"batch {batches} of {self.name}",
                   self.daemon.stage.options.patience)


class Prometheus:
    """It scrapes daemons, by their names, and evaluates the rules."""

    def __init__(self, stage, daemons):
        options = stage.options
        rules = yaml.safe_load((ROOT / "systemd/alerts.yml").read_text())
        self.known = {rule["alert"] for rule in rules["groups"][0]["rules"]}
        (stage.folder / "alerts.yml").write_text(yaml.safe_dump(hastened(rules, options.haste)))
        interval = f"{round(1000 * options.interval)}ms"
        (stage.folder / "prometheus.yml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": interval, "scrape_timeout": interval,
                       "evaluation_interval": interval},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "batchwright", "static_configs": [
                {"targets": [f"127.0.0.1:{daemon.port}"], "labels": {"instance": daemon.name}}
                for daemon in daemons]}]}))
        process = stage.start("prometheus", "/usr/bin/prometheus",
                              f"--config.file={stage.folder}/prometheus.yml",
                              f"--storage.tsdb.path={stage.folder}/tsdb",
                              "--web.listen-address=127.0.0.1:0")
        port = eventually(lambda: listening_port(process), "Prometheus's port", 120)
        self.interval = options.interval
        self.api = f"http://127.0.0.1:{port}/api/v1/"
        eventually(lambda: len(query(self.api, "batchwright_build_info")) == len(daemons),
                   "a scrape of each daemon", 120)

    def firing(self):
        """(alert, instance, feed) of what fires now."""
        return {(each["metric"]["alertname"], each["metric"].get("instance", ""),
                 each["metric"].get("feed", ""))
                for each in query(self.api, 'ALERTS{alertstate="firing"}')}

    def fired(self):
        """What has fired at any time, each with the number of times that it began to."""
        found = {}
        for each in query(self.api, 'ALERTS{alertstate="firing"}[1d]'):
            labels = each["metric"]
            times = [float(at) for at, _ in each["values"]]
            # An evaluation may be late; what is gone for three was resolved meanwhile.
            begins = 1 + sum(b - a > 3 * self.interval for a, b in zip(times, times[1:]))
            key = (labels["alertname"], labels.get("instance", ""), labels.get("feed", ""))
            found.setdefault(key, []).append((begins, labels))
        return found
