"""A live feed that joins the rows of a dataset's feed to what is pushed."""

import batchwright
import numpy
import pytest
import served
from batchwright._copied import CopiedBatch

# Whether the recipe draws right is not asked here: only that it draws the same once more.
RECIPE = """
[feed.features]
spec_augment = true
time_masks = 2
time_width = 3
freq_masks = 1
freq_width = 2
keep_one_of = 2
keep_offset = "random"
"""
LIVE = """
[[feed]]
name = "examples"
pool = "1MiB"
[feed.fields]
derivatives = { dtype = "float32", shape = [3] }
features = { dtype = "float32", shape = [4], kind = "aligned" }
loss = { dtype = "float32", kind = "scalar" }
label = { dtype = "int32", kind = "scalar" }
text = { dtype = "uint8", kind = "independent" }
[feed.live]
step = { sequences = 6 }
max_length = 64
join = { from = "train", fields = ["text", "features", "label"] }
"""
PLANS = {"stored": ("", ""), "recipe": ("", RECIPE), "chunks": ("chunk = 7", RECIPE),
         "lanes": ("lanes = 4\nunroll = 5", RECIPE)}


@pytest.fixture(params=PLANS, scope="module")
def endpoint(request, tmp_path_factory, stored):
    plan, recipe = PLANS[request.param]
    size = 16 if "lanes" in plan else 4  # with lanes the default, which decides nothing
    lines = f"{plan}\n{recipe}{LIVE}"
    daemon = served.Daemon(tmp_path_factory.mktemp("joins"), stored, plan=lines, size=size).start()
    yield daemon.endpoint
    daemon.stop()


def derivatives_of(row, length):
    """Different for each row, and each frame of it."""
    first = row.epoch * 10000 + row.ordinal * 100 + row.start
    return numpy.arange(first, first + 3 * length, dtype=numpy.float32).reshape(length, 3)


def rows_of(batch):
    """What a batch has of each row that has frames: all fields but what is padding."""
    texts = batch.tensor("text").lengths
    for i, length in enumerate(batch.lengths):
        if length:
            yield i, (batch["features"][i, :length].tobytes(), int(batch["label"][i]),
                      batch["text"][i, :texts[i]].tobytes())


def push_rows(subscription, out, batches):
    """Pushes something for each row of so many batches, one by one and together in turns; what the
    batches had, by key."""
    had = {}
    for number in range(batches):
        with subscription.next(timeout=served.SECONDS) as batch:
            keys, named, given = [], [], []
            for i, row in rows_of(batch):
                of, length = batch.row(i), int(batch.lengths[i])
                keys.append(f"{of.epoch}/{of.ordinal}/{of.start}")
                had[keys[-1]] = (length, of, row)
                named.append(of)
                given.append({"derivatives": derivatives_of(of, length), "loss": float(length)})
        if number % 2:
            assert len(out.push_many(given, keys=keys, of=named)) == len(given)
            continue
        for values, key, of in zip(given, keys, named):
            out.push(values, key=key, of=of)
    return had


def test_rows_are_joined_bit_for_bit_as_their_feed_delivers_them(endpoint):
    with batchwright.connect(endpoint) as connection:
        train, live = connection.feed("train"), connection.live("examples")
        assert [field.name for field in live.fields] == ["derivatives", "loss"]
        assert live.limits.joins == "train"
        assert [field.name for field in live.feed.fields] == [
            "derivatives", "loss", "features", "label", "text"]
        had, seen = {}, 0
        with live.feed.subscribe(timeout=served.SECONDS) as trainer, live.producer("server") as out:
            for epoch in (0, 3):
                with train.subscribe(epoch=epoch, timeout=served.SECONDS) as subscription:
                    had.update(push_rows(subscription, out, 5))
                while len(had) >= 6:
                    with trainer.next(timeout=served.SECONDS) as batch:
                        for i, row in rows_of(batch):
                            length, of, wanted = had.pop(batch.keys[i])
                            assert row == wanted
                            assert batch.lengths[i] == length == batch["loss"][i]
                            assert (batch["derivatives"][i, :length] ==
                                    derivatives_of(of, length)).all()
                            seen += 1
        assert seen >= 12


@pytest.fixture
def joining(serve):
    return serve(plan=RECIPE + LIVE)


def one_row(connection):
    with connection.feed("train").subscribe(timeout=served.SECONDS) as subscription:
        with subscription.next(timeout=served.SECONDS) as batch:
            row = batch.row(numpy.int64(0))
            assert CopiedBatch(batch).row(0) == row
            return row, int(batch.lengths[0])


def test_a_row_that_is_none_is_refused_and_the_producer_goes_on(joining):
    with batchwright.connect(joining.endpoint) as connection:
        of, length = one_row(connection)
        with connection.live("examples").producer() as out:
            def push(of, frames=length):
                return out.push(derivatives=numpy.zeros((frames, 3), "float32"), loss=0, of=of)

            with pytest.raises(batchwright.InvalidArgumentError, match='names no row .*"train"'):
                push(None)
            with pytest.raises(batchwright.InvalidArgumentError, match='row of feed "examples"'):
                push(of._replace(feed="examples"))
            with pytest.raises(batchwright.InvalidArgumentError, match="is batch.row"):
                push((0, 1))
            with pytest.raises(batchwright.InvalidArgumentError, match="row 60 .*below 60"):
                push(of._replace(ordinal=60))
            with pytest.raises(batchwright.SchemaMismatchError, match="lie before them"):
                push(of, length + 1)
            with pytest.raises(batchwright.SchemaMismatchError, match="lie before them"):
                push(of._replace(start=(1 << 32) - 1))
            data, settings, seed = of.fingerprint.split("-")
            other = "-".join((data, settings[::-1], seed))
            with pytest.raises(batchwright.FingerprintMismatchError, match=of.fingerprint):
                push(of._replace(fingerprint=other))
            with pytest.raises(batchwright.NotFoundError):
                connection.feed("train").subscribe().next(timeout=served.SECONDS).row(999)
            assert push(of) == 0


def test_what_is_accepted_outlives_its_feeds_settings(joining):
    with batchwright.connect(joining.endpoint) as connection:
        of, length = one_row(connection)
        live = connection.live("examples")
        with live.producer() as out:
            for _ in range(3):
                out.push(derivatives=numpy.zeros((length, 3), "float32"), loss=0, of=of)
            text = joining.config.read_text()
            joining.config.write_text(text.replace("time_masks = 2", "time_masks = 1"))
            joining.process.send_signal(served.signal.SIGHUP)
            served.eventually(lambda: "replaced train" in joining.log.read_text(), "the reload")
            with pytest.raises(batchwright.FingerprintMismatchError):
                out.push(derivatives=numpy.zeros((length, 3), "float32"), loss=0, of=of)
            other, longer = one_row(batchwright.connect(joining.endpoint))
            for _ in range(3):
                out.push(derivatives=numpy.zeros((longer, 3), "float32"), loss=1, of=other)
        with live.feed.subscribe(timeout=served.SECONDS) as trainer:
            with trainer.next(timeout=served.SECONDS) as batch:
                assert sorted(batch["loss"]) == [0, 0, 0, 1, 1, 1]
