"""What a pod's manifest says, as words for podman: mounts, user, rights, limits, probes."""
import os
import pathlib
import subprocess
import sys

import manifests
import rules
from engine import expect, until

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES = 13_100
USER = rules.daemon_user(manifests.read())
IMAGES = {"registry.example/batchwright:0.2.0": "batchwright", "busybox:1.36": "busybox"}


class Home:
    """What all cases share: images, what the tarball has, and a dataset where a node has it."""

    def __init__(self, engine, tree):
        self.engine, self.tree = engine, tree
        self.manifests = manifests.read()
        self.data = engine.work / "var-lib-batchwright"
        self.limits_memory = engine.why_not("--memory", "64m") is None
        write_dataset(self.data / "train", tree)

    def node(self, name, config=None, data=None):
        """One on which the DaemonSet's folder is made."""
        made = self.bare_node(name, config, data)
        made.make_folder()
        return made

    def bare_node(self, name, config=None, data=None):
        return Node(self, name, config or manifests.configuration(self.manifests), data)


def write_dataset(folder, tree):
    """Frames of 13 values, 20 to 119 of them; every value follows from its place."""
    folder.parent.mkdir(parents=True)
    script = (
        "import sys, numpy, batchwright\n"
        "with batchwright.DatasetWriter(sys.argv[1], {'features': batchwright.FieldSpec('float32', "
        "(13,))}) as writer:\n"
        f"    for i in range({SEQUENCES}):\n"
        "        writer.add(f's{i:05}', features=numpy.full((20 + i * 7919 % 100, 13), i, "
        "numpy.float32))\n")
    subprocess.run([sys.executable, "-c", script, folder], check=True, timeout=120,
                   env={**os.environ, "PYTHONPATH": str(tree / "python")})


class Node:
    """A host: its folders, and the pods that run there."""

    def __init__(self, home, name, config, data):
        self.home, self.name = home, name
        self.folder = home.engine.work / name
        self.sockets = self.folder / "run"
        self.places = {"/run/batchwright": self.sockets, "/var/lib/batchwright": data or home.data}
        settings = self.folder / "config"
        settings.mkdir(parents=True)
        self.sockets.mkdir()
        self.config = settings
        (settings / "batchwrightd.toml").write_text(config)

    def mounts(self, manifest, container):
        volumes = {each["name"]: each for each in manifests.pod(manifest)["volumes"]}
        words = []
        for mount in container.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            if "configMap" in volume:
                place = self.config
            elif mount["name"] == "sockets":
                place = self.sockets
            elif "emptyDir" in volume:
                place = self.folder / mount["name"]
                place.mkdir(exist_ok=True)
                place.chmod(0o777)
            elif "persistentVolumeClaim" in volume:
                place = self.places["/var/lib/batchwright"]
            else:
                place = self.places[volume["hostPath"]["path"]]
            mode = "ro" if mount.get("readOnly") else "rw"
            words += ["--volume", f"{place}:{mount['mountPath']}:{mode}"]
        return words

    def settings(self, manifest, container, memory=None):
        """`memory`: of the limit, in bytes, in place of the manifest's."""
        security = container.get("securityContext", {})
        words = self.mounts(manifest, container)
        if "runAsUser" in security:
            words += ["--user", f"{security['runAsUser']}:{security.get('runAsGroup', 0)}"]
        if security:
            words += ["--read-only", "--read-only-tmpfs=false",
                      "--security-opt", "no-new-privileges"]
            words += [f"--cap-drop={each}" for each in security["capabilities"]["drop"]]
            words += [f"--cap-add={each}" for each in security["capabilities"].get("add", [])]
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        if limit and self.home.limits_memory:
            bytes_of = memory or manifests.size(limit)
            words += ["--memory", str(bytes_of), "--memory-swap", str(bytes_of)]
        of_pod = manifests.pod(manifest).get("securityContext", {})
        for group in [*of_pod.get("supplementalGroups", []), *filter(None, [of_pod.get("fsGroup")])]:
            words += ["--group-add", str(group)]
        for each in container.get("env", []):
            words += ["--env", f"{each['name']}={each['value']}"]
        return words

    def make_folder(self):
        """What the kubelet and the DaemonSet's first container do with the sockets' folder."""
        manifest = self.home.manifests["daemonset.yaml"]
        first = manifests.pod(manifest)["initContainers"][0]
        with self.home.engine.start(f"{self.name}-folder", IMAGES[first["image"]], first["command"],
                                    self.settings(manifest, first)) as made:
            expect(made.wait() == 0, f"the folder is made: {made.log()}")
        found = self.sockets.stat()
        expect((found.st_uid, found.st_gid, found.st_mode & 0o777) == (USER, USER, 0o750),
               "the folder is the daemon's")

    def daemon(self, file="daemonset.yaml", more=(), **settings):
        """The daemon of a manifest; starting, not ready."""
        manifest = self.home.manifests[file]
        container = next(each for each in manifests.containers(manifest)
                         if each["name"] == "batchwrightd")
        return self.home.engine.start(
            f"{self.name}-daemon", IMAGES[container["image"]], container["args"],
            [*self.settings(manifest, container, **settings), *more])

    def ready_daemon(self, *words, **more):
        daemon = self.daemon(*words, **more)
        until(daemon.is_ready, "the daemon")
        return daemon

    def trainer(self, name, pause_ms=0, file="trainer.yaml", more=()):
        """A trainer in Python, of an image that has the host's /usr, without any right."""
        manifest = self.home.manifests[file]
        container = manifests.pod(manifest)["containers"][0]
        words = ["--volume", "/usr:/usr:ro", "--volume", "/usr/lib:/lib:ro",
                 "--volume", "/usr/lib64:/lib64:ro",
                 "--volume", "/etc/alternatives:/etc/alternatives:ro", "--volume", f"{HERE}:/app:ro",
                 "--volume", f"{self.home.tree}:/opt/batchwright:ro",
                 "--env", "PYTHONPATH=/opt/batchwright/python", "--user", "1000:1000",
                 "--cap-drop=ALL", "--entrypoint", "/usr/bin/python3"]
        return self.home.engine.start(
            f"{self.name}-{name}", "batchwright", ["-B", "/app/trainer.py", str(pause_ms)],
            [*self.settings(manifest, container), *words, *more])

    def probes(self, file="daemonset.yaml"):
        """Path and port of each probe in a manifest."""
        container = next(each for each in manifests.containers(self.home.manifests[file])
                         if each["name"] == "batchwrightd")
        return {name: container[name]["httpGet"]["path"] for name in container
                if name.endswith("Probe")}
