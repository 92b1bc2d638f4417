#!/usr/bin/python3
"""Every program and script answers --help with help and exit code 0, and refuses an option that it
does not know with 2: none takes it for a path.

    every_help.py BIN     BIN is the folder of batchwright and batchwrightd
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Of Debian's packages, and what runs inside of a container that another script starts.
NOT_CALLED = {"postinst", "postrm", "prerm", "inside"}
# What they do not know they hand to ctest.
FOR_CTEST = {"tests/run"}
SKIPPED = 77  # something is missing here that the script needs
NO_MODULE = "No module named"  # the same, of a benchmark against other packages
UNKNOWN = "--no-such-option"


def scripts():
    for top in ("client", "systemd", "tests"):
        for folder, _, names in os.walk(ROOT / top):
            for name in sorted(names):
                path = pathlib.Path(folder) / name
                if name in NOT_CALLED or not os.access(path, os.X_OK):
                    continue
                with path.open("rb") as file:
                    if file.read(2) == b"#!":
                        yield path
    yield ROOT / ".ci/run"


def commands(batchwright):
    """The words of every command of `batchwright`."""
    text = subprocess.run([batchwright, "--help"], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in text.partition("ubcommands:")[2].splitlines()
             if line.startswith("  ") and line[2] != " "]
    assert "ingest" in names and "run" in names, text
    yield []
    for name in names:
        if name != "help":
            yield [name]
    for kind in ("audio", "npy", "npz", "kaldi", "jsonl"):
        yield ["ingest", kind]
    yield ["live", "replay"]


def call(words):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=120)


def is_missing(finished):
    return finished.returncode == SKIPPED or NO_MODULE in finished.stderr


def faults_of(words, refuses):
    helped = call([*words, "--help"])
    shown = " ".join(map(str, words))
    if is_missing(helped):
        print(f"skipped: {shown}: {(helped.stdout + helped.stderr).splitlines()[-1]}")
        return
    if helped.returncode != 0 or not helped.stdout.strip():
        yield f"{shown} --help: exit code {helped.returncode}, {helped.stdout + helped.stderr}"
    if not refuses:
        return
    refused = call([*words, UNKNOWN])
    if refused.returncode != 2 and not is_missing(refused):
        yield f"{shown} {UNKNOWN}: exit code {refused.returncode}, {refused.stdout + refused.stderr}"


def main():
    programs = pathlib.Path(sys.argv[1])
    os.environ["PYTHONPATH"] = str(ROOT / "client/python")
    os.environ["BATCHWRIGHT_LIBRARY"] = str(programs.parent / "lib/libbatchwright.so.1")
    os.environ["BATCHWRIGHT_STORAGE_LIBRARY"] = str(
        programs.parent / "lib/libbatchwright-storage.so.1")
    calls = [([programs / "batchwright", *words], True)
             for words in commands(programs / "batchwright")]
    calls += [([programs / name], True) for name in ("batchwrightd", "cmvn", "edge")
              if (programs / name).exists()]
    calls.append(([sys.executable, ROOT / "client/examples/multistyle.py"], True))
    calls += [([path], str(path.relative_to(ROOT)) not in FOR_CTEST) for path in scripts()]
    faults = [fault for words, refuses in calls for fault in faults_of(words, refuses)]
    print(*faults, sep="\n")
    print(f"{len(calls)} programs, commands and scripts")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
