"""Cases of the image that take no podman: what it says of itself, and the daemon within its root."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile

import manifests
import pods
from engine import Skipped, call, expect, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKE_IMAGE = ROOT / "systemd" / "deploy" / "containers" / "make-image"
SOURCE = "https://git.example/batchwright"
TOOLS = ("umoci", "dpkg-query")


class Image:
    """One that make-image has made of a tarball, and its files, in a folder of its own."""

    def __init__(self, tar, folder):
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing or os.geteuid() != 0:
            raise Skipped(f"no {' and no '.join(missing)} here" if missing else "takes root")
        self.tar, self.folder, self.archive = tar, folder, folder / "first.tar"
        call(MAKE_IMAGE, tar, "--into", self.archive, "--source", SOURCE)
        self.layout = folder / "layout"
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.layout)
        call("umoci", "unpack", "--image", f"{self.layout}:batchwright", folder / "bundle")
        self.root = folder / "bundle" / "rootfs"
        with tarfile.open(tar) as archive:
            archive.extractall(folder)
        self.tree = next(folder.glob("batchwright-*-linux-*"))

    def blob(self, descriptor):
        return json.loads((self.layout / "blobs" / descriptor["digest"].replace(":", "/")).read_text())

    def settings(self):
        index = json.loads((self.layout / "index.json").read_text())
        return self.blob(self.blob(index["manifests"][0])["config"])


def image_says_what_it_is(image):
    """The same bytes twice; labels; what is linked in by packages, and where LGPL parts come from."""
    again = image.folder / "second.tar"
    call(MAKE_IMAGE, image.tar, "--into", again, "--source", SOURCE)
    expect(again.read_bytes() == image.archive.read_bytes(), "two images of a tarball are equal")
    settings = image.settings()
    labels = {key.rpartition(".")[2]: value for key, value in settings["config"]["Labels"].items()}
    version = re.search(r"batchwright-([0-9.]+)-linux", image.tar.name)[1]
    expect((labels["version"], labels["source"]) == (version, SOURCE), f"version and source: {labels}")
    commit = image.tree / "share" / "doc" / "batchwright" / "revision"
    expect(labels.get("revision") == (commit.read_text().strip() if commit.exists() else None),
           f"the commit of the tarball: {labels}")
    built = int((image.tree / "bin" / "batchwrightd").stat().st_mtime)
    expect(settings["created"] == labels["created"] and built > 0 and
           call("date", "--utc", f"--date={labels['created']}", "+%s").strip() == str(built),
           f"the time of the build: {labels['created']}")
    packages = check_bill(image, version)
    check_licenses(image, packages)
    return f"{len(packages)} packages in its SPDX file, revision {labels.get('revision', 'none')[:8]}"


def check_bill(image, version):
    """The packages of the SPDX file by their names."""
    bill = json.loads((image.root / "usr/share/sbom/batchwright.spdx.json").read_text())
    expect((bill["spdxVersion"], bill["dataLicense"], bill["SPDXID"]) ==
           ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"), "the head of the SPDX file")
    packages = {each["name"]: each for each in bill["packages"]}
    identities = {each["SPDXID"] for each in bill["packages"]}
    expect(len(packages) == len(identities) == len(bill["packages"]), "each package once")
    expect(packages["batchwright"]["versionInfo"] == version, "the version of the image")
    linked = {(each["relationshipType"], each["relatedSpdxElement"]) for each in bill["relationships"]}
    expect({each for _, each in linked} == identities, "each package has its relation")
    expect({kind for kind, _ in linked} == {"DESCRIBES", "STATIC_LINK"}, "all is linked into the programs")
    for name in set(packages) - {"batchwright"}:
        number = call("dpkg-query", "--show", "--showformat", "${Version}", name).strip()
        expect(packages[name]["versionInfo"] == number, f"{name}: the version of the package here")
        reference, = packages[name]["externalRefs"]
        purl = f"pkg:deb/debian/{name}@{number}?arch=".replace("+", "%2B")
        expect(reference["referenceLocator"].startswith(purl), f"purl of {name}")
    return packages


LGPL = ("libsndfile1-dev", "libmpg123-dev", "libsoxr-dev", "libzmq3-dev", "libc6-dev")


def check_licenses(image, packages):
    """The programs take nothing of the root; parts under the LGPL have terms, sources and link lines."""
    folder = image.root / "usr" / "share" / "licenses"
    for program in ("batchwrightd", "batchwright"):
        needed = call("readelf", "--dynamic", "--wide", image.root / "bin" / program)
        expect("(NEEDED)" not in needed, f"{program} needs no library")
    for name in set(packages) - {"batchwright"}:
        expect((folder / name / "copyright").stat().st_size > 0, f"the terms of {name}")
    expect(set(LGPL) <= set(packages), f"LGPL parts are named: {sorted(packages)}")
    sources = (folder / "sources").read_text()
    for name in set(LGPL) - {"libc6-dev"}:
        expect(f"{name} {packages[name]['versionInfo']}: apt-get source " in sources,
               f"the source of {name}")
    how = (folder / "RELINKING").read_text()
    expect("-o bin/batchwrightd " in how and "-o bin/batchwright " in how and "libsoxr.a" in how,
           "the link lines of both programs")


class InRoot:
    """The daemon as process 1 of the image's root, with what a pod mounts, as its own user."""

    def __init__(self, image):
        user, folder = pods.USER, image.folder
        self.image, self.config = image, folder / "config"
        self.config.mkdir()
        self.write(manifests.configuration(manifests.read()).replace('"1GiB"', '"64MiB"'))
        for place in ("data", "sockets"):
            (folder / place).mkdir()
        os.chown(folder / "sockets", user, user)
        pods.write_dataset(folder / "data" / "made" / "train", image.tree)
        mounts = "".join(f"mount --bind {folder / here} {image.root / there} && " for here, there in (
            ("config", "etc/batchwright"), ("sockets", "run/batchwright"), ("data/made", "data")))
        (image.root / "data").mkdir()
        (image.root / "proc").mkdir(exist_ok=True)
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "bash", "-c",
                 f"{mounts} mount -t proc proc {image.root}/proc && exec setpriv --no-new-privs "
                 f"chroot --userspec={user}:{user} {image.root} "
                 "/bin/batchwrightd --config /etc/batchwright/batchwrightd.toml"],
                stdout=log, stderr=log)

    def write(self, text):
        (self.config / "batchwrightd.toml").write_text(text)

    def log(self):
        return (self.image.folder / "log").read_text()

    def is_ready(self):
        expect(self.process.poll() is None, f"the daemon runs: {self.log()[-800:]}")
        return "ready: serving" in self.log()

    def execute(self, *words):
        """As a container's runtime does: within its namespaces and root, as its user."""
        inside = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return subprocess.run(
            ["nsenter", "--target", inside.read_text().split()[0], "--mount", "--pid", "--net", "--root",
             "--wd", f"--setuid={pods.USER}", f"--setgid={pods.USER}", *words],
            capture_output=True, text=True, timeout=60, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.kill()  # --kill-child: its process 1 ends with it
        self.process.wait()


def reload_in_the_image(image):
    """The line of README.md for kubectl exec: without a shell, as the container's user, of process 1."""
    readme = (ROOT / "systemd" / "deploy" / "README.md").read_text()
    words = re.search(r"kubectl exec .* -- (/bin/batchwrightd --reload 1)\b", readme)
    expect(words is not None, "README.md has the line")
    with InRoot(image) as daemon:
        until(daemon.is_ready, "the daemon", also=daemon.log)
        text = (daemon.config / "batchwrightd.toml").read_text()
        daemon.write(text + '\n[[feed]]\nname = "valid"\ndataset = "/data/train"\nlock = false\n')
        done = daemon.execute(*words[1].split())
        expect(done.returncode == 0 and "feed valid" in daemon.log(), f"a feed is added: {done}")
        daemon.write(text + "\nshufle = 1\n")
        done = daemon.execute(*words[1].split())
        expect(done.returncode != 0 and "shufle" in done.stdout + done.stderr,
               f"a fault is refused, by its name: {done}")
        return (done.stdout + done.stderr).strip().splitlines()[-1][:120]


CASES = [image_says_what_it_is, reload_in_the_image]
