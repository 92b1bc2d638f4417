"""Builds the simulation and tests once more, from rewritten sources.

The commands are those of another build, as Ninja has them. What includes a rewritten file is
compiled here; all else is linked from there.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#  Where a run spends its time beside what is rewritten.
OPTIMIZED = ("tests/simulation/", "formats/", "daemon/planning/", "daemon/delivery/", "daemon/stats/")
HEADER = """\
#pragma once
#include <cstdio>
#include <cstdlib>
#include <utility>

/// The mutant of this run; 0: none; -1: all sites that are reached are noted.
inline const int mutant_number = [] {
  const char* const number = std::getenv("MUTANT");
  return number == nullptr ? 0 : std::atoi(number);
}();

struct MutantSites {
  bool reached[%d] = {};
  ~MutantSites() {
    if (mutant_number != -1) return;
    std::FILE* const file = std::fopen(std::getenv("MUTANT_SITES"), "a");
    for (int i = 0; i < %d; ++i) {
      if (reached[i]) std::fprintf(file, "%%d\\n", i);
    }
    std::fclose(file);
  }
};
inline MutantSites mutant_sites;

inline bool mutant_is(int number) {
  if (mutant_number == -1) mutant_sites.reached[number] = true;
  return number == mutant_number;
}

template <class Value>
bool mutant_turns(int number, Value&& value) {
  return static_cast<bool>(std::forward<Value>(value)) != mutant_is(number);
}

