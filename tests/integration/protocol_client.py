"""A client of batchwrightd written from formats/PROTOCOL.md, formats/README.md and the .fbs files
alone, and a test by it: it receives whole epochs as messages, and knows every value that must be in
them.
Call: protocol_client.py BIN FLATC SCHEMAS, the folder of programs, flatc, and the folder of .fbs files"""
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time

import flatbuffers
import numpy
import zmq

PROTOCOL = 1
ABILITIES = 1  # of those in PROTOCOL.md: 0, a queue's batch can be given back undone
UPCOMING = 8  # of these: 3, the daemon tells which batches come next
SEQUENCES = 60
SECONDS = 30  # that any single wait may take

CONFIG = """
[daemon]
endpoints = ["{ipc}", "{tcp}"]
insecure = true
stats = ""
memory = "64MiB"

[[feed]]
name = "train"
dataset = "{dataset}"
slots = 4
layout = "{layout}"
padding = {{ features = -1.0 }}

[feed.plan]
order = "semi-sorted"
cut = "dynamic"
size = 4
shuffle = "batches"

[[feed]]
name = "jobs"
dataset = "{dataset}"
slots = 4
journal = "{dataset}.{layout}.journal"
"""


def expect(what, found, wanted=True):
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, not {wanted!r}")


def wire(name):
    """What flatc made of one table: table and table object."""
    module = __import__(f"batchwright.wire.{name}", fromlist=[name])
    return getattr(module, name), getattr(module, name + "T", None)


def encode(name, **fields):
    body = wire(name)[1]()
    for field, value in fields.items():
        expect(f"{name} has a field {field}", hasattr(body, field))
        setattr(body, field, value)
    message = wire("Message")[1]()
    message.body, message.bodyType = body, getattr(wire("Body")[0], name)
    builder = flatbuffers.Builder(256)
    builder.Finish(message.Pack(builder), file_identifier=b"BWC1")
    return bytes(builder.Output())


def decode(frame):
    expect("a control message's identifier", frame[4:8], b"BWC1")
    table = wire("Message")[0]
    return wire("Message")[1].InitFromObj(table.GetRootAs(frame, 0)).body


class Client:
    """One session without an arena."""

    def __init__(self, endpoint, abilities=ABILITIES):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint)
        self.send("Hello", protocol=PROTOCOL, client="protocol_client", inlineBatches=True,
                  token=secrets.randbits(64), abilities=abilities)
        self.welcome, _ = self.receive("Welcome")

    def send(self, name, **fields):
        self.socket.send(encode(name, **fields))

    def receive(self, *expected):
        """The next message that is no sign of life: its table, and the batch of a Delivery."""
        while self.socket.poll(SECONDS * 1000):
            frames = self.socket.recv_multipart()
            body = decode(frames[0])
            kind = type(body).__name__.removesuffix("T")
            if kind == "Alive":
                expect("frames of Alive", len(frames), 1)
                continue
            if kind not in expected:
                raise SystemExit(f"{kind} {vars(body)}, not one of {expected}")
            if kind != "Delivery":
                expect(f"frames of {kind}", len(frames), 1)
            elif len(frames) > 2:
                expect("the size of parts", {len(part) for part in frames[1:-1]}, {1 << 20})
            return body, b"".join(frames[1:])
        raise SystemExit(f"waited {SECONDS} s for {expected}")

    def subscribe(self, feed="train", **fields):
        self.send("Subscribe", subscription=1, feed=feed, **fields)
        return self.receive("Subscribed")[0]

    def close(self):
        self.send("Bye")
        self.socket.close(linger=1000)
        self.context.term()


def sequence_name(number):
    return f"{'even' if number % 2 == 0 else 'odd'}/seq-{number}"


def features_of(number):
    """Different everywhere, and exact as float32."""
    frames = number * 7919 % 50 + 1
    return (number * 1000 + numpy.arange(frames * 4).reshape(frames, 4)).astype(numpy.float32)


def text_of(number):
    return b"word " * (number % 7 + 1)


