"""The manifests as text: nothing is wrong with them, and what would be is found."""
import copy
import os
import pathlib
import re
import shutil
import tempfile

import yaml

import manifests
import rules
from engine import Skipped, call, expect

# Keys whose names are free, so that another name is no slip of the API's.
FREE = ("labels", "annotations", "nodeSelector", "matchLabels", "data")
# Of Kubernetes: the first with sidecars, and one that is new.
RELEASES = ("1.29", "1.34")


def is_free(place):
    return any(f".{name}." in f".{place}" for name in FREE)


def platform_slips(given):
    """What a platform team would refuse, or would never see: one thing wrong at a time."""
    def changed(file, change):
        copied = copy.deepcopy(given)
        change(copied[file])
        return copied

    def pods_of(file, change):
        return changed(file, lambda manifest: change(manifests.pod(manifest)))

    def container(pod, name):
        return next(each for each in [*pod.get("initContainers", []), *pod["containers"]]
                    if each["name"] == name)
    yield "no toleration", pods_of("daemonset.yaml", lambda pod: pod["tolerations"].pop(0))
    yield "a GPU without a toleration", pods_of("trainer.yaml", lambda pod: pod.pop("tolerations"))
    yield "no priority", pods_of("daemonset.yaml", lambda pod: pod.pop("priorityClassName"))
    yield "a priority that is not there", pods_of(
        "daemonset.yaml", lambda pod: pod.update(priorityClassName="other"))
    for file in ("trainer.yaml", "sidecar.yaml", "copied.yaml"):
        yield f"a folder of the host in {file}", pods_of(file, lambda pod: pod["volumes"].append(
            {"name": "more", "hostPath": {"path": "/more", "type": "Directory"}}))
        yield f"root in {file}", pods_of(
            file, lambda pod: pod["securityContext"].update(runAsNonRoot=False))
        yield f"a trainer without the group in {file}", pods_of(
            file, lambda pod: [pod["securityContext"].pop(key, None)
                               for key in ("fsGroup", "supplementalGroups")])
        yield f"capabilities in {file}", pods_of(
            file, lambda pod: container(pod, "trainer")["securityContext"]["capabilities"].update(
                drop=["CHOWN"]))
    yield "a start that waits for the data", pods_of(
        "sidecar.yaml", lambda pod: container(pod, "batchwrightd")["startupProbe"]["httpGet"].update(
            path="/readyz"))
    yield "a sidecar's startupProbe with Never", pods_of(
        "sidecar.yaml", lambda pod: pod.update(restartPolicy="Never"))
    yield "a user of many images", {
        file: yaml.safe_load(yaml.safe_dump(each).replace("60947", "65532"))
        for file, each in given.items()}
    yield "a folder of another user", pods_of(
        "daemonset.yaml", lambda pod: container(pod, "folder").update(
            command=["sh", "-c", "chown 1000:1000 /run/batchwright"]))
    yield "two Jobs of one name", changed(
        "sidecar.yaml", lambda manifest: manifest["metadata"].update(name="train"))
    yield "a claim that is not there", changed(
        "claim/claim.yaml", lambda manifest: manifest["metadata"].update(name="other"))
    yield "a volume of another claim", changed(
        "sockets.yaml", lambda manifest: manifest["spec"]["claimRef"].update(name="other"))
    yield "no scrape", changed("monitor/pod-monitor.yaml", lambda manifest: manifest["spec"][
        "selector"]["matchLabels"].update(app="other"))
    yield "a scrape of another port", changed("monitor/pod-monitor.yaml", lambda manifest: manifest[
        "spec"]["podMetricsEndpoints"][0].update(port="metrics"))
    yield "a page that is open to all", changed("network-policy.yaml", lambda manifest: manifest[
        "spec"]["podSelector"]["matchLabels"].update(app="other"))
    yield "a policy of another port", changed("network-policy.yaml", lambda manifest: manifest[
        "spec"]["ingress"][0]["ports"][0].update(port=80))
    yield "a file that is not there", changed(
        "kustomization.yaml", lambda manifest: manifest["resources"].append("more.yaml"))
    yield "an image of another version", changed(
        "kustomization.yaml", lambda manifest: manifest["images"][0].update(newTag="0.1.0"))


