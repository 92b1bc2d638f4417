"""Programs are built as the documents say: documented_builds.py SOURCE BUILD COMPILER

By one -I and -L, by pkg-config and by CMake's find_package(), each against a build and against what is
installed of it; and the edge example by the commands of its README, which also run it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(job LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(batchwright 0.2 REQUIRED)
add_executable(mean mean.cpp)
target_link_libraries(mean PRIVATE batchwright::client)
add_executable(writes writes.cpp)
target_link_libraries(writes PRIVATE batchwright::client batchwright::storage)
"""
WRITES = """#include <batchwright/client.hpp>
#include <batchwright/front_end.h>
#include <batchwright/writer.h>

int main() { return bw_abi_version() == BW_ABI_VERSION && bw_writer_library_version() ? 0 : 1; }
"""


def run(words: List[str], folder: Path, more: Optional[Dict[str, str]] = None) -> str:
    done = subprocess.run(words, cwd=folder, env={**os.environ, **(more or {})}, timeout=500,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def block(document: Path, begin: str) -> str:
    """The block of a document that begins so."""
    found = re.search(rf"```\w*\n({re.escape(begin)}.*?)```", document.read_text(), re.DOTALL)
    if found is None:
        raise SystemExit(f"failed: {document} has no block that begins with {begin!r}")
    return found[1]


def against(prefix: Path, libraries: Path, folder: Path, compiler: str) -> None:
    """`prefix` has include/; `libraries` has the libraries, pkgconfig/ and cmake/."""
    loader = {"LD_LIBRARY_PATH": str(libraries), "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    run([compiler, "-std=c++20", "mean.cpp", "-o", "mean", "-I", str(prefix / "include"), "-L",
         str(libraries), "-lbatchwright"], folder)
    flags = run(["pkg-config", "--cflags", "--libs", "batchwright", "batchwright-storage"], folder,
                loader).split()
    run([compiler, "-std=c++20", "writes.cpp", "-o", "writes", *flags], folder)
    run(["./writes"], folder, loader)
    built = folder / f"built-{prefix.name}"
    run(["cmake", "-S", str(folder), "-B", str(built), f"-DCMAKE_CXX_COMPILER={compiler}",
         f"-Dbatchwright_DIR={libraries / 'cmake' / 'batchwright'}"], folder)
    run(["cmake", "--build", str(built)], folder)
    run([str(built / "writes")], folder)


def main() -> None:
    source, build, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mean.cpp").write_text(block(source / "README.md", "// mean.cpp"))
        (folder / "writes.cpp").write_text(WRITES)
        (folder / "CMakeLists.txt").write_text(PROJECT)
        against(build, build / "lib", folder, compiler)
        installed = folder / "installed"
        for part in ("dev", "client"):
            run(["cmake", "--install", str(build), "--prefix", str(installed), "--component", part],
                folder)
        libraries = next(installed.rglob("batchwright.pc")).parent.parent
        against(installed, libraries, folder, compiler)
        # What is installed is whole without the source tree.
        for file in libraries.rglob("*.cmake"):
            if str(source) in file.read_text():
                raise SystemExit(f"failed: {file.name} names {source}")
        readme = source / "client" / "examples" / "edge" / "README.md"
        trained = folder / "edge"
        trained.mkdir()
        places = {"BW": str(source), "BUILD": str(build), "XDG_RUNTIME_DIR": str(trained)}
        first, second = (block(readme, begin) for begin in ("g++", "mkdir"))
        run(["bash", "-ec", first + "rm -r windows\n" + second], trained, places)


if __name__ == "__main__":
    main()
