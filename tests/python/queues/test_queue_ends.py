"""A queue's batch is done by the program's word alone; ended in any other way it is another's."""

import gc
import json
import subprocess
import sys
import warnings

import pytest

import batchwright
import served

BATCHES = 15
WINDOW = 3


@pytest.fixture
def queue(serve, tmp_path):
    return serve(feed=f'journal = "{tmp_path}/journal"')


def subscribe(connection, **options):
    options.setdefault("epochs", 1)
    return connection.feed("train").subscribe(mode="queue", window=WINDOW,
                                              timeout=served.SECONDS, **options)


def rest(daemon):
    """What another worker gets of the epoch: the attempt of each batch."""
    with batchwright.connect(daemon.endpoint) as connection:
        return {batch.index: batch.attempt for batch in subscribe(connection)}


def check_rest(daemon, done, undone):
    left = rest(daemon)
    assert sorted(list(left) + done) == list(range(BATCHES))
    assert {index: left[index] for index in undone} == dict.fromkeys(undone, 2)
    assert all(attempt == 1 for index, attempt in left.items() if index not in undone)


class Enough(Exception):
    pass


def until_two(batches, keep):
    """Works on a third batch, and fails."""
    done, kept = [], []
    for batch in batches:
        if keep:
            kept.append(batch["features"])
        if len(done) == 2:
            raise Enough(done, kept)
        done.append(batch.index)


def by_exception(subscription, keep):
    try:
        until_two(subscription, keep)
    except Enough as error:
        return error.args


def by_exception_within_an_epoch(subscription, keep):
    try:
        until_two(subscription.epoch(), keep)
    except Enough as error:
        return error.args


def by_exception_behind_a_generator(subscription, keep):
    try:
        until_two((each for each in subscription), keep)
    except Enough as error:
        return error.args


def by_break(subscription, keep):
    done, kept = [], []
    with pytest.warns(RuntimeWarning, match="undone: .*batch.done"):
        for batch in subscription:
            if keep:
                kept.append(batch["features"])
            if len(done) == 2:
                break
            done.append(batch.index)
    return done, kept


def by_the_end_of_a_generator(subscription, keep):
    kept = []

    def generator():
        for batch in subscription:
            if keep:
                kept.append(batch["features"])
            yield batch.index

    indices = generator()
    done = [next(indices), next(indices)]
    next(indices)
    indices.close()
    return done, kept


def by_garbage(subscription, keep):
    done = []
    for _ in range(2):
        batch = subscription.next()
        done.append(batch.index)
        batch.release()
    batch = subscription.next()
    kept = [batch["features"]] if keep else []
    cycle = [batch]
    cycle.append(cycle)
    del batch, cycle
    gc.collect()
    return done, kept


def by_a_with_that_fails(subscription, keep):
    done, kept = [], []
    for _ in range(2):
        with subscription.next() as batch:
            done.append(batch.index)
    try:
        with subscription.next() as batch:
            if keep:
                kept.append(batch["features"])
            raise Enough
    except Enough:
        return done, kept


def by_closing(subscription, keep):
    done = []
    for _ in range(2):
        batch = subscription.next()
        batch.done()
        done.append(batch.index)
    batch = subscription.next()
    kept = [batch["features"]] if keep else []
    subscription.close()
    return done, kept


ENDS = [by_exception, by_exception_within_an_epoch, by_exception_behind_a_generator, by_break,
        by_the_end_of_a_generator, by_garbage, by_a_with_that_fails, by_closing]


@pytest.mark.parametrize("end", ENDS, ids=[each.__name__ for each in ENDS])
@pytest.mark.parametrize("keep", [False, True], ids=["no views", "views kept"])
def test_a_batch_that_is_not_done_goes_to_another(queue, end, keep):
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection)
        done, kept = end(subscription, keep)
        assert len(done) == 2
        del kept
        gc.collect()
        del subscription
    check_rest(queue, done, [2])


