"""Loops that hold one batch while they wait for the next, and meet at a barrier after each step,
as trainers do at a collective: they never stand still, or are refused when they begin."""

import threading

import pytest
import served

import batchwright

EPOCHS = 2  # so that an epoch's end is among the steps
BARRIER_SECONDS = 30


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return served.make_dataset(tmp_path_factory.mktemp("large"), sequences=320)


class Job:
    """Loops in threads, with a connection each."""

    def __init__(self, daemon, loops, at_barrier=True):
        self.daemon, self.loops = daemon, loops
        self.barrier = threading.Barrier(len(loops)) if at_barrier else None
        self.taken, self.failures = [0] * len(loops), []

    def run(self):
        threads = [threading.Thread(target=self._work, args=each) for each in enumerate(self.loops)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.failures, self.failures[0]
        return self.taken

    def _work(self, number, loop):
        try:
            with batchwright.connect(self.daemon.endpoint) as connection:
                for batch in loop(connection):
                    batch["features"].sum()
                    self.taken[number] += 1
                    if self.barrier is not None:
                        self.barrier.wait(BARRIER_SECONDS)
        except threading.BrokenBarrierError:
            self.failures.append("a barrier is not reached")
        except Exception as error:  # told by run()
            self.failures.insert(0, error)
            if self.barrier is not None:
                self.barrier.abort()


def plain(**options):
    def loop(connection):
        yield from connection.feed("train").subscribe(timeout=BARRIER_SECONDS, **options)

    return loop


def dataset(**options):
    torch_face = pytest.importorskip("batchwright.torch")
    epochs = options.pop("epochs")

    def loop(connection):
        data = torch_face.BatchDataset(connection=connection, epochs=epochs,
                                       timeout=BARRIER_SECONDS, **options)
        for epoch in range(epochs):
            data.set_epoch(epoch)
            yield from data

    return loop


# slots, ranks here, ranks of all. In a daemon with fewer slots than the least they are refused.
SHAPES = [(16, 8, 8), (9, 8, 8), (10, 8, 8), (32, 8, 16), (16, 8, 16), (9, 8, 16), (64, 8, 64),
          (4, 2, 2), (3, 2, 2), (6, 3, 4), (4, 3, 4)]


@pytest.mark.parametrize("face, here_is_known", [(plain, True), (plain, False), (dataset, True)])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "%d slots, %d of %d" % shape)
def test_ranks_with_a_barrier_go_on(serve, large, face, here_is_known, shape):
    slots, here, ranks = shape
    daemon = serve(dataset=large, slots=slots, world=ranks, size=1, poison="false")
    options = dict(ranks=ranks, epochs=EPOCHS, ranks_here=here if here_is_known else None)
    job = Job(daemon, [face(rank=rank, **options) for rank in range(here)])
    assert job.run() == [320 // ranks * EPOCHS] * here


@pytest.mark.parametrize("slots, here", [(8, 8), (2, 2)])
def test_ranks_that_could_not_go_on_are_refused(serve, large, slots, here):
    daemon = serve(dataset=large, slots=slots, world=here, size=1)
    with batchwright.connect(daemon.endpoint) as connection:
        with pytest.raises(batchwright.DoesNotFitError, match=f"set slots to {here + 1} or more"):
            connection.feed("train").subscribe(rank=0, ranks=here, ranks_here=here)
        held = []  # what is not known beforehand is known with the last of them
        with pytest.raises(batchwright.DoesNotFitError, match=f"set slots to {here + 1} or more"):
            for rank in range(here):
                held.append(connection.feed("train").subscribe(rank=rank, ranks=here))


@pytest.mark.parametrize("face", [plain, dataset])
@pytest.mark.parametrize("slots", [2, 3])
def test_a_replica_goes_on_with_two_slots(serve, face, slots):
    daemon = serve(slots=slots)
    assert Job(daemon, [face(epochs=EPOCHS)]).run() == [15 * EPOCHS]


def test_a_replica_goes_on_beside_a_rank_that_looks_on(serve, large):
    daemon = serve(dataset=large, slots=16, world=16, size=1)
    with batchwright.connect(daemon.endpoint) as connection:
        idle = connection.feed("train").subscribe(rank=0, ranks=16)
        assert Job(daemon, [plain(epochs=1)]).run() == [320]
        idle.close()


def test_replicas_in_epochs_of_their_own_go_on(serve):
    daemon = serve(slots=16)
    loops = [plain(epoch=number, epochs=1) for number in range(15)]
    assert Job(daemon, loops, at_barrier=False).run() == [15] * 15


def test_workers_of_a_queue_do_not_wait_for_each_other_at_its_end(serve, tmp_path):
    daemon = serve(feed=f'journal = "{tmp_path}/journal"')
    def loop(connection):
        for batch in connection.feed("train").subscribe(mode="queue", epochs=1,
                                                        timeout=BARRIER_SECONDS):
            kept = batch["features"]  # a view keeps the slot until the next one takes its place
            yield batch
        del kept

    taken = Job(daemon, [loop, loop], at_barrier=False).run()
    assert sum(taken) == 15
