"""What those who run a cluster ask of manifests: the profile "restricted" of the pod security standards,
limits, tolerations, probes that wait as the daemon does, one name for one thing."""
import pathlib
import re

import manifests as of

MAKE_IMAGE = pathlib.Path(__file__).resolve().parents[2] / "systemd/deploy/containers/make-image"
NONROOT = 65532  # of many images that have nothing to do with each other
# What "restricted" allows as volumes.
ALLOWED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
                   "projected", "secret"}
# What the DaemonSet may do all the same, in a namespace of its own: the node's folders are what it is for.
PRIVILEGED = {"daemonset.yaml": {
    "volume sockets: hostPath", "volume data: hostPath", "folder: runs as root",
    "folder: adds capabilities CHOWN FOWNER"}}
WAITS = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


def daemon_user(manifests):
    """The number of the daemon's user."""
    for manifest in of.with_daemon(manifests).values():
        for container in of.containers(manifest):
            if container["name"] == "batchwrightd":
                return container["securityContext"]["runAsUser"]
    return None


def restricted(manifest):
    """What the profile "restricted" has against a pod."""
    pod, found = of.pod(manifest), []
    for volume in pod["volumes"]:
        found += [f"volume {volume['name']}: {kind}" for kind in volume
                  if kind != "name" and kind not in ALLOWED_VOLUMES]
    for container in of.containers(manifest):
        name = container["name"]
        security = {**pod.get("securityContext", {}), **container["securityContext"]}
        if not security.get("runAsNonRoot") or security.get("runAsUser", 1) == 0:
            found.append(f"{name}: runs as root")
        if security.get("allowPrivilegeEscalation", True):
            found.append(f"{name}: may gain rights")
        if security["capabilities"].get("drop") != ["ALL"]:
            found.append(f"{name}: keeps capabilities")
        if "add" in security["capabilities"]:
            found.append(f"{name}: adds capabilities {' '.join(security['capabilities']['add'])}")
        if security.get("seccompProfile") != {"type": "RuntimeDefault"}:
            found.append(f"{name}: has no seccompProfile")
    return found


def of_pods(file, manifest):
    """Faults of one manifest with pods."""
    pod, found = of.pod(manifest), []
    found += [fault for fault in restricted(manifest) if fault not in PRIVILEGED.get(file, ())]
    tolerated = {each["key"] for each in pod.get("tolerations", [])}
    takes_gpu = any("nvidia.com/gpu" in each["resources"]["limits"] for each in of.containers(manifest))
    if (takes_gpu or manifest["kind"] == "DaemonSet") and "nvidia.com/gpu" not in tolerated:
        found.append("comes to no node that is tainted for its GPUs")
    for container in of.containers(manifest):
        here, starts = container["name"], "startupProbe" in container
        for probe, path in WAITS.items():
            if probe in container and container[probe]["httpGet"]["path"] != path:
                found.append(f"{here}: {probe} asks another page than {path}, or waits otherwise")
        if starts and "restartPolicy" in container and pod.get("restartPolicy") == "Never":
            found.append(f"{here}: with restartPolicy Never its startupProbe may keep others from starting")
    return found


def users(manifests):
    """Faults of the numbers by which daemon, sockets and trainers know each other."""
    user, found = daemon_user(manifests), []
    if user in (0, NONROOT):
        found.append(f"the daemon's user is {user}, which other images have")
    if set(re.findall(r"\b(\d{5}):\1\b", MAKE_IMAGE.read_text())) != {str(user)}:
        found.append(f"make-image gives the image another user than {user}")
    for file, manifest in manifests.items():
        if not of.has_pods(manifest):
            continue
        pod = of.pod(manifest)
        for container in of.containers(manifest):
            security = container["securityContext"]
            owns = container["name"] in ("batchwrightd", "fetch")
            if owns and (security.get("runAsUser"), security.get("runAsGroup")) != (user, user):
                found.append(f"{file}: {container['name']} has another user than {user}")
            if container["name"] == "folder" and f"chown {user}:{user} " not in container["command"][-1]:
                found.append(f"{file}: the sockets' folder is given to another user than {user}")
        groups = pod.get("securityContext", {})
        if user not in [groups.get("fsGroup"), *groups.get("supplementalGroups", [])] and any(
                each["name"] == "trainer" for each in pod["containers"]):
            found.append(f"{file}: the trainer is not in group {user}")
    return found