@pytest.mark.parametrize("closed", ["connection", "subscription"])
def test_a_batch_that_is_kept_after_the_end_keeps_no_other(queue, closed):
    connection = batchwright.connect(queue.endpoint)
    subscription = subscribe(connection)
    kept = subscription.next()
    (connection if closed == "connection" else subscription).close()
    with batchwright.connect(queue.endpoint) as connection_of_another:
        another, left = subscribe(connection_of_another), {}
        while len(left) < BATCHES - 1:
            with another.next() as batch:
                left[batch.index] = batch.attempt
        assert sorted([*left, kept.index]) == list(range(BATCHES))
        assert set(left.values()) == {1}
        kept.release()  # done, as ever
        assert isinstance(another.next(), batchwright.EpochEnd)
    assert queue.counter("queue_returns") == 0
    connection.close()


def test_only_break_warns_and_only_once(queue):
    with batchwright.connect(queue.endpoint) as connection, warnings.catch_warnings():
        warnings.simplefilter("error")
        subscription = subscribe(connection)
        by_exception(subscription, False)
        for batch in subscription:
            batch.done()
            break
        for batch in subscription:
            batch.release()
            break
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                for number, batch in enumerate(subscription):
                    break
        assert len(said) == 1


def test_a_newer_iterator_gives_back_undone_what_the_older_one_worked_on(queue):
    with batchwright.connect(queue.endpoint) as connection:
        with connection.feed("train").subscribe(mode="queue", window=1, epochs=1,
                                                timeout=served.SECONDS) as subscription:
            older = iter(subscription)
            assert [next(older).index, next(older).index] == [0, 1]
            newer = iter(subscription)  # 1 goes back though the older one is alive, and comes again
            taken = {}
            for batch in newer:
                taken[batch.index] = batch.attempt
                del batch  # it is the only one
            with pytest.raises(batchwright.ClosedError, match="ended with a newer one"):
                next(older)
    assert taken == {index: 2 if index == 1 else 1 for index in range(1, BATCHES)}


def test_what_is_worked_on_in_an_older_loop_is_done_by_its_own_word(queue):
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection)
        with pytest.raises(batchwright.ClosedError, match="ended with a newer one"):
            for number, batch in enumerate(subscription):
                if number == 1:
                    batch.done()
                if number == 2:
                    newer = iter(subscription)
                    next(newer)
                    next(newer)
        del batch, newer
        subscription.close()
    check_rest(queue, [0, 1, 3], [2, 4])


def test_all_that_says_done_is_done(queue):
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection)
        views = []
        released = subscription.next()
        views.append(released["features"])
        released.release()  # a view keeps its slot
        with subscription.next():
            pass
        marked = subscription.next()
        marked.done()
        del marked
        loop = iter(subscription)
        next(loop)
        views.append(next(loop)["features"])
        del views
        next(loop).release()
        del loop
    check_rest(queue, list(range(6)), [])


def test_a_batch_that_is_dropped_within_a_loop_is_done_by_the_next_step(queue):
    with batchwright.connect(queue.endpoint) as connection:
        done = []
        for batch in subscribe(connection):
            done.append(batch.index)
            del batch
    assert sorted(done) == list(range(BATCHES))
    assert queue.counter("queue_returns") == 0


@pytest.mark.parametrize("keeps", [False, True])
def test_a_copy_on_a_device_keeps_the_batch_until_it_is_done(queue, keeps):
    pytest.importorskip("torch")
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection)
        done = []
        for batch in subscription:
            copy = batch.to("cpu")
            assert copy.attempt == 1
            done.append(copy.index)
            if len(done) == 2:
                copy.done()
                break
        copy = subscription.next().to("cpu")
        if keeps:
            with copy:
                done.append(copy.index)
        del copy
    check_rest(queue, done, [] if keeps else [2])


