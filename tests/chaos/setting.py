"""What a trial serves and asks for: a small dataset, made once, and settings drawn at random."""
import contextlib
import json
import random
import socket
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SEQUENCES = 240
EPOCHS = 2
MODES = ("replica", "sharded", "queue")
SMALL, LARGE = 80, 240  # sequences of a dataset that grows, about: where it begins and ends
GROWING_EPOCHS = 4
# How a worker gets at its batches: mapped, or as messages of either kind.
WAYS = ((), (), ("inline=1",), ("tcp=1",))


def write_array(path, frames, value):
    """A .npy file of [frames, 2] float32, each the same."""
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }" % frames
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                     struct.pack("<f", value) * (2 * frames))


def make_dataset(folder, programs):
    """Sequences of 5 to 40 frames; every value of one is its ordinal."""
    arrays = folder / "arrays"
    arrays.mkdir()
    draw = random.Random(0)
    for ordinal in range(SEQUENCES):
        write_array(arrays / f"{ordinal:05d}.npy", draw.randint(5, 40), ordinal)
    dataset = folder / "data"
    subprocess.run([programs / "batchwright", "ingest", "npy", arrays, "--into", dataset],
                   check=True, stdout=subprocess.DEVNULL)
    return dataset


def make_growing_dataset(folder, programs):
    """What a dataset that grows has at first."""
    dataset = folder / "growing"
    subprocess.run([programs / "chaos_writer", dataset, str(SMALL), "0"], check=True)
    return dataset


def commit_behind(sequences):
    """Sequences that chaos_writer's next commit has."""
    return 1 + sequences * 7919 % 9


def grown_length(ordinal):
    """Frames of chaos_writer's sequences."""
    return 5 + ordinal * 7919 % (12 if ordinal < 120 else 36)


def committed_states():
    """How many sequences there may be from SMALL on: those and no others."""
    states = [0]
    while states[-1] < LARGE:
        states.append(states[-1] + commit_behind(states[-1]))
    return [count for count in states if count >= SMALL]


@dataclass
class Setting:
    """All that is drawn for one trial."""
    mode: str
    workers: int
    grace_ms: int
    plan: dict
    feed: dict
    port: int  # for those that come by TCP
    worker: list = field(default_factory=list)  # words for each worker
    epochs: int = EPOCHS
    daemon: dict = field(default_factory=dict)  # keys of the configuration
    more: dict = field(default_factory=dict)  # what one kind of trial alone has

    @property
    def world(self):
        return self.plan["world"]


def free_port():
    """A port that no outgoing connection is given, so that a daemon can have it again after each of
    its deaths, whatever else the machine does meanwhile."""
    kept = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    first, last = int(kept[0]), int(kept[1])
    ports = [port for port in range(10_000, 65_000) if not first <= port <= last]
    for port in random.SystemRandom().sample(ports, len(ports)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free outside the range of outgoing connections")


def draw_plan(draw, mode):
    worlds = {"replica": (1, 1, 2), "sharded": (2, 3, 4), "queue": (1, 1, 2)}[mode]
    plan = {"order": draw.choice(("random", "sorted", "bucket", "alternated", "semi-sorted")),
            "cut": draw.choice(("fixed", "dynamic", "frames")),
            "shuffle": draw.choice(("off", "batches", "groups")),
            "world": draw.choice(worlds), "remainder": draw.choice(("drop", "spread", "wrap")),
            "seed": draw.randrange(1000)}
    if plan["order"] == "bucket":
        plan["bucket_size"] = 40
    if plan["order"] == "alternated":
        plan["bins"] = 4
    if plan["cut"] == "frames":
        plan["max_frames"] = 120
    else:
        plan["size"] = 4
    return plan


def draw_setting(draw, mode, epochs=EPOCHS):
    plan = draw_plan(draw, mode)
    ranks = draw.choice([n for n in (1, 2, 3, 4) if plan["world"] % n == 0])
    workers = {"replica": draw.randint(1, 3), "sharded": ranks, "queue": draw.randint(1, 4)}[mode]
    least = max(3, ranks + 1) if mode == "sharded" else 3  # fewer are refused
    feed = {"slots": draw.randint(least, 12), "max_window": 8, "poison": draw.random() < 0.3,
            "max_lead": draw.choice((0, 0, 0, 4)) if mode != "queue" else 0}
    setting = Setting(mode, workers, draw.choice((100, 300)), plan, feed, free_port(),
                      epochs=epochs)
    window = draw.randint(1, 4)
    for rank in range(workers):
        setting.worker.append([
            f"mode={mode}", f"rank={rank}", f"ranks={workers}", f"epochs={epochs}",
            f"world={plan['world']}", f"window={window}", f"keep={draw.randint(0, window - 1)}",
            f"worst_first={draw.choice((0, 0, 3)) if mode != 'queue' else 0}",
            f"seed={draw.randrange(10000)}", *draw.choice(WAYS)])
    return setting


def toml(value):
    return json.dumps(value)  # numbers, texts and booleans look the same


def feed_table(name, dataset, ledger, feed, plan):
    keys = {"name": name, "dataset": str(dataset), "ledger": str(ledger), **feed}
    return ["[[feed]]", *(f"{key} = {toml(value)}" for key, value in keys.items()),
            "[feed.plan]", *(f"{key} = {toml(value)}" for key, value in plan.items())]


def configuration(setting, dataset, folder, events=""):
    keys = {"endpoints": [f"ipc://{folder / 's'}", f"tcp://127.0.0.1:{setting.port}"],
            "insecure": True, "stats": "127.0.0.1:0", "events": events, "memory": "64MiB",
            "queue_grace": f"{setting.grace_ms}ms", **setting.daemon}
    feed = dict(setting.feed)
    if setting.mode == "queue":
        feed["journal"] = str(folder / "journal")
    lines = ["[daemon]", *(f"{key} = {toml(value)}" for key, value in keys.items()),
             *feed_table("train", dataset, folder / "ledger", feed, setting.plan)]
    return "\n".join(lines) + "\n"


def plan_of(plan, epoch, programs, source, lengths=None):
    """The ordinals of each batch, as `batchwright plan` tells them of `source`: words that name a
    dataset, or "--lengths -" and `lengths`."""
    words = [word for key, value in plan.items()
             for word in ("--" + key.replace("_", "-"), str(value))]
    done = subprocess.run([programs / "batchwright", "plan", *source, "--epoch", str(epoch),
                           "--batches", "--json", *words],
                          check=True, capture_output=True, text=True, input=lengths)
    return json.loads(done.stdout)["batch_list"]


def planned(plan, epochs, dataset, programs):
    """The ordinals of each batch of each epoch."""
    return [plan_of(plan, epoch, programs, ["--dataset", dataset]) for epoch in range(epochs)]


def planned_of_first(plan, epoch, sequences, programs):
    """An epoch's batches where so many of a growing dataset's sequences are there."""
    lengths = "".join(f"{grown_length(ordinal)}\n" for ordinal in range(sequences))
    return plan_of(plan, epoch, programs, ["--lengths", "-"], lengths)
