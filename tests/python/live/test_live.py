"""Live feeds: sequences are pushed while a trainer reads them."""

import threading

import batchwright
import numpy
import pytest
import served
from batchwright._copied import CopiedBatch

LIVE = """
[[feed]]
name = "rollouts"
pool = "4MiB"
[feed.fields]
tokens = { dtype = "int32" }
logprobs = { dtype = "float32", kind = "aligned" }
reward = { dtype = "float32", kind = "scalar" }
[feed.plan]
world = 2
cut = "dynamic"
[feed.live]
step = { sequences = 8 }
max_length = 64
max_staleness = 2
groups = "step"
linger = "never"
"""
SIZE = 4  # of a group
OF_ROWS = ("versions", "versions_newest", "groups", "weights", "numbers", "epochs", "producers")
LANES = """
[[feed]]
name = "lanes"
pool = "4MiB"
fields = { x = { dtype = "float32" }, speaker = { dtype = "int32", kind = "scalar" } }
live = { step = { lanes = 3, unroll = 4 } }
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, stored):
    daemon = served.Daemon(tmp_path_factory.mktemp("live"), stored, plan=LIVE + LANES).start()
    yield daemon.endpoint
    daemon.stop()


def tokens_of(number):
    return (number * 100 + numpy.arange(number % 20 + 1)).astype(numpy.int32)


def push_groups(out, groups, pushed):
    for _ in range(groups):
        claim = out.claim(SIZE, timeout=served.SECONDS)
        group = out.group(SIZE)
        for _ in range(SIZE):
            tokens = tokens_of(len(pushed))
            halves = (tokens / 2).astype(numpy.float32)
            number = out.push(tokens=tokens, logprobs=halves, reward=len(pushed),
                              version=claim.version, group=group)
            pushed.append(number)


def test_a_trainer_reads_what_a_producer_pushes(endpoint):
    from batchwright.torch import BatchDataset
    pushed, seen, copies = [], {}, []

    def produce():
        with batchwright.connect(endpoint) as connection:
            with connection.live("rollouts").producer("actor") as out:
                push_groups(out, 20, pushed)

    producer = threading.Thread(target=produce)
    producer.start()
    with BatchDataset(endpoint, "rollouts", timeout=served.SECONDS) as dataset:
        with pytest.raises(batchwright.UnsupportedError, match="live"):
            len(dataset)
        version = 0
        for batch in dataset:
            assert max(batch.live_version - batch.versions) <= 2
            for row, number in enumerate(batch.numbers):
                length = int(batch.lengths[row])
                assert (batch["tokens"][row][:length] == tokens_of(int(number))).all()
                assert (batch["logprobs"][row][:length] * 2 == tokens_of(int(number))).all()
                assert batch["reward"][row] == number
                assert batch.producers[row] == "actor"
                seen.setdefault(int(batch.groups[row]), []).append((batch.step, int(number)))
            copies.append((CopiedBatch(batch), {name: list(getattr(batch, name)) for name in OF_ROWS}))
            if batch.index % 2 == 1:
                version += 1
                dataset.advance(version)
            if sum(len(rows) for rows in seen.values()) == 80:
                break
    producer.join(served.SECONDS)
    assert pushed == list(range(80))
    for copy, said in copies:  # what they are copies of has gone back
        assert {name: list(getattr(copy, name)) for name in OF_ROWS} == said
        assert list(copy.lengths) and copy["reward"].shape == (len(said["numbers"]),)
    for rows in seen.values():  # no group is torn
        assert len(rows) == SIZE and len({step for step, _ in rows}) == 1


def test_the_state_of_a_lane_goes_on_from_step_to_step(endpoint):
    from batchwright.torch import BatchDataset
    sequences = [numpy.arange(length, dtype=numpy.float32) + 100 * number
                 for number, length in enumerate([9, 3, 14, 1, 4, 8, 2, 5])]
    with batchwright.connect(endpoint) as connection:
        feed = connection.live("lanes")
        with feed.producer("actor") as out:
            for number, x in enumerate(sequences):
                out.push(x=x, speaker=number, version=0)
        feed.end()
    states, sums, sizes = numpy.zeros(3), {}, set()
    with BatchDataset(endpoint, "lanes", timeout=served.SECONDS) as dataset:
        for batch in dataset:
            assert batch["x"].shape[0] == 3 and batch["x"].shape[1] <= 4
            for lane, flags in enumerate(batch.flags):
                length = int(batch.lengths[lane])
                sizes.add(length)
                if length == 0:
                    assert batch.producers[lane] == "" and flags == 0
                    continue
                assert bool(flags & 1) == (batch.starts[lane] == 0)
                state = 0 if flags & 1 else states[lane]
                states[lane] = state + batch["x"][lane][:length].sum()
                if flags & 2:
                    assert batch["speaker"][lane] == batch.numbers[lane]
                    sums[int(batch.numbers[lane])] = states[lane]
    assert sums == {number: x.sum() for number, x in enumerate(sequences)}
    assert {0, 4} <= sizes


def test_a_trainer_that_starts_again_at_its_mark_gets_the_same_steps(endpoint):
    from batchwright.torch import BatchDataset

    def produce():
        with batchwright.connect(endpoint) as connection:
            with connection.live("rollouts").producer("marked") as out:
                push_groups(out, 8, [])

    def take(dataset, from_index, batches):
        for batch in dataset:
            if batch.index >= from_index:
                batches[batch.index] = list(batch.numbers), list(batch.epochs)
            if len(batches) == 4: break
            yield batch

    producer = threading.Thread(target=produce)
    producer.start()
    first, again, state = {}, {}, None
    with BatchDataset(endpoint, "rollouts", timeout=served.SECONDS) as dataset:
        for batch in dataset:
            if batch.index % 2 == 1:
                dataset.keep_from(batch.step + 1)
                state, after = dataset.state_dict(), batch.index + 1
                break
        for _ in take(dataset, after, first): pass
    with BatchDataset(endpoint, "rollouts", timeout=served.SECONDS) as dataset:
        dataset.load_state_dict(state)
        for _ in take(dataset, 0, again): pass
        with pytest.raises(batchwright.Error, match="step"):
            dataset.keep_from(-1)
    producer.join(served.SECONDS)
    assert again == first and sorted(first) == list(range(after, after + 4))
    assert all(epochs == [0] * len(numbers) for numbers, epochs in first.values())


def test_what_does_not_fit_the_fields_is_refused_before_it_is_sent(endpoint):
    tokens = numpy.arange(5, dtype=numpy.int32)
    nothing = numpy.full(5, numpy.nan, numpy.float32)
    with batchwright.connect(endpoint) as connection:
        feed = connection.live("rollouts")
        assert [field.name for field in feed.fields] == ["tokens", "logprobs", "reward"]
        with feed.producer() as out:
            for wrong in (dict(tokens=tokens), dict(tokens=tokens, logprobs=tokens[:4], reward=1),
                          dict(tokens=numpy.arange(65, dtype=numpy.int32),
                               logprobs=numpy.zeros(65, numpy.float32), reward=1),
                          dict(tokens=tokens, logprobs=nothing, reward=1)):
                with pytest.raises(batchwright.Error):
                    out.push(version=0, group=out.group(SIZE), **wrong)
            assert sum(out.outcomes().values()) == 0


def test_a_feed_of_a_dataset_is_not_live(endpoint):
    with batchwright.connect(endpoint) as connection:
        with pytest.raises(batchwright.Error, match="has a dataset"):
            connection.live("train").producer("actor")