def slips(given, file):
    """What is between the keys: one thing wrong at a time."""
    def changed(change):
        copied = copy.deepcopy(given)
        change(copied[file], copied)
        return copied
    daemon = next(i for i, each in enumerate(manifests.containers(given[file]))
                  if each["name"] == "batchwrightd")
    at = lambda manifest: manifests.containers(manifest)[daemon]
    yield "a mount without a volume", changed(
        lambda m, _: at(m)["volumeMounts"][0].update(name="other"))
    yield "memory without room", changed(
        lambda m, _: at(m)["resources"]["limits"].update(memory="1024Mi"))
    yield "a probe of another port", changed(
        lambda m, _: at(m)["livenessProbe"]["httpGet"].update(port=80))
    yield "a probe of a port without a name", changed(
        lambda m, _: at(m)["livenessProbe"]["httpGet"].update(port="page"))
    yield "a daemon that is root", changed(
        lambda m, _: at(m)["securityContext"].update(runAsNonRoot=False))
    yield "a capability", changed(
        lambda m, _: at(m)["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]))
    yield "no probe", changed(lambda m, _: at(m).pop("livenessProbe"))
    yield "no dataset", changed(lambda m, _: at(m)["volumeMounts"].pop())
    yield "another ConfigMap", changed(
        lambda _, all_of: all_of["config.yaml"]["metadata"].update(name="other"))
    yield "another arena", changed(lambda _, all_of: all_of["config.yaml"]["data"].update({
        "batchwrightd.toml": manifests.configuration(given).replace('"1GiB"', '"2GiB"')}))


def manifests_are_sound(home):
    """By schema and between keys; every key renamed, every value of another kind is found."""
    given = manifests.read()
    expect(not rules.faults(given), f"the manifests are sound: {rules.faults(given)}")
    tried = 0
    for file, manifest in given.items():
        for place, slip in manifests.broken(manifest):
            if is_free(place):
                continue
            tried += 1
            expect(rules.faults({**given, file: slip}), f"a slip at {place} of {file} is found")
        if file in manifests.with_daemon(given):
            for name, wrong in slips(given, file):
                tried += 1
                expect(rules.faults(wrong), f"{name} in {file} is found")
    for name, wrong in platform_slips(given):
        tried += 1
        expect(rules.faults(wrong), f"{name} is found")
    said = manifests.by_daemon(given, home.programs)
    expect(not said, f"the daemon takes the configuration: {said}")
    wrong = copy.deepcopy(given)
    wrong["config.yaml"]["data"]["batchwrightd.toml"] += "\nshufle = 1\n"
    expect(manifests.by_daemon(wrong, home.programs), "the daemon finds a slip in the configuration")
    return f"{len(given)} manifests, {tried} slips"


def kubernetes_schemas(home):
    """Kubernetes' own schemas, of two releases, take every manifest, and find a key that is none."""
    try:
        import kubernetes_validate
    except ImportError:
        raise Skipped("no kubernetes-validate here (pip install kubernetes-validate)") from None
    given = {file: manifest for file, manifest in manifests.read().items()
             if manifest["kind"] not in ("Kustomization", "Component", "PodMonitor")}
    for release in RELEASES:
        for file, manifest in given.items():
            try:
                kubernetes_validate.validate(manifest, release, strict=True)
            except kubernetes_validate.ValidationError as error:
                expect(False, f"{file} is what {release} takes: {error.message}")
        try:
            kubernetes_validate.validate({**given["daemonset.yaml"], "spce": {}}, release, strict=True)
        except kubernetes_validate.ValidationError:
            continue
        expect(False, f"a slip is found by the schemas of {release}")
    return f"{len(given)} manifests, {' and '.join(RELEASES)}"


def kustomization_builds(home):
    """kubectl makes one text of it, with either component and with both; with the claim no node's data."""
    if shutil.which("kubectl") is None:
        raise Skipped("no kubectl here")
    version = re.search(r"Kustomize Version: v(\d+)", call("kubectl", "version", "--client"))
    if version is None or int(version[1]) < 4:
        raise Skipped("kubectl has no kustomize of version 4 or later here")
    with tempfile.TemporaryDirectory() as folder:
        copied = pathlib.Path(folder, "kubernetes")
        shutil.copytree(manifests.FOLDER, copied)
        file = copied / "kustomization.yaml"
        text, offered = file.read_text(), {}
        for name in re.findall(r"^#   - (\w+)", text, re.MULTILINE):
            offered[name] = f"  - {name}\n"
        expect(set(offered) == {"claim", "monitor"}, f"both components are offered: {text}")
        text = text.partition("# components:")[0]
        for wanted in ((), ("claim",), ("monitor",), ("claim", "monitor")):
            file.write_text(text + ("components:\n" if wanted else "") +
                            "".join(offered[name] for name in wanted))
            made = list(yaml.safe_load_all(call("kubectl", "kustomize", copied)))
            kinds = {each["kind"] for each in made}
            expect({"ConfigMap", "DaemonSet", "NetworkPolicy", "PriorityClass"} <= kinds,
                   f"all is there: {kinds}")
            expect(("PodMonitor" in kinds) == ("monitor" in wanted), "the PodMonitor is there")
            daemon_set = next(each for each in made if each["kind"] == "DaemonSet")
            data = next(each for each in manifests.pod(daemon_set)["volumes"] if each["name"] == "data")
            expect(("hostPath" in data) == ("claim" not in wanted) and len(data) == 2,
                   f"the data come from where they should: {data}")
            for each in made:
                expect(not manifests.by_schema(each), f"it is sound: {manifests.by_schema(each)}")
    return "alone, and with each component"


def folder_changes_hands(home):
    """The DaemonSet's first step, with its rights alone: a folder as the kubelet makes it, and one with
    files of another user, become the daemon's."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise Skipped("other users take root, and setpriv")
    first = manifests.pod(manifests.read()["daemonset.yaml"])["initContainers"][0]
    user = rules.daemon_user(manifests.read())
    rights = ",".join(["-all", *(f"+{each.lower()}" for each in
                                 first["securityContext"]["capabilities"]["add"])])
    for owner in (0, 65532):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder, "run")
            run.mkdir()
            files = [run / name for name in ("s.sock", "s.sock.lock")] if owner else []
            for file in files:
                file.touch(mode=0o600)
            for each in (run, *files):
                os.chown(each, owner, owner)
            if owner:
                run.chmod(0o750)
            *words, script = first["command"]
            call("setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}", *words,
                 script.replace("/run/batchwright", str(run)))
            owners = {(each.stat().st_uid, each.stat().st_gid) for each in (run, *files)}
            expect(owners == {(user, user)} and run.stat().st_mode & 0o777 == 0o750,
                   f"the folder of {owner} is the daemon's: {owners}")
    return f"to {user}, from root and from 65532"


CASES = [manifests_are_sound, kubernetes_schemas, kustomization_builds, folder_changes_hands]
