"""One trainer process of tests/bench/trainers, fed by batchwright or by torch's DataLoader.

Says {"first": when} once it has its first batch, a moment of CLOCK_MONOTONIC. Then each line of
input, {"start", "end", "every_byte", "step", "drop"}, is a measurement: batches are taken at once,
those between start and end are counted, and {"bytes", "seconds", "batches", "next"} is the answer;
next: the median of the seconds that the loader takes until a batch is there as a tensor. A step
computes (it spins) until `step` seconds are over since the batch came.

As in any `for` loop, the loop's variable holds a batch until the next one is there; with `drop` it
lets go of it before.
"""

import json
import pathlib
import statistics
import sys
import time

FLOAT_BYTES, PAGE_FLOATS = 4, 1024
COOL_DOWN = 0.1  # seconds that it goes on, so that the end is measured under load


class Ours:
    """Batches of the daemon, as BatchDataset gives them."""

    def __init__(self, endpoint):
        from batchwright.torch import BatchDataset
        self.dataset = BatchDataset(endpoint, "feed")
        self.begin()

    def begin(self):
        self.batches, self.batch = iter(self.dataset), None

    def next(self):
        self.batch = None  # finished, and the views of it are gone
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.dataset)
            batch = next(self.batches)
        self.batch = batch
        return batch.torch("features"), batch.lengths

    def end(self):
        """Lets its slots go, and goes back to the start for the next time."""
        self.batch = None
        self.batches.close()
        self.dataset.set_epoch(self.dataset.epoch + 1)
        self.dataset.set_epoch(0)


class Trainer:
    def __init__(self, loader):
        self.loader = loader

    def run(self, start, end, every_byte, step, drop):
        """Warms up until `start`."""
        self.loader.begin()
        clock, take = time.monotonic, self.loader.next
        size, waits, seen, first, done = 0, [], 0.0, start, end
        began = clock()
        while began < end + COOL_DOWN:
            batch, _ = take()
            came = clock()
            features = batch  # here a `for` loop lets go of the batch before
            flat = features.view(-1)
            seen += (flat if every_byte else flat[::PAGE_FLOATS]).sum().item()
            while step and clock() - came < step:
                pass
            if start <= began and came < end:
                size += features.numel()
                waits.append(came - began)
                first = first if len(waits) > 1 else began
                done = clock()
            del batch, flat
            if drop:
                del features
            began = clock()
        self.loader.end()
        return {"bytes": size * FLOAT_BYTES, "seconds": done - first, "batches": len(waits),
                "next": statistics.median(waits or [end - start]), "seen": seen}


def loader_of(kind, given):
    if kind == "ours":
        return Ours(given["endpoint"])
    from torch_loader import FORMS, Loader
    form = next(form for form in FORMS if form.name == kind)
    return Loader(form, given["dataset"], json.loads(pathlib.Path(given["plan"]).read_text()),
                  given["warm"])


def main():
    kind, given = sys.argv[1], json.loads(sys.argv[2])
    loader = loader_of(kind, given)
    import torch
    torch.set_num_threads(1)  # the machine's other core is the loader's, or another trainer's
    features, _ = loader.next()
    print(json.dumps({"first": time.monotonic(), "mean": features.mean().item()}), flush=True)
    del features
    loader.end()
    trainer = Trainer(loader)
    for line in sys.stdin:
        print(json.dumps(trainer.run(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
