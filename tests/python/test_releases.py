"""What earlier releases wrote and said: data, checkpoints, journals, statistics and conversations of
tests/data/releases, each read by the programs of today."""

import base64
import json
import pathlib
import shutil
import struct
import subprocess
import time

import numpy
import pytest
import zmq
from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

import batchwright
import served
from batchwright.torch import BatchDataset
from checksum import crc32c

RELEASES = sorted(path for path in (served.ROOT / "tests/data/releases").iterdir()
                  if path.is_dir())
DRAWS = {"0.1.0": 1}  # the version of the draws of a release, for feeds that do not say one


class Daemon(served.Daemon):
    """Serves a copy of what a release left."""

    def __init__(self, folder, release, **lines):
        super().__init__(folder, None)
        self.files = folder / "files"
        shutil.copytree(release, self.files)
        (folder / "sockets").mkdir()
        text = (release / "daemon.toml").read_text()
        text = text.replace("FOLDER", str(self.files)).replace("SOCKETS", str(folder / "sockets"))
        self.text = text.replace("[feed.features]", "[feed.features]\n" + lines.get("features", ""))
        self.endpoint = f"ipc://{folder}/sockets/bw.sock"

    def start(self):
        self.config.write_text(self.text)
        with self.log.open("w") as log:
            self.process = subprocess.Popen([served.BIN / "batchwrightd", "--config", self.config],
                                            stderr=log)
        served.eventually(self._ready, "batchwrightd")
        return self


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request):
    return request.param


@pytest.fixture
def told(release):
    return json.loads((release / "checkpoints.json").read_text())


@pytest.fixture
def serve_release(tmp_path, release):
    running = []

    def start(**lines):
        folder = tmp_path / str(len(running))
        folder.mkdir()
        running.append(Daemon(folder, release, **lines))
        return running[-1].start()

    yield start
    for daemon in running:
        daemon.stop()


def rest_of_epoch(endpoint, feed, state):
    with BatchDataset(endpoint, feed=feed, epochs=1, window=2) as dataset:
        dataset.load_state_dict(state)
        return [(batch.keys, float(numpy.sum(batch["features"], dtype="float64")))
                for batch in dataset]


def expect_rest(found, rest):
    assert [keys for keys, _ in found] == [batch["keys"] for batch in rest]
    assert [total for _, total in found] == pytest.approx([batch["sum"] for batch in rest])


def test_datasets_are_whole(release, tmp_path):
    for name in ("features", "sound"):
        shutil.copytree(release / name, tmp_path / name)
        subprocess.run([served.BIN / "batchwright", "verify", tmp_path / name], check=True,
                       stdout=subprocess.DEVNULL)


def test_a_checkpoint_goes_on_with_its_batches(serve_release, told):
    daemon = serve_release()
    expect_rest(rest_of_epoch(daemon.endpoint, "plain", told["plain"]["state"]),
                told["plain"]["rest"])


def settings_alone(terms):
    """Of a fingerprint of builds before layout, padding and fields belonged to it."""
    settings = 0xCBF29CE484222325
    for line in terms.split("\n"):
        key, _, value = line.partition(" = ")
        if key == "layout":
            break
        for byte in b"" if key == "seed" else f"{key}={value}\n".encode():
            settings = (settings ^ byte) * 0x100000001B3 % 2**64
    return settings


def older_form(state):
    data, _, seed = state["fingerprint"].split("-")
    settings = settings_alone(state["terms"])
    return {**state, "fingerprint": f"{data}-{settings:016x}-{seed}", "terms": ""}


def test_a_checkpoint_of_the_plan_alone_goes_on_with_its_batches(serve_release, told):
    daemon = serve_release()
    expect_rest(rest_of_epoch(daemon.endpoint, "plain", older_form(told["plain"]["state"])),
                told["plain"]["rest"])
    with pytest.raises(batchwright.FingerprintMismatchError):
        state = told["plain"]["state"]
        rest_of_epoch(daemon.endpoint, "plain",
                      older_form({**state, "terms": state["terms"].replace("size = 3", "size = 4")}))


