"""podman with a store of its own, and what the cases say of it."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import case_table
from case_table import PATIENCE, Failed, Skipped, call, until

MOST_SECONDS, MOST_MIB = 30, 20  # of the image

# A keyring, and sysctls, are more than a container within a container may have.
SETTINGS = """
[containers]
keyring=false
default_sysctls=[]
default_ulimits={ulimits}
[engine]
cgroup_manager="cgroupfs"
events_logger="file"
"""


def expect(condition, what):
    """`what` is what ought to be."""
    case_table.expect(condition, f"expected: {what}")


class Engine:
    """Containers whose names begin with bw-; all of them end with close()."""

    def __init__(self, work):
        self.work = work
        settings = work / "containers.conf"
        self.ulimits = [f"{name}={least}:{least}" for name, least in (
            (name, min(4096, resource.getrlimit(each)[1])) for name, each in
            (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)))]
        settings.write_text(SETTINGS.format(ulimits=json.dumps(self.ulimits)))
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
        self.words = ["podman", "--root", str(work / "store"), "--runroot", str(work / "run"),
                      "--storage-driver", "vfs", "--log-level", "error"]

    def podman(self, *words):
        return call(*self.words, *words, env=self.environment)

    def load(self, archive):
        self.podman("load", "--quiet", "--input", archive)

    def why_not(self, *settings):
        """None, or why no container can be run with these settings here."""
        try:
            self.podman("run", "--rm", "--network", "none", *settings, "--entrypoint",
                        "/bin/batchwrightd", "localhost/batchwright", "--version")
        except Failed as error:
            return str(error).splitlines()[-1]
        return None

    def limits(self, *more):
        """Words for a container with these limits beside the others: podman forgets those."""
        return [word for each in [*self.ulimits, *more] for word in ("--ulimit", each)]

    def start(self, name, image, words, settings=()):
        """Runs in the background. Returns the container."""
        self.podman("run", "--detach", "--name", f"bw-{name}", "--network", "none", *settings,
                    f"localhost/{image}", *words)
        return Container(self, f"bw-{name}")

    def close(self):
        """Forgets containers and images, and unmounts what podman has mounted."""
        try:
            self.podman("rm", "--all", "--force", "--time", "0")
        except Failed:
            pass


class Container:
    def __init__(self, engine, name):
        self.engine, self.name = engine, name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Its mounts may be in use for a moment longer than it.
        until(self.removed, f"the removal of {self.name}")

    def removed(self):
        try:
            self.engine.podman("rm", "--force", "--ignore", "--time", "5", self.name)
        except Failed:
            return False
        return True

    def state(self):
        return json.loads(self.engine.podman("inspect", self.name))[0]["State"]

    def pid(self):
        return self.state()["Pid"]

    def log(self):
        """What it has written to both streams."""
        done = subprocess.run([*self.engine.words, "logs", self.name], capture_output=True, text=True,
                              env=self.engine.environment, timeout=PATIENCE, check=False)
        return done.stdout + done.stderr

    def lines(self):
        """Of its output, those that are whole JSON objects."""
        return [json.loads(line) for line in self.log().splitlines()
                if line.startswith("{") and line.endswith("}")]

    def wait(self):
        """Its exit code."""
        until(lambda: not self.state()["Running"], f"the end of {self.name}")
        return self.state()["ExitCode"]

    def kill(self):
        self.engine.podman("kill", "--signal", "KILL", self.name)
        self.wait()

    def get(self, path):
        """Status and text of a page, asked for in the container's network."""
        done = subprocess.run(
            ["nsenter", "--net", "--target", str(self.pid()), "curl", "--silent", "--max-time", "5",
             "--write-out", "\n%{http_code}", f"http://127.0.0.1:9477{path}"],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        text, _, status = done.stdout.rpartition("\n")
        return int(status or 0), text

    def is_ready(self):
        if not self.state()["Running"]:
            raise Failed(f"{self.name} ended: {self.log()[-600:]}")
        return self.get("/readyz")[0] == 200


def folder_of(prefix):
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
