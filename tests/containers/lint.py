"""The manifests as text: nothing is wrong with them, and what would be is found."""
import copy

import manifests
from engine import expect

# Keys whose names are free, so that another name is no slip of the API's.
FREE = ("labels", "annotations", "nodeSelector", "matchLabels", "data")


def is_free(place):
    return any(f".{name}." in f".{place}" for name in FREE)


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
    expect(not manifests.faults(given), f"the manifests are sound: {manifests.faults(given)}")
    tried = 0
    for file, manifest in given.items():
        for place, slip in manifests.broken(manifest):
            if is_free(place):
                continue
            tried += 1
            expect(manifests.faults({**given, file: slip}), f"a slip at {place} of {file} is found")
        if any(each["name"] == "batchwrightd" for each in
               (manifests.containers(manifest) if "spec" in manifest else [])):
            for name, wrong in slips(given, file):
                tried += 1
                expect(manifests.faults(wrong), f"{name} in {file} is found")
    said = manifests.by_daemon(given, home.programs)
    expect(not said, f"the daemon takes the configuration: {said}")
    wrong = copy.deepcopy(given)
    wrong["config.yaml"]["data"]["batchwrightd.toml"] += "\nshufle = 1\n"
    expect(manifests.by_daemon(wrong, home.programs), "the daemon finds a slip in the configuration")
    return f"{len(given)} manifests, {tried} slips"


CASES = [manifests_are_sound]
