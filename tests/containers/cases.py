"""The cases that run containers. Each takes a Home and returns its figures as text."""
import copy
import os
import pathlib

import manifests
from engine import MOST_MIB, MOST_SECONDS, Skipped, expect, until
from pods import SEQUENCES, USER

SMALL = """
[daemon]
endpoints = ["ipc:///run/batchwright/batchwright.sock"]
stats = "0.0.0.0:9477"
memory = "{memory}"

[[feed]]
name = "train"
dataset = "/data/train"
lock = false
{feed}

[feed.plan]
cut = "fixed"
size = 32
"""


def batches_of(trainer):
    """What a trainer that has ended took, without its last line."""
    expect(trainer.wait() == 0, f"the trainer ends well: {trainer.log()[-600:]}")
    *batches, last = trainer.lines()
    expect(last == {"mapped": True}, "the batches lie in the daemon's memory")
    return batches


def check_each_once(batches):
    seen = sorted(each for batch in batches for each in batch["ordinals"])
    expect(seen == list(range(SEQUENCES)), "each sequence comes once")


def image(home):
    """Made without a network, small, the same twice, with nothing in it but what the daemon takes."""
    figures = home.engine.made
    expect(figures["equal"], "two images of one tarball are equal, byte for byte")
    expect(figures["seconds"] <= MOST_SECONDS, f"it is made in {MOST_SECONDS} s")
    expect(figures["bytes"] <= MOST_MIB << 20, f"it has at most {MOST_MIB} MiB")
    return (f"{figures['bytes'] / (1 << 20):.1f} MiB, made in {figures['seconds']:.1f} s, "
            "twice the same")


def two_containers(home):
    """A daemon and two trainers that share the sockets' folder alone, as the manifests have it."""
    node = home.node("two")
    with node.ready_daemon() as daemon, node.trainer("a", 1) as first, \
            node.trainer("b", 1) as second:
        taken = batches_of(first)
        expect(taken == batches_of(second), "both trainers have the same batches")
        check_each_once(taken)
        status, page = daemon.get("/metrics")
        expect(status == 200 and "batchwright_" in page, "Prometheus gets its metrics")
    return f"{len(taken)} equal batches, mapped by both"


def sidecar(home):
    """The same of a Job with a sidecar: an empty folder of the group fsGroup."""
    node = home.bare_node("sidecar")
    # What the kubelet does for fsGroup.
    node.sockets.chmod(0o2770)
    os.chown(node.sockets, 0, USER)
    with node.ready_daemon("sidecar.yaml"), node.trainer("a", file="sidecar.yaml") as trainer:
        return f"{len(batches_of(trainer))} batches"


def probes(home):
    """Every probe of the manifests: with a dataset, without one, and once it is there."""
    for file in ("daemonset.yaml", "sidecar.yaml"):
        node = home.node(f"probes-{file.split('.')[0]}")
        with node.ready_daemon(file) as daemon:
            for name, path in node.probes(file).items():
                expect(daemon.get(path)[0] == 200, f"{name} of {file} holds")
    empty = home.engine.work / "no-data"
    empty.mkdir()
    node = home.node("late", data=empty)
    with node.daemon() as daemon:
        until(lambda: daemon.get("/healthz")[0] == 200, "the page")
        status, text = daemon.get("/readyz")
        expect(status == 503 and "/data/train" in text, "/readyz names the dataset that is missing")
        (home.data / "train").rename(empty / "train")
        try:
            until(daemon.is_ready, "the feed")
        finally:
            (empty / "train").rename(home.data / "train")
    return "200; 503 while the dataset is missing"


