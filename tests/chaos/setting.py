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


@dataclass
class Setting:
    """All that is drawn for one trial."""
    mode: str
    workers: int
    grace_ms: int
    plan: dict
    feed: dict
    port: int  # for those who come by TCP
    worker: list = field(default_factory=list)  # words for each worker

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


def draw_setting(draw, mode):
    plan = draw_plan(draw, mode)
    ranks = draw.choice([n for n in (1, 2, 3, 4) if plan["world"] % n == 0])
    workers = {"replica": draw.randint(1, 3), "sharded": ranks, "queue": draw.randint(1, 4)}[mode]
    least = max(3, ranks + 1) if mode == "sharded" else 3  # fewer are refused
    feed = {"slots": draw.randint(least, 12), "max_window": 8, "poison": draw.random() < 0.3,
            "max_lead": draw.choice((0, 0, 0, 4)) if mode != "queue" else 0}
    setting = Setting(mode, workers, draw.choice((100, 300)), plan, feed, free_port())
    window = draw.randint(1, 4)
    for rank in range(workers):
        setting.worker.append([
            f"mode={mode}", f"rank={rank}", f"ranks={workers}", f"epochs={EPOCHS}",
            f"window={window}", f"keep={draw.randint(0, window - 1)}",
            f"worst_first={draw.choice((0, 0, 3)) if mode != 'queue' else 0}",
            f"seed={draw.randrange(10000)}", *draw.choice(WAYS)])
    return setting


def toml(value):
    return json.dumps(value)  # numbers, texts and booleans look the same


def configuration(setting, dataset, folder, events=""):
    endpoints = [f"ipc://{folder / 's'}", f"tcp://127.0.0.1:{setting.port}"]
    lines = ["[daemon]", f"endpoints = {toml(endpoints)}", "insecure = true",
             'stats = "127.0.0.1:0"', f"events = {toml(events)}", 'memory = "64MiB"',
             f'queue_grace = "{setting.grace_ms}ms"', "[[feed]]", 'name = "train"',
             f"dataset = {toml(str(dataset))}", f"ledger = {toml(str(folder / 'ledger'))}"]
    if setting.mode == "queue":
        lines.append(f"journal = {toml(str(folder / 'journal'))}")
    lines += [f"{key} = {toml(value)}" for key, value in setting.feed.items()]
    lines.append("[feed.plan]")
    lines += [f"{key} = {toml(value)}" for key, value in setting.plan.items()]
    return "\n".join(lines) + "\n"


def planned(setting, dataset, programs):
    """The ordinals of each batch of each epoch, as `batchwright plan` tells."""
    words = [word for key, value in setting.plan.items()
             for word in ("--" + key.replace("_", "-"), str(value))]
    epochs = []
    for epoch in range(EPOCHS):
        done = subprocess.run(
            [programs / "batchwright", "plan", "--dataset", dataset, "--epoch", str(epoch),
             "--batches", "--json", *words], check=True, capture_output=True, text=True)
        epochs.append(json.loads(done.stdout)["batch_list"])
    return epochs