def make_dataset(programs, folder):
    sources = folder / "sources"
    transcripts = folder / "transcripts.tsv"
    with transcripts.open("w") as lines:
        for number in range(SEQUENCES):
            path = sources / (sequence_name(number) + ".npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            numpy.save(path, features_of(number))
            lines.write(f"{sequence_name(number)}\t{text_of(number).decode()}\n")
    subprocess.run([programs / "batchwright", "ingest", "npy", sources, "--into", folder / "data",
                    "--label-from-folder", "--transcripts", transcripts], check=True)


class Daemon:
    def __init__(self, programs, folder, layout):
        self.ipc = f"ipc://{folder}/{layout}"
        config, self.log = folder / "config.toml", folder / "log"
        config.write_text(CONFIG.format(ipc=self.ipc, tcp="tcp://127.0.0.1:0", dataset=folder / "data",
                                        layout=layout))
        self.process = subprocess.Popen([programs / "batchwrightd", "--config", config],
                                        stderr=self.log.open("w"))

    def __enter__(self):
        end = time.monotonic() + SECONDS
        while "ready: " not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"batchwrightd does not start:\n{self.log.read_text()}")
            time.sleep(0.01)
        self.tcp = re.search(r"listening at (tcp://[^ ,]+)", self.log.read_text())[1]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(SECONDS) != 0:
            raise SystemExit(f"batchwrightd failed:\n{self.log.read_text()}")


DTYPES = {1: "<f4", 2: "<f2", 4: "<i8", 5: "<i4", 6: "<i2", 7: "u1"}
PRIMARY, ALIGNED, INDEPENDENT, SCALAR = range(4)


class Batch:
    """A batch's tables as Python values, and its tensors as arrays of [row, frame, ...]."""

    def __init__(self, frame):
        expect("a batch's identifier", frame[4:8], b"BWB1")
        self.table = wire("Batch")[0].GetRootAs(frame, 0)
        rows = range(self.table.KeysLength())
        self.numbers = [int(self.table.Keys(row).decode().rsplit("-", 1)[1]) for row in rows]
        self.keys = [self.table.Keys(row).decode() for row in rows]
        self.lengths = self.table.LengthsAsNumpy().tolist()
        self.ordinals = self.table.OrdinalsAsNumpy().tolist()
        tensors = [self.table.Tensors(i) for i in range(self.table.TensorsLength())]
        self.tensors = {tensor.Name().decode(): self.array(tensor) for tensor in tensors}
        self.own_lengths = {tensor.Name().decode(): tensor.LengthsAsNumpy().tolist()
                            for tensor in tensors if tensor.Kind() == INDEPENDENT}

    def array(self, tensor):
        values = tensor.DataAsNumpy().view(DTYPES[tensor.Dtype()])
        values = values.reshape(tensor.ShapeAsNumpy().tolist())
        time_major = self.table.Layout() == 1 and tensor.Kind() != SCALAR
        return values.swapaxes(0, 1) if time_major else values


def check_row(batch, row, categories):
    number = batch.numbers[row]
    wanted = features_of(number)
    expect("the key", batch.keys[row], sequence_name(number))
    expect(f"the length of {number}", batch.lengths[row], len(wanted))
    found = batch.tensors["features"][row]
    expect(f"the frames of {number}", numpy.array_equal(found[:len(wanted)], wanted))
    expect(f"the padding behind {number}", bool((found[len(wanted):] == -1.0).all()))
    expect(f"the label of {number}", categories[batch.tensors["label"][row]],
           sequence_name(number).split("/")[0].encode())
    text = batch.tensors["text"][row][:batch.own_lengths["text"][row]].tobytes()
    expect(f"the text of {number}", text.strip(), text_of(number).strip())


def check_batch(batch, delivery, granted, categories):
    table = batch.table
    expect("the place", (table.Epoch(), table.Step(), table.Index()),
           (delivery.epoch, delivery.step, delivery.index))
    expect("the feed", table.Feed(), b"train")
    expect("the fingerprint", table.Fingerprint().Data(), granted.fingerprint.data)
    expect("L", table.BatchLength(), max(batch.lengths))
    expect("the shape", batch.tensors["features"].shape,
           (len(batch.numbers), max(batch.lengths), 4))
    expect("B", table.BatchSequences(), len(batch.numbers))
    expect("frames", table.BatchFrames(), sum(batch.lengths))
    for row in range(len(batch.numbers)):
        check_row(batch, row, categories)


def take_epoch(client, epoch, granted, categories):
    """Takes every batch of an epoch up to its end, window by window."""
    numbers, ordinals, batches, held = [], [], 0, []
    while True:
        body, frame = client.receive("Delivery", "EpochEnd", "EpochBegin")
        if type(body).__name__ == "EpochBeginT":
            expect("the epoch that begins", body.epoch, epoch)
            continue
        if type(body).__name__ == "EpochEndT":
            expect("the epoch that ends", (body.epoch, body.steps), (epoch, batches))
            client.send("Release", subscription=1, leases=held)
            return numbers, ordinals, body.last
        expect("where it lies", (body.arena, body.offset, body.size), (0, 0, len(frame)))
        expect("the order", (body.epoch, body.index), (epoch, batches))
        batch = Batch(frame)
        check_batch(batch, body, granted, categories)
        numbers += batch.numbers
        ordinals += batch.ordinals
        batches += 1
        held.append(body.lease)
        expect("unreleased batches are within the window", len(held) <= granted.window)
        if len(held) == granted.window:
            client.send("Release", subscription=1, leases=held)
            held = []


