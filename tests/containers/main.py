"""Runs the cases, and prints a line of a table for each. Called by `run`."""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import cases
import image_cases
import lint
import pods
from engine import Engine, Failed, call, folder_of

import case_table  # engine has named its folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKE_IMAGE = ROOT / "systemd" / "deploy" / "containers" / "make-image"
WIDTH = 22  # of the cases' names
OF_TEXT = {case.__name__ for case in lint.CASES}
OF_IMAGE = {case.__name__ for case in image_cases.CASES}
ALL = {case.__name__: case for room in (lint, image_cases, cases) for case in room.CASES}
NOT_TRIED = ("a kubelet: the manifests' mounts, rights, limits and probes are given to podman",
             "registries, GPUs, and CNI networks: each container has a network of its own")


def words():
    parser = argparse.ArgumentParser(prog="tests/containers/run", description=(
        "The image, and the manifests for Kubernetes by podman."))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all by default; see --list")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "static",
                        help="a static build of which systemd/make-packages has made a tarball")
    parser.add_argument("--list", action="store_true", help="print the cases, and end")
    given = parser.parse_args()
    for name in given.cases:
        if name not in ALL:
            parser.error(f"found case {name}; allowed: {' '.join(ALL)}")
    return given


def tarball(build):
    found = sorted(build.glob("packages/batchwright-*-linux-*.tar.gz"))
    if not found:
        raise Failed(f"no tarball in {build}/packages; systemd/make-packages makes it")
    return found[-1]


def make_images(engine, tar):
    """The daemon's image twice, to be compared; and busybox, which the DaemonSet's first step takes."""
    began = time.monotonic()
    call(MAKE_IMAGE, tar, "--into", engine.work / "first.tar")
    seconds = time.monotonic() - began
    call(MAKE_IMAGE, tar, "--into", engine.work / "second.tar")
    first, second = ((engine.work / name).read_bytes() for name in ("first.tar", "second.tar"))
    engine.made = {"seconds": seconds, "bytes": len(first), "equal": first == second}
    engine.load(engine.work / "first.tar")
    make_busybox(engine)


def make_busybox(engine):
    program = shutil.which("busybox")
    root, layout = engine.work / "busybox", engine.work / "busybox-layout"
    (root / "bin").mkdir(parents=True)
    shutil.copy(program, root / "bin" / "busybox")
    (root / "bin" / "sh").symlink_to("busybox")
    call("umoci", "init", "--layout", layout)
    call("umoci", "new", "--image", f"{layout}:busybox")
    call("umoci", "insert", "--image", f"{layout}:busybox", root, "/")
    with tarfile.open(engine.work / "busybox.tar", "w") as archive:
        archive.add(layout, ".")
    engine.load(engine.work / "busybox.tar")


def run_case(name, home):
    """Returns whether nothing went wrong."""
    return case_table.run_case(name, lambda: ALL[name](home), WIDTH)


def main():
    given = words()
    if given.list:
        case_table.print_cases(ALL, WIDTH)
        return 0
    wanted = given.cases or list(ALL)
    build = given.build.resolve()
    good = [run_case(name, Text(build / "bin")) for name in wanted if name in OF_TEXT]
    good += [case_table.run_case(name, lambda case=ALL[name]: with_image(case, build), WIDTH)
             for name in wanted if name in OF_IMAGE]
    wanted = [name for name in wanted if name not in OF_TEXT | OF_IMAGE]
    if wanted:
        good.append(with_podman(wanted, build))
        print("not tried: " + "; ".join(NOT_TRIED))
    return 0 if all(good) else 1


class Text:
    """What the cases take that run no container."""

    def __init__(self, programs):
        self.programs = programs


def with_image(case, build):
    """The figures of a case that takes the image's files and no container."""
    with tempfile.TemporaryDirectory(prefix="batchwright-image.", dir="/var/tmp") as folder:
        return case(image_cases.Image(tarball(build), pathlib.Path(folder)))


def with_podman(wanted, build):
    """Returns whether nothing went wrong."""
    work = folder_of("batchwright-containers.")
    engine = Engine(work)
    try:
        tar = tarball(build)
        with tarfile.open(tar) as archive:
            archive.extractall(work)
        make_images(engine, tar)
        reason = engine.why_not()
        if reason is not None:
            print(f"skipped: podman runs nothing here ({reason}): {', '.join(wanted)}")
            return True
        home = pods.Home(engine, next(work.glob("batchwright-*")))
        return all([run_case(name, home) for name in wanted])
    except (Failed, OSError, subprocess.SubprocessError) as error:
        print(f"tests/containers/run: {error}", file=sys.stderr)
        return False
    finally:
        engine.close()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
