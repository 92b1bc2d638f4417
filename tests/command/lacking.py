#!/usr/bin/python3
"""Where threads or file descriptors are lacking, no command aborts, hangs or ends with the system's
words alone: it works, or names what is lacking and its limit.

    lacking.py BATCHWRIGHT
"""

import os
import resource
import subprocess
import sys
import tempfile

NOBODY = 65534
HERE = os.path.realpath(__file__)
NOWHERE = "unix:///no-such-folder/stats.sock"
COMMANDS = {
    "bench": ["--endpoint", "ipc:///no-such-folder/s", "--feed", "train", "--stats", NOWHERE],
    "tail": ["--endpoint", "ipc:///no-such-folder/s", "--feed", "train"],
    "events": ["--endpoint", "ipc:///no-such-folder/s"],
    "check": ["--endpoint", "ipc:///no-such-folder/s", "--feed", "train"],
    "top": ["--once", "--stats", NOWHERE],
    "run": ["--config", "{folder}/config.toml", "--", "true"],
    "ingest": ["npy", "{folder}/in", "--into", "{folder}/out"],
    "inspect": ["{folder}/none"], "verify": ["{folder}/none"], "journal": ["{folder}/none"],
    "live": ["replay", "{folder}/none"],
    "push": ["--endpoint", "ipc:///no-such-folder/s", "--feed", "train", "{folder}/none"],
    "forward": ["--from", "ipc:///no-such-folder/s", "--feed", "train", "--to", "live",
                "--endpoint", "ipc:///no-such-folder/l"],
    "cmvn": ["--dataset", "{folder}/none", "--into", "{folder}/cmvn"],
    "plan": ["--dataset", "{folder}/none"], "show": ["--feed-config", "{folder}/config.toml"],
    "gather": ["{folder}/none"], "keygen": ["{folder}/key"], "completion": ["bash"]}
BARE = ("Resource temporarily unavailable", "Too many open files")
LIMITS = {"threads": ("ulimit -u", "LimitNPROC"), "descriptors": ("ulimit -n", "LimitNOFILE")}


def without_threads():
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if os.geteuid() == 0:  # whom this limit does not bind
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def without_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def faults_of(words, kind, limit):
    finished = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=60, preexec_fn=limit)
    said = finished.stderr
    if finished.returncode < 0 or finished.returncode >= 128:
        yield f"{words[1]} without {kind}: ended by a signal: {finished.returncode}: {said}"
    if any(bare in said for bare in BARE) and not any(each in said for each in LIMITS[kind]):
        yield f"{words[1]} without {kind}: names no limit: {said}"


def main():
    batchwright = sys.argv[1]
    helped = subprocess.run([batchwright, "--help"], capture_output=True, text=True, check=True)
    names = {line.split()[0] for line in helped.stdout.partition("ubcommands:")[2].splitlines()
             if line.startswith("  ") and line[2] != " "} - {"help"}
    assert names == set(COMMANDS), names ^ set(COMMANDS)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for name, options in COMMANDS.items():
            words = [batchwright, name] + [option.format(folder=folder) for option in options]
            faults += faults_of(words, "threads", without_threads)
            faults += faults_of(words, "descriptors", without_descriptors)
    assert not faults, "\n".join(faults)


main()
