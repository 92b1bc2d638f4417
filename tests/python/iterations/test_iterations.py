"""Where an iteration begins, and which iterator is valid: over datasets and DataLoaders."""

import itertools
import warnings
import weakref

import pytest
from torch.utils.data import DataLoader

import batchwright
from batchwright.torch import BatchDataset
from epochs import STEPS, WHOLE, place, rest


def plain(dataset):
    return dataset


def loader(dataset):
    return DataLoader(dataset, batch_size=None)


@pytest.fixture(params=[plain, loader])
def loop(request):
    return request.param


@pytest.fixture(autouse=True)
def no_warnings():
    """Whatever is not said on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---- where one begins -----------------------------------------------------------------------------


def test_a_look_before_the_loop_costs_nothing(dataset, loop):
    sample = next(iter(loop(dataset)))
    assert sample["features"].shape[-1] == 4
    del sample
    next(iter(loop(dataset))).release()
    assert rest(loop(dataset)) == WHOLE[:STEPS]
    assert next(iter(loop(dataset))).index == 0
    assert rest(loop(dataset)) == WHOLE[STEPS:2 * STEPS]


@pytest.mark.parametrize("worst_first", [0, 2])
def test_a_look_leaves_rehearsals_for_the_loop(daemon, worst_first):
    with BatchDataset(daemon.endpoint, worst_first=worst_first) as dataset:
        for _ in range(2):
            assert next(iter(dataset)).rehearsal == bool(worst_first)
        dataset.set_epoch(0)
        assert [batch.rehearsal for batch in dataset] == [True] * worst_first + [False] * STEPS
        assert not next(iter(dataset)).rehearsal


def test_a_slice_is_the_same_each_time(dataset, loop):
    with pytest.warns(RuntimeWarning, match="anew") as told:
        for _ in range(4):
            assert rest(itertools.islice(loop(dataset), 3)) == WHOLE[:3]
    assert len(told) == 1


def test_an_epoch_that_begins_anew_is_told_once_with_what_to_write(dataset, loop):
    batches = loop(dataset)
    rest(itertools.islice(batches, 5))
    with pytest.warns(RuntimeWarning, match=r"begins epoch 0 anew, .* handed out 5 batches.* "
                                            r"resume\(\).* set_epoch\(\)") as told:
        assert next(iter(batches)).index == 0
    assert [each.filename for each in told] == [__file__]
    rest(itertools.islice(batches, 5))
    assert next(iter(batches)).index == 0


def test_an_epoch_that_is_set_begins_anew_without_a_word(dataset, loop):
    for _ in range(2):
        rest(itertools.islice(loop(dataset), 5))
        dataset.set_epoch(0)
    assert rest(loop(dataset)) == WHOLE[:STEPS]


def test_resume_goes_on_where_a_loop_was_left(dataset, loop):
    batches = loop(dataset)
    for end in (5, 6, 6 + STEPS):
        with_ends = []
        while len(with_ends) < end - dataset.state_dict()["step"] - dataset.epoch * STEPS:
            with_ends += rest(itertools.islice(batches, end - dataset.state_dict()["step"]))
            dataset.resume()
        assert dataset.resume() is dataset
    assert next(iter(dataset.resume())).epoch == 1


def test_resume_before_the_first_batch_and_behind_an_epoch_changes_nothing(dataset, loop):
    dataset.resume()
    assert rest(loop(dataset)) == WHOLE[:STEPS]
    dataset.resume()
    dataset.set_epoch(1)
    assert rest(loop(dataset)) == WHOLE[STEPS:2 * STEPS]


@pytest.mark.parametrize("go", [lambda dataset: dataset.resume(),
                                lambda dataset: dataset.load_state_dict(dataset.state_dict())],
                         ids=["resume", "load_state_dict"])
def test_a_place_within_an_epoch_is_kept_by_its_first_set_epoch(dataset, loop, go):
    rest(itertools.islice(loop(dataset), 4))
    go(dataset)
    assert next(iter(loop(dataset))).index == 4  # a look
    dataset.set_epoch(0)
    assert next(iter(loop(dataset))).index == 4
    dataset.set_epoch(0)
    assert next(iter(loop(dataset))).index == 0


def test_an_epoch_whose_batches_were_all_handed_out_is_over(dataset, loop):
    """Trainers that know the length do not ask for the end."""
    subscriptions = set()
    for epoch in range(3):
        batches = iter(loop(dataset))
        assert [place(next(batches)) for _ in range(len(dataset))] == WHOLE[epoch * STEPS:][:STEPS]
        subscriptions.add(id(dataset._stream.subscription))
        del batches
    dataset.set_epoch(3)
    assert rest(loop(dataset)) == WHOLE[3 * STEPS:]
    assert len(subscriptions) == 1  # epochs follow each other without a pause


def test_an_iterator_that_is_not_used_costs_nothing(dataset):
    rest(dataset)
    for _ in range(3):
        iter(dataset)
    assert dataset.epoch == 1
    assert rest(dataset) == WHOLE[STEPS:2 * STEPS]


def test_an_iterator_goes_on_behind_an_error(daemon):
    with BatchDataset(daemon.endpoint, window=2, timeout=0.2) as dataset:
        batches = iter(dataset)
        held = [next(batches), next(batches)]
        for _ in range(2):
            with pytest.raises(batchwright.TimedOutError):
                next(batches)
        for batch in held:
            batch.release()
        assert rest(batches) == WHOLE[2:STEPS]


def test_a_batch_that_was_looked_at_is_let_go_with_the_next_iteration(dataset):
    sample = next(iter(dataset))
    kept = weakref.ref(sample)
    del sample
    iter(dataset)
    assert kept() is None


# ---- which iterator is valid ----------------------------------------------------------------------


def newer(dataset):
    iter(dataset)


def set_epoch(dataset):
    dataset.set_epoch(2)


def set_same_epoch(dataset):
    dataset.set_epoch(0)


def load(dataset):
    dataset.load_state_dict(dataset.state_dict())


def resume(dataset):
    dataset.resume()


def close(dataset):
    dataset.close()


@pytest.mark.parametrize("change, words", [
    (newer, "a newer one"), (set_epoch, r"set_epoch\(2\)"), (set_same_epoch, r"set_epoch\(0\)"),
    (load, r"load_state_dict\(\)"), (resume, r"resume\(\)"), (close, r"close\(\)")])
@pytest.mark.parametrize("taken", [0, 1, STEPS])
def test_an_older_iterator_says_what_ended_it(dataset, loop, change, words, taken):
    batches = iter(loop(dataset))
    for _ in range(taken):
        next(batches)
    change(dataset)
    for _ in range(2):
        with pytest.raises(batchwright.ClosedError, match=f"ended with {words}") as caught:
            next(batches)
        assert isinstance(caught.value, RuntimeError)


def test_an_iterator_that_came_to_its_end_stays_there(dataset):
    for change in (newer, set_same_epoch, load, resume, close):
        dataset.set_epoch(0)
        batches = iter(dataset)
        rest(batches)
        change(dataset)
        assert next(batches, "the end") == "the end"


class Model:
    """What a dataset is to do, in the numbers of the batches of all epochs."""

    def __init__(self):
        self.start = self.at = 0
        self.kept = self.taken = self.closed = False
        self.iterators = []  # valid ones have a name

    def due(self):
        over = self.at > self.start and self.at % STEPS == 0
        return self.at if over else self.start

    def begin(self, at):
        self.start = self.at = at
        self.iterators = [False] * len(self.iterators)
        self.taken = False

    def iter(self):
        if self.taken:
            self.begin(self.due())
        self.taken = True
        self.iterators.append(True)

    def next(self):
        self.at += 1

    def set_epoch(self, epoch):
        due = self.due()
        stays = due // STEPS == epoch and (self.kept or due % STEPS == 0)
        self.kept = False
        self.begin(due if stays else epoch * STEPS)

    def go_on(self):
        self.begin(self.at)
        self.kept = True


def step_iter(dataset, model, iterators):
    iterators.append(iter(dataset))
    model.iter()


def step_next(dataset, model, iterators):
    if not model.taken or not any(model.iterators):
        step_iter(dataset, model, iterators)
    assert place(next(iterators[-1])) == WHOLE[model.at]
    model.next()


def step_set_epoch(dataset, model, iterators, epoch=1):
    dataset.set_epoch(epoch)
    model.set_epoch(epoch)


def step_set_this_epoch(dataset, model, iterators):
    step_set_epoch(dataset, model, iterators, dataset.epoch)


def step_load(dataset, model, iterators):
    dataset.load_state_dict(dataset.state_dict())
    model.go_on()


def step_resume(dataset, model, iterators):
    dataset.resume()
    model.go_on()


def step_close(dataset, model, iterators):
    dataset.close()
    model.iterators = [False] * len(model.iterators)
    model.closed = True


def step_break(dataset, model, iterators):
    step_iter(dataset, model, iterators)
    for batch in iterators[-1]:
        assert place(batch) == WHOLE[model.at]
        model.next()
        break


def step_exhaust(dataset, model, iterators):
    step_iter(dataset, model, iterators)
    end = (model.at // STEPS + 1) * STEPS
    assert rest(iterators[-1]) == WHOLE[model.at:end]
    model.at = end
    iterators.pop()  # it is at its end, whatever follows
    model.iterators.pop()


EACH = [step_iter, step_next, step_set_epoch, step_set_this_epoch, step_load, step_resume, step_close,
        step_break, step_exhaust]


@pytest.mark.filterwarnings("ignore:.*anew")
@pytest.mark.parametrize("first", EACH)
@pytest.mark.parametrize("second", EACH)
def test_any_two_steps_with_an_older_iterator_kept(dataset, first, second):
    """Everything is compared with the model: which iterators are valid, where each goes on, where
    the next one begins, and what a checkpoint goes on with."""
    model, iterators = Model(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in (step_next, step_next, first, second):
            if model.closed:
                return expect_closed(dataset, model, iterators)
            step(dataset, model, iterators)
            assert dataset.epoch == model.at // STEPS or model.at % STEPS == 0
        if model.closed:
            return expect_closed(dataset, model, iterators)
        state, at = dataset.state_dict(), model.at
        for iterator, valid in list(zip(iterators, model.iterators)):
            if not valid:
                with pytest.raises(batchwright.ClosedError):
                    next(iterator)
            elif at % STEPS != 0 or at == model.start:
                assert place(next(iterator)) == WHOLE[model.at]
                model.next()
        step_iter(dataset, model, iterators)
        end = (model.at // STEPS + 1) * STEPS
        assert rest(iterators[-1]) == WHOLE[model.at:end]
        dataset.load_state_dict(state)
        assert rest(dataset) == WHOLE[at:(at // STEPS + 1) * STEPS]


def expect_closed(dataset, model, iterators):
    for iterator in iterators:
        with pytest.raises(batchwright.ClosedError, match="ended with"):
            next(iterator)
    with pytest.raises(batchwright.ClosedError, match="this dataset was closed"):
        iter(dataset)
    assert dataset.state_dict()["epoch"] * STEPS + dataset.state_dict()["step"] == model.at


# ---- subscriptions --------------------------------------------------------------------------------


WAYS = {"iter": iter, "epoch": lambda subscription: subscription.epoch()}


@pytest.mark.parametrize("mode", ["replica", "queue"])
@pytest.mark.parametrize("first", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("second", WAYS.values(), ids=WAYS)
def test_of_a_subscriptions_iterators_the_latest_goes_on(serve, tmp_path, mode, first, second):
    daemon = serve(feed=f'journal = "{tmp_path}/journal"')
    with batchwright.connect(daemon.endpoint) as connection:
        with connection.feed("train").subscribe(mode=mode, epochs=1) as subscription:
            older = first(subscription)
            assert [next(older).index for _ in range(3)] == [0, 1, 2]
            newer = second(subscription)
            for _ in range(2):
                with pytest.raises(batchwright.ClosedError, match="ended with a newer one"):
                    next(older)
            assert next(newer).index == 3
            with pytest.raises(batchwright.ClosedError, match="ended with a newer one"):
                next(older)
            del older
            assert next(newer).index == 4
            latest = first(subscription)
            del newer
            assert next(latest).index == 5


def test_an_iterator_that_came_to_its_end_stays_there(serve):
    with batchwright.connect(serve().endpoint) as connection:
        with connection.feed("train").subscribe(epochs=2) as subscription:
            first = subscription.epoch()
            assert [batch.epoch for batch in first] == STEPS * [0]
            second = subscription.epoch()
            assert next(first, None) is None
            assert [batch.epoch for batch in second] == STEPS * [1]


def test_loops_over_subscriptions_of_their_own_go_side_by_side(serve):
    with batchwright.connect(serve().endpoint) as connection:
        feed = connection.feed("train")
        pairs = [(one.index, other.index) for one, other in zip(feed.epoch(0), feed.epoch(0))]
    assert pairs == [(index, index) for index in range(STEPS)]