SCRIPT = """
import os, signal, sys
import batchwright
end, taking = sys.argv[2:]
connection = batchwright.connect(sys.argv[1])
subscription = connection.feed("train").subscribe(mode="queue", window=3, epochs=1)
kept = []
def work(number, batch):
    print(batch.index, flush=True)
    if number < 2:
        return
    if "view" in taking:
        kept.append(batch["features"])
    if end == "exception":
        raise RuntimeError("out of memory")
    if end == "exit":
        sys.exit(3)
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "_exit":
        os._exit(3)
    if end == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
if "next" in taking:
    for number in range(3):
        batch = subscription.next()
        work(number, batch)
        if number < 2:
            batch.release()
else:
    for number, batch in enumerate(subscription):
        work(number, batch)
        if number == 2:
            break
"""


@pytest.mark.parametrize("end", ["exception", "exit", "kill", "_exit", "interrupt", "end"])
@pytest.mark.parametrize("taking", ["loop", "next", "loop with a view", "next with a view"])
def test_a_process_that_ends_takes_no_batch_with_it(queue, end, taking):
    ended = subprocess.run([sys.executable, "-c", SCRIPT, queue.endpoint, end, taking],
                           env=served.environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60, text=True)
    indices = [int(line) for line in ended.stdout.split()]
    assert len(indices) == 3, ended.stderr
    if end in ("kill", "_exit"):  # what it said last may not have left the process
        left = rest(queue)
        assert indices[2] in left
        assert sorted(set(indices) | set(left)) == list(range(BATCHES))
    else:
        check_rest(queue, indices[:2], indices[2:])


def test_a_queue_has_so_many_epochs_as_all_its_workers_say(queue):
    def work():
        with batchwright.connect(queue.endpoint) as connection:
            return [batch.index for batch in subscribe(connection, epochs=0, until_epoch=2)]

    first = work()
    assert sorted(first) == sorted(2 * list(range(BATCHES)))
    assert work() == []  # it comes when all is over


def test_a_batch_that_no_worker_can_do_is_set_aside(serve, tmp_path):
    daemon = serve(feed=f'journal = "{tmp_path}/journal"\nqueue_attempts = 2')
    done = []
    for _ in range(2):
        with batchwright.connect(daemon.endpoint) as connection:
            try:
                for batch in subscribe(connection):
                    if batch.index == 3:
                        raise Enough
                    done.append(batch.index)
            except Enough:
                assert len(done) >= 3
                del batch  # else it stays in hand
    left = rest(daemon)
    assert sorted(done + list(left)) == [index for index in range(BATCHES) if index != 3]
    assert daemon.counter("queue_set_aside") == 1
    assert "batch 3 of its queue's epoch 0 is set aside" in daemon.log.read_text()
    shown = subprocess.run([served.BIN / "batchwright", "journal", tmp_path / "journal", "--json"],
                           stdout=subprocess.PIPE, check=True)
    assert json.loads(shown.stdout)["epoch"] in (0, 1)


@pytest.mark.parametrize("options", [{"epochs": 1}, {"until_epoch": 1, "epochs": 0}])
def test_the_last_batch_comes_again_before_the_end_is_told(queue, options):
    """One worker alone, whose work fails on all that is left, again and again."""
    due, attempts = [(index, 1) for index in range(BATCHES - 2)], []
    due += [(index, n) for index in (BATCHES - 2, BATCHES - 1) for n in (1, 2, 3, 4)]
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection, **options)
        while isinstance(batch := subscription.next(), batchwright.Batch):
            attempts.append((batch.index, batch.attempt))
            try:
                with batch:
                    if batch.index >= BATCHES - 2 and batch.attempt < 4:
                        raise Enough
            except Enough:
                pass
    assert sorted(attempts) == due


def test_the_end_is_told_to_one_that_waits_with_its_last_batch(queue):
    with batchwright.connect(queue.endpoint) as connection:
        subscription = subscribe(connection)
        for _ in range(BATCHES - 1):
            subscription.next().release()
        last = subscription.next()
        assert isinstance(subscription.next(), batchwright.EpochEnd)
        last.release()