def test_a_queue_goes_on_from_its_journal(serve_release, told):
    daemon = serve_release()
    with batchwright.connect(daemon.endpoint) as connection:
        left = []
        for batch in connection.feed("queue").subscribe(mode="queue", epochs=1, window=2):
            left += batch.keys
        assert sorted(left + told["queue"]["done"]) == sorted(f"seq-{i}" for i in range(24))


def test_a_queue_goes_on_from_a_journal_of_the_plan_alone(serve_release, told):
    daemon = serve_release()
    with batchwright.connect(daemon.endpoint) as connection:
        with connection.feed("queue").subscribe(window=2) as subscription:
            settings = settings_alone(subscription.terms)
    daemon.stop()
    journal = daemon.files / "journal"
    records = bytearray(journal.read_bytes())
    records[16:24] = struct.pack("<Q", settings)
    records[0:4] = struct.pack("<I", crc32c(records[4:32]))
    journal.write_bytes(records)
    daemon.start()
    with batchwright.connect(daemon.endpoint) as connection:
        with connection.feed("queue").subscribe(mode="queue", epochs=2, window=2) as worker:
            keys = [key for batch in worker for key in batch.keys]
    assert sorted(keys + told["queue"]["done"]) == sorted([f"seq-{i}" for i in range(24)] * 2)


def test_batches_made_by_a_recipe_go_on_with_the_draws_of_the_release(serve_release, release, told):
    if release.name in DRAWS:
        line = f"draws = {DRAWS[release.name]}"
        daemon = serve_release()
        with pytest.raises(batchwright.FingerprintMismatchError, match=line):
            rest_of_epoch(daemon.endpoint, "made", told["made"]["state"])
        daemon.stop()
        daemon = serve_release(features=line)
    else:
        daemon = serve_release()
    expect_rest(rest_of_epoch(daemon.endpoint, "made", told["made"]["state"]), told["made"]["rest"])


def lease_of(delivery):
    """`lease` of a Delivery: the second field of the table that is the second field of Message."""
    message = Table(delivery, encode.Get(packer.uoffset, delivery, 0))
    body = Table(delivery, message.Indirect(message.Pos + message.Offset(6)))
    return body.Get(number_types.Uint64Flags, body.Pos + body.Offset(6))


class Replay:
    """A client that says what one of a release said. Leases are a daemon's own numbers: those of the
    recorded batches stand for those of the batches that came."""

    def __init__(self, endpoint):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint)
        self.batches, self.leases = [], []

    def receive(self, count):
        """Waits until so many batches have come; signs of life come all the while."""
        end = time.monotonic() + served.SECONDS
        while len(self.batches) < count and time.monotonic() < end:
            if self.socket.poll(1000):
                frames = self.socket.recv_multipart()
                if len(frames) == 2:
                    self.leases.append(lease_of(frames[0]))
                    self.batches.append(frames[1])
        assert len(self.batches) >= count, f"batch {len(self.batches)} does not come"

    def send(self, frames, leases):
        for had, has in zip(leases, self.leases):
            frames = [frame.replace(struct.pack("<Q", had), struct.pack("<Q", has))
                      for frame in frames]
        self.socket.send_multipart(frames)


def test_a_conversation_gets_the_same_batches(serve_release, release):
    """What a client of the release sent is sent again. Every batch comes, byte for byte."""
    replay = Replay(serve_release().endpoint)
    batches, leases = [], []
    for line in json.loads((release / "conversation.json").read_text()):
        frames = [base64.b64decode(frame) for frame in line["frames"]]
        if line["from"] == "client":
            replay.receive(len(batches))
            replay.send(frames, leases)
        elif len(frames) == 2:
            leases.append(lease_of(frames[0]))
            batches.append(frames[1])
    assert len(batches) > 5
    assert replay.batches == batches
    replay.socket.close()
