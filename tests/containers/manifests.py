"""Reads the manifests and finds their faults: of the schema, and those between keys."""
import pathlib
import subprocess
import tempfile
import tomllib

import jsonschema
import yaml

import schema

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "systemd" / "deploy" / "kubernetes"
MIB = 1 << 20
ROOM = 12 * MIB  # of a pod's memory, beside the arena
UNITS = {"Ki": 1 << 10, "Mi": MIB, "Gi": 1 << 30, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}


def read():
    """Each manifest by its file's name; those after the first of a file by NAME#2 and so on."""
    found = {}
    for path in sorted(FOLDER.rglob("*.yaml")):
        name = str(path.relative_to(FOLDER))
        for i, manifest in enumerate(yaml.safe_load_all(path.read_text()), 1):
            found[name if i == 1 else f"{name}#{i}"] = manifest
    return found


def size(text):
    for unit, bytes_of in sorted(UNITS.items(), key=lambda each: -len(each[0])):
        if text.endswith(unit):
            return int(text[:-len(unit)]) * bytes_of
    return int(text)


def pod(manifest):
    return manifest["spec"]["template"]["spec"]


def has_pods(manifest):
    return manifest["kind"] in ("DaemonSet", "Job")


def with_daemon(manifests):
    """Those whose pods have a daemon in them."""
    return {file: manifest for file, manifest in manifests.items() if has_pods(manifest)
            and any(each["name"] == "batchwrightd" for each in containers(manifest))}


def labels(manifest):
    return manifest["spec"]["template"].get("metadata", {}).get("labels", {})


def containers(manifest):
    return [*pod(manifest).get("initContainers", []), *pod(manifest)["containers"]]


def configuration(manifests):
    """The text of the daemon's configuration in the ConfigMap."""
    return manifests["config.yaml"]["data"]["batchwrightd.toml"]


def by_schema(manifest):
    """Faults of one manifest, each with the place of what is wrong."""
    name = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(name, str) or name not in schema.KINDS:
        return [f"kind: found {name}; allowed: {' '.join(schema.KINDS)}"]
    found = jsonschema.Draft7Validator(schema.KINDS[name]).iter_errors(manifest)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


def port_of(container, probe):
    wanted = probe["httpGet"]["port"]
    named = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    return wanted if isinstance(wanted, int) else named.get(wanted)


def of_container(container, volumes, config):
    """Faults between a container's keys, its pod's volumes and the daemon's configuration."""
    here, faults = container["name"], []
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            faults.append(f"{here}: no volume has the name of its mount {mount['name']}")
    mounted = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
    stats = tomllib.loads(config)["daemon"]["stats"]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        if name in container and not stats.endswith(f":{port_of(container, container[name])}"):
            faults.append(f"{here}: {name} asks another port than stats, {stats}")
    if here != "batchwrightd":
        return faults
    arena = size(tomllib.loads(config)["daemon"]["memory"])
    limit = size(container.get("resources", {}).get("limits", {}).get("memory", "0"))
    if limit != arena + ROOM:
        faults.append(f"{here}: limits.memory is {limit}; allowed: memory + 12 MiB, {arena + ROOM}")
    if "livenessProbe" not in container or "startupProbe" not in container:
        faults.append(f"{here}: has no livenessProbe or startupProbe")
    for feed in tomllib.loads(config)["feed"]:
        if not any(feed["dataset"].startswith(path + "/") for path in mounted):
            faults.append(f"{here}: mounts nothing at {feed['dataset']}")
    return faults


def between(manifests):
    """Faults that no schema of one manifest can see."""
    if list(manifests["config.yaml"]["data"]) != ["batchwrightd.toml"]:
        return ["config.yaml: data: allowed: batchwrightd.toml, which the daemon's args name"]
    faults, config = [], configuration(manifests)
    endpoint = tomllib.loads(config)["daemon"]["endpoints"][0]
    for file, manifest in manifests.items():
        if not has_pods(manifest):
            continue
        volumes = {volume["name"]: volume for volume in pod(manifest)["volumes"]}
        for container in containers(manifest):
            faults += [f"{file}: {fault}" for fault in of_container(container, volumes, config)]
            for variable in container.get("env", []):
                if variable["name"] == "BATCHWRIGHT_ENDPOINT" and variable["value"] != endpoint:
                    faults.append(f"{file}: {container['name']}: connects to another socket")
        for volume in volumes.values():
            wanted = volume.get("configMap", {}).get("name", None)
            if wanted not in (None, manifests["config.yaml"]["metadata"]["name"]):
                faults.append(f"{file}: no ConfigMap has the name {wanted}")
        selector = manifest["spec"].get("selector", {}).get("matchLabels", {})
        if not selector.items() <= labels(manifest).items():
            faults.append(f"{file}: the selector does not match the pods' labels")
    return faults


def by_daemon(manifests, programs):
    """What the daemon finds wrong with the configuration's text itself. It looks for what the text
    names, too, which is not there outside of a pod: those faults bear no line."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "batchwrightd.toml")
        file.write_text(configuration(manifests))
        done = subprocess.run([programs / "batchwrightd", "--config", file, "--check-config"],
                              capture_output=True, text=True, timeout=30, check=False)
    said = (done.stdout + done.stderr).splitlines()
    return [line for line in said if line.startswith(f"{file}:") and "allowed:" in line]


def faults(manifests):
    """Of the schema and between keys. What else is asked of manifests is in rules.py."""
    found = [f"{file}: {fault}" for file, manifest in manifests.items()
             for fault in by_schema(manifest)]
    return found or between(manifests)


def broken(value):
    """Copies of a manifest's value, each with one slip: a key with another name, a value of another
    kind. Yields the slip's place, too."""
    if isinstance(value, dict):
        for key, below in value.items():
            rest = {name: other for name, other in value.items() if name != key}
            yield key, {**rest, key + "X": below}
            for place, slip in broken(below):
                yield f"{key}.{place}", {**value, key: slip}
    elif isinstance(value, list):
        for i, below in enumerate(value):
            for place, slip in broken(below):
                yield f"{i}.{place}", [*value[:i], slip, *value[i + 1:]]
    else:
        yield "", [value]
