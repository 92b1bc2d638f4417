#!/usr/bin/python3
"""Writes what a release leaves on people's disks, and what it says to its clients, for the tests of
every later one: record.py BIN FOLDER, the release's programs and a new folder beside this file.

What is in the folder is told in README.md beside this file.
"""
import argparse
import base64
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import zmq

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECONDS = 30  # that any single wait may take
SEQUENCES = 24
TAKEN = 3  # batches before the checkpoint, and before the journal is left


def make_features(folder):
    """features [T, 4] float32, targets [T] int32, text (independent), label (scalar)."""
    from batchwright.writer import DatasetWriter, FieldSpec
    fields = {"features": FieldSpec("float32", (4,)), "targets": FieldSpec("int32", kind="aligned"),
              "text": FieldSpec("uint8", kind="independent"),
              "label": FieldSpec("int32", kind="scalar", categories=["even", "odd"])}
    with DatasetWriter(folder, fields) as writer:
        for number in range(SEQUENCES):
            frames = number * 7 % 11 + 1
            writer.add(f"seq-{number}", label=["even", "odd"][number % 2],
                       features=(number * 100 + numpy.arange(frames * 4)).reshape(frames, 4)
                       .astype("float32"), targets=numpy.arange(frames, dtype="int32"),
                       text=numpy.frombuffer(b"word" * (number % 3 + 1), "uint8"))


def make_sound(programs, folder, sources):
    import wave
    sources.mkdir()
    for number in range(SEQUENCES):
        at = numpy.arange(3200 + 400 * (number * 7 % 11)) / 16000
        random = numpy.random.RandomState(number)
        samples = .3 * numpy.sin(2 * numpy.pi * (150 + 20 * number) * at) + .01 * random.randn(len(at))
        with wave.open(str(sources / f"utt-{number}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, len(at), "NONE", ""))
            file.writeframes(numpy.rint(samples * 32767).astype("<i2").tobytes())
    subprocess.run([programs / "batchwright", "ingest", "audio", sources, "--into", folder, "--store",
                    "pcm"], check=True, stdout=subprocess.DEVNULL)


class Daemon:
    def __init__(self, programs, folder, sockets):
        self.endpoint = f"ipc://{sockets}/bw.sock"
        self.config, self.log = sockets / "daemon.toml", sockets / "log"
        text = (folder / "daemon.toml").read_text()
        self.config.write_text(text.replace("FOLDER", str(folder)).replace("SOCKETS", str(sockets)))
        self.programs, self.process = programs, None

    def __enter__(self):
        self.process = subprocess.Popen([self.programs / "batchwrightd", "--config", self.config],
                                        stderr=self.log.open("w"))
        end = time.monotonic() + SECONDS
        while "ready: " not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"batchwrightd does not start:\n{self.log.read_text()}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)


def rest_of_epoch(dataset):
    """Keys of the batches that are left of the epoch, and what their features add up to."""
    return [{"keys": batch.keys, "sum": float(numpy.sum(batch["features"], dtype="float64"))}
            for batch in dataset]


def record_checkpoint(endpoint, feed):
    from batchwright.torch import BatchDataset
    with BatchDataset(endpoint, feed=feed, epochs=1, window=2) as dataset:
        batches = iter(dataset)
        for _ in range(TAKEN):
            next(batches)
        state = dataset.state_dict()
    with BatchDataset(endpoint, feed=feed, epochs=1, window=2) as dataset:
        dataset.load_state_dict(state)
        return {"state": state, "rest": rest_of_epoch(dataset)}


def record_queue(endpoint):
    """Leaves an epoch of the queue unfinished."""
    import batchwright
    done = []
    with batchwright.connect(endpoint) as connection:
        with connection.feed("queue").subscribe(mode="queue", epochs=1, window=1) as worker:
            for _ in range(TAKEN):
                batch = worker.next()
                done += batch.keys
                batch.release()
    return done


def record_conversation(endpoint, sockets):
    """An epoch as messages, through a proxy that keeps every frame of both sides."""
    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    front.bind(f"ipc://{sockets}/proxy")
    back.connect(endpoint)
    frames, over = [], threading.Event()

    def carry():
        poller, peer = zmq.Poller(), None
        poller.register(front, zmq.POLLIN)
        poller.register(back, zmq.POLLIN)
        while not over.is_set():
            ready = dict(poller.poll(50))
            if front in ready:
                peer, *parts = front.recv_multipart()
                frames.append(("client", parts))
                back.send_multipart(parts)
            if back in ready:
                parts = back.recv_multipart()
                frames.append(("daemon", parts))
                front.send_multipart([peer, *parts])

    carrier = threading.Thread(target=carry)
    carrier.start()
    import batchwright
    with batchwright.connect(f"ipc://{sockets}/proxy", inline=True) as connection:
        with connection.feed("plain").subscribe(epochs=1, window=2) as subscription:
            for batch in subscription:
                batch.release()
    over.set()
    carrier.join()
    context.destroy(linger=0)
    return [{"from": side, "frames": [base64.b64encode(part).decode() for part in parts]}
            for side, parts in frames]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path, help="the folder of the release's programs")
    parser.add_argument("folder", type=pathlib.Path, help="a new folder beside this file")
    call = parser.parse_args()
    programs, folder = call.bin.resolve(), call.folder.resolve()
    sys.path.insert(0, str(ROOT / "client" / "python"))
    folder.mkdir()
    shutil.copy(pathlib.Path(__file__).parent / "daemon.toml", folder)
    with tempfile.TemporaryDirectory(prefix="bw-") as name:
        make_features(folder / "features")
        make_sound(programs, folder / "sound", pathlib.Path(name) / "wav")
        sockets = pathlib.Path(name)
        config = (folder / "daemon.toml").read_text().replace("SOCKETS", name)
        (sockets / "statistics.toml").write_text(config.replace("FOLDER", str(folder)))
        subprocess.run([programs / "batchwright", "cmvn", "--feed-config", sockets / "statistics.toml",
                        "--feed", "made", "--into", folder / "statistics"], check=True,
                       stdout=subprocess.DEVNULL)
        with Daemon(programs, folder, sockets) as daemon:
            told = {feed: record_checkpoint(daemon.endpoint, feed) for feed in ("plain", "made")}
            told["queue"] = {"done": record_queue(daemon.endpoint)}
        with Daemon(programs, folder, sockets) as daemon:  # whose leases count from the first
            talk = record_conversation(daemon.endpoint, sockets)
    for lock in folder.glob("*/lock.mdb"):
        lock.unlink()
    (folder / "checkpoints.json").write_text(json.dumps(told, indent=1) + "\n")
    (folder / "conversation.json").write_text(json.dumps(talk, indent=0) + "\n")


if __name__ == "__main__":
    main()
