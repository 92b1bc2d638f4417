"""Writing in place: a fault that says what to do, or, where it was asked for, a thing of one's own."""

import re
import signal
import subprocess
import sys
import zlib

import pytest
import torch

import batchwright
import served
from batchwright.torch import BatchDataset
from test_batches import check_rows

# What real code does with its input. Of `x`, a float tensor [B, L, 4].
IN_PLACE = {
    "multiply": "x *= 2",
    "subtract": "x -= x.mean()",
    "mask": "x[0, 0:1] = 0",
    "masked_fill_": "x.masked_fill_(x > 0, -100)",
    "relu": "torch.nn.ReLU(inplace=True)(x)",
    "dropout": "torch.nn.Dropout(.5, inplace=True)(x)",
    "numpy": "x.numpy()[0] = 1",
    "float": "y = x.float(); y += 1",
    "contiguous": "y = x.contiguous(); y += 1",
    "to": "y = x.to('cpu'); y += 1",
}

# A fork a form, so that torch is imported once: a child may use what its parent holds.
FAULTS = """
import os, sys, torch, batchwright
forms = {forms!r}
batch = batchwright.connect({endpoint!r}).feed("train").subscribe({options}).next()
x = batch.torch("features")
for name, code in forms.items():
    sys.stderr.write(f"<{{name}}>")
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        exec(code)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(name, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
"""


def python(program, *options, **environment):
    return subprocess.run([sys.executable, *options, "-c", program], check=False, text=True,
                          env={**served.environment(), **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=served.SECONDS * 4)


def faults(daemon, forms, options="", **environment):
    """By form: the signal that ended it, and what it said."""
    ended = python(FAULTS.format(forms=forms, endpoint=daemon.endpoint, options=options),
                   **environment)
    signals = dict(line.split() for line in ended.stdout.splitlines())
    said = dict(re.findall(r"<(\w+)>([^<]*)", ended.stderr))
    return {name: (int(signals[name]), said[name]) for name in forms}


def test_a_write_to_what_can_only_be_read_names_the_batch_and_the_remedy(daemon):
    for name, (by, said) in faults(daemon, IN_PLACE).items():
        assert by == signal.SIGSEGV, name
        assert 'batchwright: a write to batch 0 of epoch 0 of feed "train"' in said, name
        assert "writable=True" in said and "clone()" in said


def test_the_message_can_be_declined(daemon):
    form = {"multiply": IN_PLACE["multiply"]}
    found = faults(daemon, form, BATCHWRIGHT_FAULT_HANDLER="0")
    assert found == {"multiply": (signal.SIGSEGV, "")}


def test_with_writable_each_of_them_works(daemon):
    for name, (by, said) in faults(daemon, IN_PLACE, "writable=True").items():
        assert (by, said.strip()) == (0, ""), name


@pytest.mark.parametrize("before", [True, False])
def test_faulthandler_names_the_line_behind_the_message(daemon, before):
    """Enabled before or after: both speak, and the signal ends the process."""
    program = f"""
import faulthandler, torch, batchwright
feed = batchwright.connect({daemon.endpoint!r}).feed("train")
first = feed.subscribe()
{"" if before else "faulthandler.enable()"}
x = feed.subscribe().next().torch("features")
def augment():
    x.mul_(2)
augment()
"""
    ended = python(program, *(["-X", "faulthandler"] if before else []))
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stderr.count("batchwright: a write to batch 0") == 1
    assert "in augment" in ended.stderr


def test_a_fault_of_somebody_elses_is_not_explained(daemon):
    program = f"""
import ctypes, batchwright
batch = batchwright.connect({daemon.endpoint!r}).feed("train").subscribe().next()
ctypes.c_char.from_address(16).value = b"x"
"""
    ended = python(program)
    assert (ended.returncode, served.complaints(ended.stderr)) == (-signal.SIGSEGV, [])


@pytest.mark.parametrize("inline", [False, True])
def test_what_was_written_goes_with_the_batch(serve, inline):
    """Few slots, so that each is filled again and again."""
    daemon = serve(slots=5)
    with batchwright.connect(daemon.endpoint, inline=inline) as connection:
        with connection.feed("train").subscribe(writable=True, window=2, epochs=4) as subscription:
            for batch in subscription:
                assert batch.writable
                check_rows(batch)
                batch["features"][:] = 5
                batch.torch("text").zero_()
                batch.tensor("features").torch().mul_(3)
                assert (batch["features"] == 15).all()


def test_views_keep_what_was_written_behind_the_release(feed):
    with feed.subscribe(writable=True) as subscription:
        batch = subscription.next()
        tensor = batch.torch("features").fill_(3)
        batch.release()
        for _ in range(served.DEFAULTS["slots"] * 2):
            subscription.next()
        assert bool((tensor == 3).all())
        assert torch.from_dlpack(subscription.next().tensor("features")).fill_(1).min() == 1


def test_another_process_and_another_subscription_see_the_batch_as_it_was(feed, daemon):
    """All hold the same batch at the same time."""
    with feed.subscribe() as readers, feed.subscribe(writable=True) as writers:
        batch, mine = readers.next(), writers.next()
        before = zlib.crc32(batch["features"])
        assert zlib.crc32(mine["features"]) == before
        mine["features"][:] = -5
        program = f"""
import zlib, batchwright
feed = batchwright.connect({daemon.endpoint!r}).feed("train")
mine = feed.subscribe(writable=True).next()
seen = zlib.crc32(mine["features"])
mine["features"][:] = 1
theirs = feed.subscribe().next()
print(seen, zlib.crc32(theirs["features"]), int((mine["features"] == 1).all()))
"""
        ended = python(program)
        assert ended.stdout.split() == [str(before), str(before), "1"], ended.stderr
        assert zlib.crc32(batch["features"]) == before
        assert (mine["features"] == -5).all()


def test_a_rehearsal_and_its_batch_share_a_slot_and_no_writes(feed):
    with feed.subscribe(writable=True, worst_first=1, window=served.DEFAULTS["slots"]) as taken:
        rehearsal = taken.next()
        rehearsal["features"][:] = 9
        for batch in taken.epoch():
            if batch.index == rehearsal.index:
                check_rows(batch)
                assert (rehearsal["features"] == 9).all()
                return
    raise AssertionError("the batch did not come again")


def test_the_next_epochs_of_a_writable_dataset_are_right(daemon):
    def checksums(**options):
        found = []
        with BatchDataset(daemon.endpoint, **options) as dataset:
            for _ in range(3):
                for batch in dataset:
                    found.append(zlib.crc32(batch["features"]))
                    if options:
                        batch.torch("features").mul_(2).add_(1)
        return found

    assert checksums(writable=True) == checksums()


def test_writable_batches_share_the_memory_of_as_many_as_are_held(serve):
    """A buffer for each batch that is held, and one that is copied ahead."""
    daemon = serve(slots=4)
    with batchwright.connect(daemon.endpoint) as connection:
        with connection.feed("train").subscribe(writable=True) as subscription:
            places = set()
            for _ in range(50):
                event = subscription.next()
                if isinstance(event, batchwright.Batch):
                    event["features"][:] = 1
                    places.add(event["features"].ctypes.data // (64 << 10))
                del event
            assert len(places) <= 3