def memory(home):
    """An epoch within the arena and 12 MiB; with less than the arena, no feed, and both figures."""
    if not home.limits_memory:
        raise Skipped("no memory limits can be set here")
    arena = 48 << 20
    node = home.node("memory", SMALL.format(memory="48MiB", feed="slots = 240"))
    with node.daemon(memory=arena // 2) as daemon:
        until(lambda: "not served" in daemon.log(), "the feed to be refused", also=daemon.log)
        expect("24.0 MiB" in daemon.log() and not daemon.is_ready(),
               f"too low a limit is told with the figure: {daemon.log()[-400:]}")
    with node.ready_daemon(memory=arena + manifests.ROOM) as daemon:
        with node.trainer("a") as trainer:
            batches = len(batches_of(trainer))
        group = group_of(daemon.pid())
        most = int((group / "memory.max_usage_in_bytes").read_text())
        kills = (group / "memory.oom_control").read_text()
        resident = own_memory(daemon.pid())
        expect("oom_kill 0" in kills, "the kernel has killed nothing")
    return (f"{batches} batches within 48 + 12 MiB; at most {most / (1 << 20):.1f} MiB with the "
            f"page cache, its own memory {resident / (1 << 20):.1f} MiB")


def group_of(pid):
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory" + path)
    raise Skipped("the kernel counts no memory in groups of version 1 here")


def own_memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def no_locked_memory(home):
    """RLIMIT_MEMLOCK 0 and no capability: the daemon serves."""
    node = home.node("memlock")
    with node.ready_daemon(more=home.engine.limits("memlock=0:0")), node.trainer("a") as trainer:
        return f"{len(batches_of(trainer))} batches"


def no_folder(home):
    """Without the sockets' folder daemon and trainer end at once, and say what is missing."""
    node = home.node("folderless")
    manifest = copy.deepcopy(home.manifests["daemonset.yaml"])
    container = manifests.pod(manifest)["containers"][0]
    container["volumeMounts"] = [each for each in container["volumeMounts"]
                                 if each["name"] != "sockets"]
    home.manifests["folderless.yaml"] = manifest
    with node.daemon("folderless.yaml") as daemon:
        expect(daemon.wait() != 0, "the daemon does not start")
        said = daemon.log()
        expect("/run/batchwright" in said, f"it names the folder: {said[-400:]}")
    with node.trainer("a") as trainer:
        expect(trainer.wait() != 0, "a trainer without a daemon ends")
        expect("/run/batchwright/batchwright.sock" in trainer.log(),
               f"it names the socket: {trainer.log()[-400:]}")
    return said.strip().splitlines()[-1][:160]


def daemon_killed(home):
    """Killed and started again in the same folder while a trainer is at work: each batch once."""
    node = home.node("killed")
    daemon = node.ready_daemon()
    try:
        with node.trainer("a", 20) as trainer:
            until(lambda: len(trainer.lines()) >= 10, "some batches")
            daemon.kill()
            before = len(trainer.lines())
            daemon.__exit__()
            daemon = node.ready_daemon()
            taken = batches_of(trainer)
    finally:
        daemon.__exit__()
    expect([each["index"] for each in taken] == list(range(len(taken))), "each batch comes once")
    check_each_once(taken)
    return f"killed after {before} of {len(taken)} batches"


def who_connects(home):
    """allow_uids sees the host's number of a trainer's user, whichever namespace it is in."""
    # 1000 in the container is 101000 on the host.
    mapped = ["--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536"]
    texts = []
    for allowed, settings, comes in ((1000, [], True), (1001, [], False),
                                     (101000, mapped, True), (1000, mapped, False)):
        config = manifests.configuration(home.manifests).replace(
            'memory = "1GiB"', f'memory = "1GiB"\nallow_uids = ["{allowed}"]\nsocket_mode = "0666"')
        node = home.node(f"uid-{allowed}-{len(settings)}", config)
        node.sockets.chmod(0o755)
        with node.ready_daemon() as daemon, node.trainer("a", more=settings) as trainer:
            if comes:
                batches_of(trainer)
                continue
            expect(trainer.wait() != 0, f"user {allowed} alone may come")
            number = "101000" if settings else "1000"
            until(lambda: f"uid {number}" in daemon.log(), "the daemon's word")
            texts = [line for line in daemon.log().splitlines() if f"uid {number}" in line]
    return texts[-1][:160]


CASES = [image, two_containers, sidecar, probes, memory, no_locked_memory, no_folder, daemon_killed,
         who_connects]
