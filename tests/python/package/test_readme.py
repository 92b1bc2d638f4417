"""The blocks of README.md, executed in their order, in one folder that is empty at first.

A block is a shell script, or Python. One that begins with a comment of a file's name alone
(`# train.toml`) becomes that file. A word after the language says what a block needs beyond a build
and a user who may do nothing special:

    files    folders of files of one's own, which are made here
    install  packages or a whole build; its lines of `export` are what the other blocks run with
    service  an installed package, and root
    cluster  several hosts

Blocks of the last three kinds are not executed: every program, file, preset, command and option of
theirs must exist.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import wave
from typing import NamedTuple

import numpy as np
import pytest

import served

README = served.ROOT / "README.md"
NEEDS = ("", "files", "install", "service", "cluster")
BUILD = pathlib.Path(os.environ["BATCHWRIGHT_BUILD"])
OTHERS = {"apt", "usermod", "$EDITOR", "batchwrightd"}  # programs of which no word is looked at


class Block(NamedTuple):
    line: int
    language: str
    needs: str
    text: str

    @property
    def file(self):
        """The name of the file that the block is, if it is one."""
        found = re.match(r"(?:#|//) ([\w.-]+\.\w+)\n", self.text)
        return found and found[1]


def blocks_of(text):
    found = re.finditer(r"^```(\w*) ?(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, each.start()) + 1, *each.groups()) for each in found]


BLOCKS = blocks_of(README.read_text())


def with_needs(*needs):
    return [block for block in BLOCKS if block.needs in needs]


# ---- what is executed -----------------------------------------------------------------------


def exported():
    """The environment of the blocks marked `install`, of the build that is tested here."""
    lines = [line for block in with_needs("install") for line in block.text.splitlines()
             if line.startswith("export ")]
    script = "\n".join([*lines, "env -0"]).replace("$PWD/build/release", str(BUILD))
    own = {name: value for name, value in os.environ.items() if not name.startswith("BATCHWRIGHT_")}
    own.pop("PYTHONPATH", None)
    printed = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=served.ROOT, env=own,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(each.split("=", 1) for each in printed.split("\0") if each)


TORCHRUN = """#!/usr/bin/env bash
# What torchrun does for a job of one host. Debian 12's own ends with an error of its own.
set -euo pipefail
[[ $1 == --nproc-per-node ]]
export WORLD_SIZE=$2 LOCAL_WORLD_SIZE=$2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1
MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
export MASTER_PORT
for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank python3 "${@:3}" &
  ranks+=($!)
