"""A run that is killed and resumed sees exactly the batches of one that is not, and ends with the
same weights: by the example that the package's own documents show."""

import pathlib
import re
import textwrap

import pytest
import torch

import batchwright.torch
import served

GUIDE = served.ROOT / "client" / "python" / "README.md"


def docstrings_example():
    """The code of batchwright.torch's docstring, which saves in the loop's body."""
    text = batchwright.torch.__doc__
    block = re.search(r"\n\n((?:    .*\n|\n)+)", text)[1]
    assert "state_dict()" in block and "set_epoch" in block
    return textwrap.dedent(block)


def guides_example():
    text = GUIDE.read_text()
    block = re.search(r"## Training\n\n```python\n(.*?)```", text, re.DOTALL)[1]
    assert "state_dict()" in block and "load_state_dict" in block
    return block


class Killed(Exception):
    """Where the process would have been killed."""


class Run:
    """What the example takes for granted, and a note of every batch that was trained on."""

    def __init__(self, daemon, folder, kill_after, resuming):
        torch.manual_seed(1)
        self.trained = []
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6, momentum=0.9)
        self.path = pathlib.Path(folder) / "checkpoint"
        self.kill_after = kill_after
        self.daemon = daemon
        self.checkpoint = None
        if resuming:
            self.checkpoint = torch.load(self.path)
            self.model.load_state_dict(self.checkpoint["model"])
            self.optimizer.load_state_dict(self.checkpoint["optimizer"])

    def note_saved(self, state, *_):
        torch.save(state, self.path)
        if len(self.trained) == self.kill_after:
            raise Killed

    def packed(self, batch, name):
        self.trained.append((batch.epoch, batch.step, tuple(batch.keys)))
        return batchwright.torch.packed(batch, name)

    def forward(self, frames):
        padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(frames, batch_first=True)
        return self.model(padded.sum(1) / lengths[:, None])

    def names(self):
        class Model:
            __call__ = staticmethod(self.forward)
            state_dict = self.model.state_dict

        class Torch:
            save = staticmethod(self.note_saved)

        def data_loader(dataset, **options):
            if self.checkpoint is not None:
                dataset.load_state_dict(self.checkpoint["data"])
            return torch.utils.data.DataLoader(dataset, **options)

        return dict(model=Model(), optimizer=self.optimizer, torch=Torch, path=None,
                    criterion=torch.nn.functional.cross_entropy, DataLoader=data_loader,
                    resuming=self.checkpoint is not None, checkpoint=self.checkpoint,
                    save=self.note_saved, train=self.train)

    def train(self, batch):
        loss = torch.nn.functional.cross_entropy(self.forward(self.packed(batch, "features")),
                                                 batch.torch("label").long())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def execute(self, example):
        code = example.replace("ipc:///run/batchwright/batchwright.sock", self.daemon.endpoint)
        code = re.sub(r"from batchwright.torch import .*", "from batchwright.torch import BatchDataset",
                      code)
        code = re.sub(r"(range\(dataset.epoch, )10\)", r"\g<1>3)", code)
        names = {**self.names(), "packed": self.packed}
        try:
            exec(compile(code, "example", "exec"), names)
        except Killed:
            return False
        finally:
            if "dataset" in names:
                names["dataset"].close()
        return True


@pytest.mark.parametrize("example", [docstrings_example, guides_example])
@pytest.mark.parametrize("killed", [1, 7, 15, 16, 40])
def test_the_documents_example_resumes_exactly(daemon, tmp_path, example, killed):
    """Killed after any one checkpoint: no batch twice, none lost, the same weights."""
    code = example()
    folders = [tmp_path / name for name in ("whole", "broken")]
    for folder in folders:
        folder.mkdir()
    whole = Run(daemon, folders[0], None, False)
    assert whole.execute(code)
    first = Run(daemon, folders[1], killed, False)
    assert not first.execute(code)
    second = Run(daemon, folders[1], None, True)
    assert second.execute(code)
    assert len(whole.trained) == 45
    assert first.trained + second.trained == whole.trained
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, second.model.state_dict()[name])
