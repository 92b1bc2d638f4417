"""Epochs of a BatchDataset, as training scripts go through them."""

from batchwright.torch import BatchDataset


def run(dataset, first, last):
    """Epochs first to last, as training scripts go through them: (epoch, keys) of every batch."""
    seen = []
    for epoch in range(first, last + 1):
        dataset.set_epoch(epoch)
        seen += [(batch.epoch, batch.keys) for batch in dataset]
    return seen


def whole_run(daemon, last, **options):
    with BatchDataset(daemon.endpoint, **options) as dataset:
        return run(dataset, 0, last)


STEPS = 15  # of an epoch of the dataset that the tests share
WHOLE = [(epoch, index) for epoch in range(4) for index in range(STEPS)]


def place(batch):
    return batch.epoch, batch.index


def rest(batches):
    return [place(batch) for batch in batches]