template <class Value>
Value mutant_moves(int number, Value value, int by) {
  return mutant_is(number) ? static_cast<Value>(value + static_cast<Value>(by)) : value;
}
"""


class Build:
    """`folder`: where it is made; `other`: the build whose commands these are."""

    def __init__(self, folder, other):
        self.folder, self.other = Path(folder), Path(other)
        self.sources = self.folder / "sources"  # rewritten
        told = subprocess.run(["ninja", "-C", other, "-t", "commands", "simulation",
                               "delivery_tests", "client_tests"], check=True, capture_output=True,
                              text=True).stdout
        self.commands = [line for line in told.splitlines() if output_of(line)]
        self.made = set()

    def files(self, folders):
        """What the simulation compiles in these folders, with the headers that this needs."""
        found = set()
        for output, paths in self._dependencies().items():
            if "simulation" in output or "/feed.dir/" in output:
                found |= {path for path in paths if path.startswith(folders)}
        return sorted(found)

    def _dependencies(self):
        told = subprocess.run(["ninja", "-C", self.other, "-t", "deps"], check=True,
                              capture_output=True, text=True).stdout
        all_paths, output = {}, ""
        for line in told.splitlines():
            if line[:1].strip():
                output = line.split(": #deps")[0]
                all_paths[output] = set()
            elif line.strip().startswith(str(ROOT) + "/"):
                all_paths[output].add(line.strip()[len(str(ROOT)) + 1:])
        return all_paths

    def write(self, path, text):
        """A rewritten file, touched only where it is another than before."""
        file = self.sources / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        return file

    def begin(self, sites):
        self.sources.mkdir(parents=True, exist_ok=True)
        self.write("mutant.h", HEADER % (sites + 1, sites + 1))

    def errors(self, path):
        """The lines of rewritten files that do not compile where this one is compiled."""
        command = next(each for each in self.commands if self._compiles(each, path))
        words = without_outputs(self._words(command, optimized=False))
        words[words.index("-c") + 1] = str(self.sources / path)
        done = subprocess.run(words + ["-fsyntax-only", "-fmax-errors=0"], cwd=self.other,
                              capture_output=True, text=True)
        place = re.compile(rf"{re.escape(str(self.sources))}/(\S+?):(\d+):\d+:\s+(?:error|required)")
        found = {(match[1], int(match[2])) for match in place.finditer(done.stderr)}
        if done.returncode != 0 and not found:
            sys.exit(f"mutants: {path} does not compile\n{done.stderr[:4000]}")
        return found

    def _compiles(self, command, path):
        found = re.search(r" -c (\S+\.(?:cpp|cxx))$", command)
        if not found or output_of(command).endswith(".gch"):
            return False
        source = Path(self.other, found[1])
        if source == ROOT / path:
            return True
        return "/Unity/" in found[1] and f'"{ROOT / path}"' in source.read_text()

    def make(self, paths, tests):
        """Compiles and links the simulation, and programs of the tests in these folders."""
        self.made = set()
        targets = {target_of(output) for output, needs in self._dependencies().items()
                   if needs & set(paths)}
        for command in self.commands:
            output = output_of(command)
            if output in tests:
                self._make_tests(command, output, tests[output], paths)
            elif " -c " in command:
                optimized = output.startswith(OPTIMIZED)
                if (optimized or target_of(output) in targets) and self._is_of_simulation(output):
                    self._compile(command, output, self._unity_of(command, paths), optimized)
            elif any(word in self.made for word in command.split()):
                self._link(command, output)

    @staticmethod
    def _is_of_simulation(output):
        return not (output.endswith(".gch") or "_tests.dir/" in output or
                    output.startswith("client/library/"))

    def _make_tests(self, link, output, folders, paths):
        """One file of all that a test program is made of, without the tests of other folders."""
        inner = f"/{Path(output).name}.dir/"
        compiles = [each for each in self.commands
                    if f"{inner}Unity/" in output_of(each) and " -c " in each]
        text = "".join(self._unity_of(each, paths) for each in compiles)
        lines = [line for line in text.splitlines() if line.startswith("#include") and (
            "_test.cpp" not in line or any(f"/{folder}" in line for folder in folders))]
        whole = f"{output}.o"
        self._compile(compiles[0], whole, "\n".join(sorted(lines)) + "\n", True)
        link = re.sub(rf"\S+{re.escape(inner)}\S+\.o", "", link)
        self._link(link.replace(" -o ", f" {whole} -o ", 1), output)

    def _unity_of(self, command, paths):
        """Several files that are compiled as one, with those of them that are rewritten."""
        given = re.search(r" -c (\S+)", command)[1]
        if "/Unity/" not in given:
            return f'#include "{Path(self.other, given)}"\n'
        text = Path(self.other, given).read_text()
        for path in paths:
            text = text.replace(f'"{ROOT / path}"', f'"{self.sources / path}"')
        return text

    def _compile(self, command, output, text, optimized):
        source = self.write("compiled/" + output.replace("/", ".") + ".cpp", text)
        target = self.folder / output
        target.parent.mkdir(parents=True, exist_ok=True)
        words = without_outputs(self._words(command, optimized))
        words[words.index("-c") + 1] = str(source)
        words += ["-o", str(target), "-MD", "-MF", f"{target}.d"]
        self.made.add(output)
        key = Path(f"{target}.key")
        if is_new(target) and key.exists() and key.read_text() == " ".join(words):
            return
        print(f"compiles {output}", flush=True)
        self._run(words, self.other)
        key.write_text(" ".join(words))

    def _words(self, command, optimized):
        words = shlex.split(command)
        while "-include" in words:  # headers that are compiled beforehand, from other sources
            at = words.index("-include")
            del words[at:at + 2]
        words = [word for word in words if word != "-Winvalid-pch"]
        at = next(i for i, word in enumerate(words) if word.startswith(("-I", "-D")))
        here = ["-w", "-I", str(self.sources), "-include", str(self.sources / "mutant.h")]
        return words[:at] + here + words[at:] + (["-O1"] if optimized else [])

    def _link(self, command, output):
        """What is not made here is that of the other build."""
        steps = command.split(" && ")
        kept = [step for step in steps if re.search(r" -o |/ar |/ranlib |cmake -E rm ", step)]
        words = []
        for word in " && ".join(kept).split():
            is_theirs = word not in self.made and word != output and not word.startswith("/")
            if is_theirs and (self.other / word).is_file():
                word = str(self.other / word)
            words.append(word.replace(f"-rpath,{self.other}/lib", f"-rpath,{self.folder}/lib"))
        (self.folder / output).parent.mkdir(parents=True, exist_ok=True)
        self._run(["bash", "-c", " ".join(words)], self.folder)
        self.made.add(output)

    @staticmethod
    def _run(words, folder):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"mutants: {' '.join(words)}\n{done.stdout}{done.stderr[:6000]}")


def output_of(command):
    match = re.search(r" -o (\S+)", command) or re.search(r"ar qc (\S+)", command)
    return match[1] if match else ""


def target_of(output):
    return re.sub(r"(\.dir)/.*", r"\1", output)


def without_outputs(words):
    words = [word for word in words if word != "-MD"]
    for option in ("-o", "-MF", "-MT"):
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    return words


def is_new(target):
    """Whether it is newer than all that it was made of."""
    depends = Path(f"{target}.d")
    if not target.exists() or not depends.exists():
        return False
    needed = depends.read_text().replace("\\\n", " ").split()[1:]
    when = target.stat().st_mtime
    return all(Path(word).exists() and Path(word).stat().st_mtime <= when for word in needed)