def receive_all(endpoint):
    client = Client(endpoint)
    feed = client.welcome.feeds[0]
    expect("the feed's name", feed.name, b"train")
    expect("its sequences", feed.sequences, SEQUENCES)
    fields = {field.name.decode(): field for field in feed.fields}
    expect("kinds", {name: field.kind for name, field in fields.items()},
           {"features": PRIMARY, "label": SCALAR, "text": INDEPENDENT})
    granted = client.subscribe(window=2, epochs=2)
    expect("the start", (granted.epoch, granted.step, granted.window), (0, 0, 2))
    for epoch in range(2):
        numbers, ordinals, last = take_epoch(client, epoch, granted, fields["label"].categories)
        expect("each sequence once", sorted(numbers), list(range(SEQUENCES)))
        expect("each ordinal once", sorted(ordinals), list(range(SEQUENCES)))
        expect("last", last, epoch == 1)
    client.close()


def check_refusal(endpoint):
    client = Client(endpoint)
    client.send("Subscribe", subscription=7, feed="nothing")
    refused, _ = client.receive("Refused")
    expect("who and why is refused", (refused.subscription, refused.code), (7, 1))
    client.close()


QUEUE = 2  # the mode


def check_returns(endpoint, abilities):
    """A batch that is given back undone goes to another client, before those that were not begun."""
    one = Client(endpoint, abilities)
    expect("the daemon's abilities", one.welcome.abilities & ABILITIES, ABILITIES)
    granted = one.subscribe("jobs", mode=QUEUE, window=1)
    first, _ = one.receive("Delivery")
    if abilities & ABILITIES:
        one.send("Release", subscription=1, leases=[first.lease], undone=True)
        second, _ = one.receive("Delivery")
        expect("another batch", second.index != first.index)
    else:
        one.send("Unsubscribe", subscription=1)  # all that a client without the ability can do
        # Another connection's messages may overtake this one's: it is answered once they are read.
        one.send("Subscribe", subscription=7, feed="nothing")
        one.receive("Refused")
    other = Client(endpoint, abilities)
    other.subscribe("jobs", mode=QUEUE, window=1, untilEpoch=granted.epoch + 1)
    again, _ = other.receive("Delivery")
    expect("the same batch", again.index, first.index)
    expect("that it was begun before", again.attempt, first.attempt + (abilities & ABILITIES))
    one.close()
    other.close()


def check_upcoming(endpoint):
    """What is told to come next does so, after what was delivered before."""
    client = Client(endpoint, ABILITIES | UPCOMING)
    expect("the daemon's abilities", client.welcome.abilities & UPCOMING, UPCOMING)
    client.subscribe(window=1, epochs=1)
    client.send("ListUpcoming", subscription=1, question=9, count=5)
    leases = []
    body, _ = client.receive("Delivery", "Upcoming")
    while type(body).__name__ == "DeliveryT":
        leases.append(body.lease)
        body, _ = client.receive("Delivery", "Upcoming")
    expect("which question is answered, with how many", (body.question, len(body.batches)), (9, 5))
    for foretold in body.batches:
        if leases:
            client.send("Release", subscription=1, leases=leases)
        delivery, frame = client.receive("Delivery")
        leases = [delivery.lease]
        batch = Batch(frame)
        expect("its place", (foretold.epoch, foretold.step, foretold.index),
               (delivery.epoch, delivery.step, delivery.index))
        expect("its figures", (foretold.rows, foretold.length, foretold.frames),
               (len(batch.numbers), max(batch.lengths), sum(batch.lengths)))
        expect("that it is no rehearsal", foretold.rehearsal, False)
    client.close()


def main():
    programs, flatc, schemas = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="bw-") as name:
        folder = pathlib.Path(name)
        files = [schemas / f"{each}.fbs" for each in ("types", "batch", "control")]
        subprocess.run([flatc, "--python", "--gen-object-api", "-o", folder, *files], check=True)
        sys.path.insert(0, name)
        make_dataset(programs, folder)
        for layout in ("batch-major", "time-major"):
            with Daemon(programs, folder, layout) as daemon:
                receive_all(daemon.ipc)
                receive_all(daemon.tcp)
                check_refusal(daemon.ipc)
                check_upcoming(daemon.ipc)
                check_returns(daemon.ipc, 0)
                check_returns(daemon.ipc, ABILITIES)


if __name__ == "__main__":
    main()
