"""Global steps of several batches, and what a batch weighs in one."""

import warnings

import numpy as np
import pytest

import batchwright
import served
from batchwright.torch import BatchDataset

WORLD = 4
STEPS = 4  # 15 batches of 4 sequences, of which the last step lacks one


@pytest.fixture
def daemon(serve):
    return serve(world=WORLD, plan='remainder = "wrap"')


@pytest.fixture
def ranked(daemon, monkeypatch):
    """Makes a dataset of so many ranks."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    made = []

    def make(ranks, rank=0, **options):
        made.append(BatchDataset(daemon.endpoint, rank=rank, ranks=ranks, timeout=served.SECONDS,
                                 **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def places(step):
    return [(batch.step, batch.index) for batch in step]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_step_has_all_batches_of_the_rank(ranked, ranks):
    share = WORLD // ranks
    for rank in range(ranks):
        steps = list(map(places, ranked(ranks, rank).steps_of(ranks)))
        assert steps == [[(step, step * WORLD + rank * share + i) for i in range(share)]
                         for step in range(STEPS)]


def test_batches_come_when_they_are_asked_for(ranked):
    """More than the window of 2 allows at once."""
    dataset = ranked(1, window=2)
    for step in dataset.steps_of(1):
        assert step.batches == WORLD
        assert sum(1 for _ in step) == WORLD
        assert list(step) == []


def test_what_a_loop_leaves_of_a_step_is_passed_over(ranked):
    assert [next(step).index for step in ranked(1).steps_of()] == [0, 4, 8, 12]


@pytest.mark.parametrize("others", [1, 2, 4])
def test_a_checkpoint_between_steps_goes_on_with_any_number_of_ranks(ranked, others):
    dataset = ranked(2)
    for step in dataset.steps_of(2):
        if places(step)[0][0] == 1:
            break
    state = dataset.state_dict()
    assert (state["step"], state["done"]) == (2, 0)
    other = ranked(others)
    other.load_state_dict(state)
    assert [places(step)[0][0] for step in other.steps_of(others)] == [2, 3]


def test_a_step_that_is_looked_at_is_not_handed_out(ranked):
    """The state between the step and its first batch is that of the step's start."""
    dataset = ranked(1)
    for number, step in enumerate(dataset.steps_of()):
        state = dataset.state_dict()
        assert (state["step"], state["done"]) == (number, 0)
        assert len(places(step)) == WORLD


def test_a_checkpoint_within_a_step_goes_on_there(ranked):
    dataset = ranked(1)
    next(next(dataset.steps_of()))
    other = ranked(1)
    other.load_state_dict(dataset.state_dict())
    first, second, *_ = map(places, other.steps_of())
    assert first == [(0, 1), (0, 2), (0, 3)]
    assert len(second) == WORLD


def test_a_rehearsal_is_a_step_of_its_own(ranked):
    rehearsed = ranked(1, worst_first=2).steps_of()
    assert [sum(1 for _ in step) for step in rehearsed] == [1, 1] + [WORLD] * STEPS


def test_epochs_follow_each_other_and_end(ranked):
    dataset = ranked(1, epochs=2)
    for epoch in range(2):
        assert {batch.epoch for step in dataset.steps_of() for batch in step} == {epoch}
    with pytest.warns(RuntimeWarning, match="all are over"):
        assert list(dataset.steps_of()) == []


def test_another_number_of_ranks_is_refused(ranked):
    with pytest.raises(batchwright.InvalidArgumentError, match=r"steps_of\(4\), and 2 share"):
        ranked(2).steps_of(4)


def test_an_older_iterator_of_steps_is_refused(ranked):
    dataset = ranked(1)
    older = dataset.steps_of()
    step = next(older)
    dataset.set_epoch(1)
    for ask in (lambda: next(step), lambda: next(older)):
        with pytest.raises(batchwright.ClosedError, match=r"set_epoch\(1\)"):
            ask()


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_weight_by_sequence_gives_the_steps_mean(serve, ranks):
    """Batches of different numbers of sequences; each sequence's loss is its number."""
    daemon = serve(world=WORLD, cut="dynamic", size=3)
    weighed, numbers = {}, {}
    for rank in range(ranks):
        with BatchDataset(daemon.endpoint, rank=rank, ranks=ranks) as dataset:
            for step in dataset.steps_of(ranks):
                for batch in step:
                    losses = batch.ordinals.astype(float)
                    share = losses.mean() * batch.sequence_weight / step.batches / ranks
                    weighed[batch.step] = weighed.get(batch.step, 0.0) + share
                    numbers.setdefault(batch.step, []).extend(losses)
                    assert batch.to("cpu").sequence_weight > 0
    assert len(weighed) > 1
    for step, found in weighed.items():
        assert found == pytest.approx(np.mean(numbers[step]))


def test_an_interrupt_within_a_step_loses_no_batch_to_another_step(ranked):
    """The loop over a step that was interrupted goes on there, and ends with it."""
    dataset = ranked(1)
    steps = dataset.steps_of()
    next(steps)
    step = next(steps)
    assert next(step).index == 4
    with pytest.raises(KeyboardInterrupt):
        for batch in step:
            raise KeyboardInterrupt
    assert [batch.index for batch in step] == [6, 7]
    assert places(next(steps))[0] == (2, 8)
    assert list(step) == []


# ---- the same epoch every time ------------------------------------------------------------------

def test_the_third_pass_of_an_epoch_gives_a_warning_once(dataset):
    for time in range(5):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            dataset.set_epoch(0)
        assert sum(1 for _ in dataset) == WORLD * STEPS
        assert [str(each.message).startswith("batchwright: set_epoch(0) begins epoch 0 once more")
                for each in given] == [True] * (time == 2)


@pytest.mark.parametrize("epochs, options", [
    ([0, 1, 2, 3], {}), ([0, 0, 1, 1], {}), ([0, 1, 0, 1, 0, 1], {}), ([0, 0, 0, 0], {"whole": True})])
def test_other_uses_give_none(daemon, epochs, options):
    with BatchDataset(daemon.endpoint, **options) as dataset, warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in epochs:
            dataset.set_epoch(epoch)
            for _ in dataset:
                pass


def test_naming_an_epoch_again_before_its_loop_gives_none(dataset):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            dataset.set_epoch(0)
            next(iter(dataset))
