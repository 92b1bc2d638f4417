import gc
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "client" / "python"))

import served  # noqa: E402


@pytest.fixture(autouse=True)
def no_garbage():
    """An exception that a test has caught holds the test's batches, in a cycle: without a
    collection they would occupy the daemon's slots during the next tests."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    return served.make_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture
def serve(tmp_path, stored):
    """Starts a daemon with these settings; it is stopped with the test."""
    running = []

    def start(**settings):
        folder = tmp_path / str(len(running))
        folder.mkdir()
        running.append(served.Daemon(folder, settings.pop("dataset", stored), **settings))
        return running[-1].start()

    yield start
    for daemon in running:
        daemon.stop()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, stored):
    """One daemon for all tests of a file that need nothing special of it."""
    running = served.Daemon(tmp_path_factory.mktemp("daemon"), stored).start()
    yield running
    running.stop()


@pytest.fixture
def connection(daemon):
    import batchwright
    with batchwright.connect(daemon.endpoint) as made:
        yield made


@pytest.fixture
def feed(connection):
    return connection.feed("train")


@pytest.fixture
def subscription(feed):
    with feed.subscribe(window=served.WINDOW, timeout=served.SECONDS) as made:
        yield made


@pytest.fixture
def dataset(daemon, monkeypatch):
    from batchwright.torch import BatchDataset
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with BatchDataset(daemon.endpoint, timeout=served.SECONDS) as made:
        yield made