done
for rank in "${ranks[@]}"; do wait "$rank"; done
"""

INSTALLED = """Name: batchwright
Description: as it is installed, in the source tree
Version: 0
Cflags: -I{root}/client/library -I{root}/formats
Libs: -L{build}/lib -lbatchwright
"""


@pytest.fixture
def environment(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(sys.executable)
    (tools / "torchrun").write_text(TORCHRUN)
    (tools / "torchrun").chmod(0o755)
    (tools / "batchwright.pc").write_text(INSTALLED.format(root=served.ROOT, build=BUILD))
    made = exported()
    return {**made, "PATH": f"{tools}:{made['PATH']}", "PKG_CONFIG_PATH": str(tools),
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


def write_sound(path, seconds, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).normal(0, 3000, int(16000 * seconds)).astype("<i2")
    with wave.open(str(path), "w") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


def write_own_files(folder):
    """What the blocks marked `files` take."""
    for label in ("walk", "run"):
        for number in range(3):
            write_sound(folder / "prompts" / label / f"{number}.wav", 0.5 + number, number)
            path = folder / "sensors" / label / f"{number}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, np.ones((10 + number, 8), np.float32))
    (folder / "documents").mkdir()
    for number in range(3):
        np.save(folder / "documents" / f"{number}.npy", np.arange(20 + number, dtype=np.uint16))
    for name, seconds in (("speech", 1), ("babble", 3), ("street", 3), ("rooms", 0.2)):
        for number in range(3):
            write_sound(folder / name / f"{number}.wav", seconds, number)


def execute(block, folder, environment):
    """Errors: AssertionError, with the block's line and what it printed."""
    if block.file:
        (folder / block.file).write_text(block.text)
        return
    program = {"sh": ["bash", "-euo", "pipefail"], "python": [sys.executable, "-"]}[block.language]
    ended = subprocess.run(program, input=block.text, cwd=folder, env=environment, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert ended.returncode == 0, f"{README}:{block.line}:\n{block.text}\n{ended.stdout}"


def missing_for_it():
    programs = [each for each in ("bash", "g++", "pkg-config") if shutil.which(each) is None]
    return programs + (["torch"] if importlib.util.find_spec("torch") is None else [])


@pytest.mark.skipif(missing_for_it(), reason=f"not installed: {', '.join(missing_for_it())}")
def test_every_block_works_in_its_order_in_an_empty_folder(tmp_path, environment):
    folder = tmp_path / "empty"
    folder.mkdir()
    made = False
    for block in with_needs("", "files"):
        if block.needs == "files" and not made:
            write_own_files(folder)
            made = True
        execute(block, folder, environment)
    assert "</html>" in (folder / "rows.html").read_text()


def test_a_block_that_fails_is_named_by_its_line(tmp_path):
    block, = blocks_of("one\ntwo\n```sh\nfalse\n```\n")
    with pytest.raises(AssertionError, match=r"README.md:3:\s+false"):
        execute(block, tmp_path, dict(os.environ))


# ---- what is looked at alone ----------------------------------------------------------------


def help_of(words):
    """The help of a command of `batchwright`."""
    return subprocess.run([BUILD / "bin" / "batchwright", *words, "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def faults_of_batchwright(words):
    """Of a call of the command: the commands and options that there are not."""
    words = words[:words.index("--")] if "--" in words else words
    call = words[:2] if words[0] == "ingest" else words[:1]
    for depth, word in enumerate(call):
        if not re.search(rf"^  {word} ", help_of(call[:depth]), re.MULTILINE):
            return [f"no command {' '.join(call)}"]
    known = help_of(call)
    return [f"{' '.join(call)} has no {word}" for word in words
            if word.startswith("--") and f"{word} " not in known]


def preset_faults(words):
    presets = json.loads((served.ROOT / "CMakePresets.json").read_text())["configurePresets"]
    return [f"no preset {name}" for flag, name in zip(words, words[1:])
            if flag == "--preset" and name not in {each["name"] for each in presets}]


def unit_faults(words):
    return [f"no unit {words[-1]}"
            for each in [served.ROOT / "systemd" / f"{words[-1]}.service"] if not each.exists()]


def faults_of(line):
    """What a command of a shell names, and is not there."""
    words = re.sub(r"#.*|^srun -N\d+ |^runuser -u \w+ -- ", "", line).split()
    if not words or words[0] == "export":
        return []
    if words[0] == "batchwright":
        return faults_of_batchwright(words[1:])
    if words[0] == "systemctl":
        return unit_faults(words)
    if words[0] == "cmake":
        return preset_faults(words)
    if "/" in words[0]:
        return [] if (served.ROOT / words[0]).is_file() else [f"no file {words[0]}"]
    return [] if words[0] in OTHERS else [f"{words[0]} is no program that is known here"]


def commands_of(block):
    return [line for each in block.text.splitlines() for line in each.split(" && ")]


@pytest.mark.parametrize("block", with_needs("install", "service", "cluster"),
                         ids=lambda block: f"line {block.line}")
def test_what_is_not_executed_names_only_what_there_is(block):
    assert block.language == "sh"
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    assert [fault for line in commands_of(block) for fault in faults_of(line)] == []


def test_files_of_the_service_are_those_that_the_packages_install():
    packaged = (served.ROOT / "systemd" / "packages.cmake").read_text()
    packaged += (served.ROOT / "systemd" / "CMakeLists.txt").read_text()
    for name in re.findall(r"/etc/([\w./-]+)", README.read_text()):
        assert pathlib.Path(name).name in packaged


@pytest.mark.parametrize("line, fault", [
    ("batchwright ingest audio x --into y --like kaldi", ""),
    ("batchwright ingest vinyl x", "no command ingest vinyl"),
    ("srun -N4 batchwright run --cfg x -- python3 x.py --y", "run has no --cfg"),
    ("cmake --preset realease", "no preset realease"),
    ("tests/install-packges build", "no file tests/install-packges"),
    ("systemctl enable --now batchwright", "no unit batchwright"),
    ("brew install batchwright", "brew is no program that is known here"),
])
def test_a_name_that_there_is_not_is_seen(line, fault):
    assert faults_of(line) == ([fault] if fault else [])


def test_each_block_has_a_kind_that_is_known():
    text = README.read_text()
    assert len(BLOCKS) == text.count("\n```") / 2
    for block in BLOCKS:
        assert block.needs in NEEDS, f"{README}:{block.line}"
        assert block.language in ("sh", "python") or block.file, f"{README}:{block.line}"
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\n\n    [^ ]", outside), "a block that is indented is not executed"