def names(manifests):
    """Faults between what is named, and by what."""
    things = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests.values()
              if "metadata" in manifest]
    found = [f"two of {' '.join(thing)}" for thing in sorted(set(things)) if things.count(thing) > 1]
    for file, manifest in manifests.items():
        if manifest["kind"] == "PersistentVolume":
            claim = next((each for each in manifests.values() if each["kind"] == "PersistentVolumeClaim"
                          and each["metadata"]["name"] == manifest["spec"]["claimRef"]["name"]), None)
            if claim is None or claim["spec"].get("volumeName") != manifest["metadata"]["name"] or \
                    claim["spec"].get("storageClassName") != manifest["spec"]["storageClassName"]:
                found.append(f"{file}: volume and claim do not name each other")
        if not of.has_pods(manifest):
            continue
        pod = of.pod(manifest)
        wanted = [("PersistentVolumeClaim", each["persistentVolumeClaim"]["claimName"])
                  for each in pod["volumes"] if "persistentVolumeClaim" in each]
        if "priorityClassName" in pod:
            wanted.append(("PriorityClass", pod["priorityClassName"]))
        elif manifest["kind"] == "DaemonSet":
            found.append(f"{file}: has no priorityClassName")
        found += [f"{file}: there is no {' '.join(each)}" for each in wanted if each not in things]
    return found


def selectors(manifests):
    """A page of figures that Prometheus does not ask, or that everybody may."""
    found = []
    for file, manifest in of.with_daemon(manifests).items():
        for kind, selector in (("PodMonitor", "selector"), ("NetworkPolicy", "podSelector")):
            if not any(each["kind"] == kind and "Egress" not in each["spec"].get("policyTypes", ()) and
                       each["spec"][selector]["matchLabels"].items() <= of.labels(manifest).items()
                       for each in manifests.values()):
                found.append(f"{file}: no {kind} is for its pods")
        ports = {port["name"]: port["containerPort"] for each in of.containers(manifest)
                 for port in each.get("ports", [])}
        for other, each in manifests.items():
            if each["kind"] == "PodMonitor":
                found += [f"{other}: {file} has no port {wanted['port']}"
                          for wanted in each["spec"]["podMetricsEndpoints"]
                          if wanted["port"] not in ports]
            for rule in each.get("spec", {}).get("ingress", []) if each["kind"] == "NetworkPolicy" else []:
                found += [f"{other}: {file} has no port {wanted['port']}"
                          for wanted in rule.get("ports", []) if wanted["port"] not in ports.values()]
    return found


def kustomized(manifests):
    """Files that kustomize is told of, and that are not there; images of another version."""
    found, tags = [], set()
    for file, manifest in manifests.items():
        for name in manifest.get("resources", []) if "resources" in manifest else []:
            if str(pathlib.PurePath(file).parent / name) not in manifests:
                found.append(f"{file}: there is no {name}")
        tags |= {each["newTag"] for each in manifest.get("images", [])}
        if of.has_pods(manifest):
            tags |= {each["image"].rpartition(":")[2] for each in of.containers(manifest)
                     if each["name"] == "batchwrightd"}
    if len(tags) != 1:
        found.append(f"images of several versions: {' '.join(sorted(tags))}")
    return found


def faults(manifests):
    """All that is wrong with them, except for what the daemon finds."""
    found = of.faults(manifests)
    if found:
        return found
    found = [f"{file}: {fault}" for file, manifest in manifests.items() if of.has_pods(manifest)
             for fault in of_pods(file, manifest)]
    return found + users(manifests) + names(manifests) + selectors(manifests) + kustomized(manifests)
