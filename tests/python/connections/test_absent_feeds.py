"""A feed that is configured, and whose data are not there yet: it is found, and waited for."""

import os
import shutil
import threading
import time
import warnings

import pytest
from torch.utils.data import DataLoader

import batchwright
import served
from batchwright.torch import BatchDataset

BATCHES = 15


@pytest.fixture
def late(serve, tmp_path):
    """A daemon whose only feed has no dataset."""
    return serve(dataset=tmp_path / "late")


@pytest.fixture
def arrival(late, stored):
    """Lets the dataset come, once somebody waits for it."""
    def come():
        served.eventually(lambda: "waits for the feed" in late.log.read_text(), "somebody to wait")
        os.symlink(stored, late.dataset)

    thread = threading.Thread(target=come)
    thread.start()
    yield
    thread.join()


def test_it_is_found_and_says_what_is_missing(late):
    with batchwright.connect(late.endpoint, timeout=0.5) as connection:
        assert connection.feeds == {}
        assert list(connection.absent) == ["train"]
        assert str(late.dataset) in connection.absent["train"]
        feed = connection.feed("train")
        assert feed.name == "train"
        assert "not served" in repr(feed)
        with pytest.raises(batchwright.NotFoundError,
                           match=f'no feed "x"; it has "train", not served .*{late.dataset}'):
            connection.feed("x")


@pytest.mark.parametrize("ask", [
    lambda feed: feed.subscribe(), lambda feed: feed.fields, lambda feed: feed.field("label"),
    lambda feed: feed.world, lambda feed: feed.layout, lambda feed: feed.sequences,
    lambda feed: next(iter(feed)), lambda feed: next(feed.epoch(0)),
    lambda feed: feed.subscribe(mode="queue"),
    lambda feed: BatchDataset(connection=feed._connection, labels=["even", "odd"]),
    lambda feed: next(iter(BatchDataset(connection=feed._connection))),
    lambda feed: len(BatchDataset(connection=feed._connection)),
    lambda feed: BatchDataset(connection=feed._connection).steps(1),
    lambda feed: BatchDataset(connection=feed._connection).load_state_dict(
        BatchDataset(connection=feed._connection).state_dict()),
    lambda feed: next(iter(DataLoader(BatchDataset(connection=feed._connection), batch_size=None)))])
def test_each_way_to_it_ends_with_the_callers_limit_and_the_daemons_reason(late, ask):
    with batchwright.connect(late.endpoint, timeout=0.3) as connection:
        started = time.monotonic()
        with pytest.raises(batchwright.Error, match=f"train is not served: .*{late.dataset}"):
            ask(connection.feed("train"))
        assert 0.3 <= time.monotonic() - started < served.SECONDS


@pytest.mark.parametrize("ask, wanted", [
    (lambda feed: sum(1 for _ in feed.epoch(0)), BATCHES),
    (lambda feed: feed.sequences, served.SEQUENCES),
    (lambda feed: [each.name for each in feed.fields], ["features", "label", "text"]),
    (lambda feed: len(BatchDataset(connection=feed._connection)), BATCHES),
    (lambda feed: BatchDataset(connection=feed._connection).steps(2), 2 * BATCHES),
    (lambda feed: sum(1 for _ in DataLoader(BatchDataset(connection=feed._connection),
                                            batch_size=None)), BATCHES)])
def test_each_way_to_it_goes_on_when_the_data_come(late, arrival, ask, wanted):
    with batchwright.connect(late.endpoint, timeout=served.SECONDS) as connection:
        assert ask(connection.feed("train")) == wanted


@pytest.mark.parametrize("ask", [
    lambda feed: feed.subscribe(), lambda feed: feed.fields,
    lambda feed: len(BatchDataset(connection=feed._connection)),
    lambda feed: next(iter(BatchDataset(connection=feed._connection)))])
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_wait_of_a_second_has_the_daemons_reason_as_a_warning(late, ask, in_thread):
    failed = []

    def wait():
        try:
            with batchwright.connect(late.endpoint, timeout=1.5) as connection:
                ask(connection.feed("train"))
        except batchwright.Error as error:
            failed.append(str(error))

    words = f'feed "train" is not served, and is waited for: .*{late.dataset} does not exist'
    with pytest.warns(RuntimeWarning, match=words) as given:
        if in_thread:
            waiting = threading.Thread(target=wait)
            waiting.start()
            waiting.join()
        else:
            wait()
    assert len(given) == 1
    assert given[0].filename == __file__, "it is given at the line that called the package"
    assert [f"{late.dataset} does not exist" in each for each in failed] == [True]


def test_a_feed_that_is_absent_since_then_is_warned_of_too(serve, tmp_path, stored):
    """It was served when the connection was made."""
    shutil.copytree(stored, tmp_path / "there")
    daemon = serve(dataset=tmp_path / "there")
    with batchwright.connect(daemon.endpoint, timeout=1.5) as connection:
        feed = connection.feed("train")
        daemon.stop()
        os.rename(tmp_path / "there", tmp_path / "away")
        daemon.start()
        with pytest.warns(RuntimeWarning, match="is waited for: .*there does not exist"):
            with pytest.raises(batchwright.Error, match="there does not exist"):
                feed.subscribe()


def test_a_warning_that_is_an_error_ends_the_wait(late):
    with batchwright.connect(late.endpoint, timeout=served.SECONDS) as connection:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="is waited for"):
                connection.feed("train").subscribe()
