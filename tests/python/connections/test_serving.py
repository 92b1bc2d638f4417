"""serve(): a daemon of a process, for notebooks and jobs of one machine."""

import contextlib
import copy
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import types
import urllib.request

import pytest

import batchwright
import served
from batchwright import FeedConfig, serving

COMMAND = served.BIN / "batchwright"
SIZES_OF_7 = [7] * 8 + [4]


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    """Where daemons have their sockets. Nothing stays behind."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield tmp_path
    served.eventually(lambda: not list(tmp_path.glob("batchwright-*")), "the daemons' end")


@pytest.fixture
def start():
    """Keeps what was started, as a notebook does, until the test ends."""
    running = []

    def serve(*datasets, **options):
        running.append(batchwright.serve(*datasets, program=COMMAND, **options))
        return running[-1]

    yield serve
    for server in running:
        server.close()


def sizes(endpoint, feed="train"):
    with batchwright.connect(endpoint, timeout=served.SECONDS) as connection:
        return [batch.sequences for batch in connection.feed(feed).epoch(0)]


def run(program, **how):
    return subprocess.run([sys.executable, "-B", "-c", program], check=False, text=True,
                          env=served.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=served.SECONDS * 4, **how)


def test_what_it_returns_is_the_endpoint_as_text(start, stored):
    server = start(stored, size=7)
    assert isinstance(server, str) and server.startswith("ipc:///")
    assert {server: 1}[str(server)] == 1
    program = """
import batchwright
print(sum(batch.sequences for batch in batchwright.connect().feed("train").epoch(0)))"""
    printed = subprocess.run([sys.executable, "-B", "-c", program], check=True, text=True,
                             env={**served.environment(), "BATCHWRIGHT_ENDPOINT": server},
                             stdout=subprocess.PIPE).stdout
    assert printed.strip() == str(served.SEQUENCES)


def test_a_copy_for_another_process_is_the_text_alone(start, stored):
    server = start(stored, size=7)
    for made in (copy.copy(server), copy.deepcopy(server), pickle.loads(pickle.dumps(server))):
        assert type(made) is str
        assert made == server


def test_it_lasts_until_it_is_closed(start, stored, runtime):
    server = start(stored, size=7)
    assert sizes(server) == SIZES_OF_7
    assert "listening at" in server.log
    server.close()
    assert not list(runtime.glob("batchwright-*"))
    assert "stopping" in server.log, "also behind its end"
    server.close()


def test_a_block_gives_the_same_object_and_ends_it(start, stored, runtime):
    server = start(stored, size=7)
    with server as endpoint:
        assert endpoint is server
        assert sizes(endpoint) == SIZES_OF_7
    assert not list(runtime.glob("batchwright-*"))


def test_the_dashboard_is_for_a_browser(start, stored):
    server = start(stored)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.dashboard)
    with urllib.request.urlopen(server.dashboard, timeout=served.SECONDS) as page:
        assert "text/html" in page.headers["content-type"]


def test_without_a_loopback_it_serves_and_has_no_dashboard(start, stored, monkeypatch):
    class NoLoopback(socket.socket):
        def bind(self, _):
            raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(serving.socket, "socket", NoLoopback)
    server = start(stored, size=7)
    assert server.dashboard is None
    assert sizes(server) == SIZES_OF_7


def test_what_the_program_says_of_the_daemon_goes_first(start, stored):
    server = start(stored, daemon={"stats": "", "log_level": "warn"})
    assert server.dashboard is None
    assert "listening" not in server.log


@pytest.mark.parametrize("given", [
    lambda path: ((), dict(train=path, valid=FeedConfig(path, size=10))),
    lambda path: (({"train": path, "valid": FeedConfig(path, size=10)},), {}),
    lambda path: ((path,), dict(valid=FeedConfig([path], size=10))),
    lambda path: ((), dict(train=[str(path)], valid=FeedConfig(str(path), size=10))),
    lambda path: ((FeedConfig(path),), dict(valid=FeedConfig(os.fsencode(path), size=10)))])
def test_feeds_have_names_and_settings_of_their_own(start, stored, given):
    datasets, feeds = given(stored)
    server = start(*datasets, **feeds, size=7, order="sorted")
    assert sizes(server) == SIZES_OF_7
    assert sizes(server, "valid") == [10] * 6


def test_a_list_has_the_shards_of_one_feed(start, tmp_path):
    for part in "ab":
        with batchwright.DatasetWriter(tmp_path / part, {"x": "float32"}) as writer:
            writer.add(part, x=[1.0, 2.0])
    server = start([tmp_path / "a", tmp_path / "b"], size=2, order="sorted")
    with batchwright.connect(server) as connection:
        assert list(connection.feeds) == ["train"]
        assert [sorted(batch.keys) for batch in connection.feed("train").epoch(0)] == [["a", "b"]]


def test_a_feed_leaves_out_what_is_set_for_all(start, stored):
    server = start(train=stored, size=7, order="semi-sorted", randomization=0.5,
                   valid=FeedConfig(stored, order="sorted", randomization=None,
                                    feed={"max_window": 3}), feed={"slots": 6, "max_window": None})
    with batchwright.connect(server) as connection:
        granted = {}
        for name in ("train", "valid"):
            with connection.feed(name).subscribe(window=3) as subscription:
                granted[name] = subscription.terms
    assert "randomization = 0.5" in granted["train"]
    assert "randomization = 0.1" in granted["valid"], "the default"


def test_a_recipe_of_its_own_has_its_own_styles(start, stored):
    """Of a dataset without sound each recipe is refused: so the reasons say which feeds have one."""
    with pytest.raises(batchwright.BadConfigurationError) as refused:
        start(train=stored, valid=FeedConfig(stored, features={}),
              features={"like": "kaldi"}, styles=[{"weight": 1}])
    assert "train" in str(refused.value)
    assert "valid" not in str(refused.value)


@pytest.mark.parametrize("given, words", [
    (dict(train="/nope/train"), 'feed "train" is not served: dataset /nope/train does not exist'),
    (dict(cut="frames", max_frames=20), 'feed "train" is not served: .*max_frames = 20.*max_length'),
    (dict(valid="/nope/valid"), 'feed "valid" is not served: dataset /nope/valid does not exist'),
    (dict(ordr="sorted"), 'feed "ordr" is not served: .*did you mean "order", a key of the plan'),
    (dict(features={"like": "kaldi"}), 'feed "?train"?.*steps need sound')])
def test_a_feed_that_cannot_be_served_is_an_error_with_the_daemons_reason(start, stored, given, words):
    with pytest.raises(batchwright.BadConfigurationError, match=words):
        start(**{"train": stored, **given})


def test_while_a_feed_is_being_opened_it_is_not_refused(start, stored, monkeypatch):
    """As that of a dataset whose disk is slow (tests/hung)."""
    opening = [{"train": serving._OPENING}, {"other": "gone", "train": serving._OPENING}]

    def connect(*words, **options):
        if not opening:
            return batchwright.connect(*words, **options)
        return contextlib.nullcontext(types.SimpleNamespace(absent=opening.pop(0)))

    monkeypatch.setattr(serving, "connect", connect)
    with batchwright.connect(start(train=stored)) as connection:
        assert not opening
        assert not connection.absent


@pytest.mark.parametrize("datasets, given, words", [
    ((), {}, "no feed is given"), ((), {"size": 3}, "no feed is given"), (({},), {}, "no feed is given"),
    ((3,), {}, "dataset is 3; allowed: a path"), (([],), {"train": "x"}, 'feed "train" is given twice'),
    (({"train": 3},), {}, "dataset is 3; allowed")])
def test_what_names_no_feed_is_refused(start, datasets, given, words):
    with pytest.raises(batchwright.InvalidArgumentError, match=words):
        start(*datasets, **given)


def test_the_keys_of_the_plan_are_the_daemons():
    """A key that is missing would be taken for a feed's name."""
    text = (served.ROOT / "systemd" / "batchwrightd.toml").read_text()
    section = text.partition("[feed.plan]\n")[2].partition("\n[")[0]
    assert set(re.findall(r"^(?:# )?([a-z_]+) = ", section, re.MULTILINE)) == serving._PLAN_KEYS


def test_an_interrupt_of_the_process_group_leaves_the_daemon(stored):
    """What a terminal, and a notebook's "interrupt", send."""
    ended = run(f"""
import batchwright, os, signal, time
os.setpgid(0, 0)
server = batchwright.serve({str(stored)!r}, program={str(COMMAND)!r}, size=7)
feed = batchwright.connect(server).feed("train")
for _ in range(2):
    print(sum(1 for _ in feed.epoch(0)))
    try:
        os.killpg(0, signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        print("interrupted")
print(sum(1 for _ in feed.epoch(0)))
print(sum(1 for _ in batchwright.connect(server).feed("train").epoch(1)))
assert "stopping" not in server.log
""")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["9", "interrupted", "9", "interrupted", "9", "9"]


@pytest.mark.parametrize("end, code", [
    ("pass", 0), ("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os._exit(3)", 3),
    ("del server; gc.collect(); print(sum(1 for _ in feed.epoch(0)))", 0)])
def test_it_ends_with_the_process_however_that_ends(stored, end, code):
    ended = run(f"""
import batchwright, gc, os, signal
server = batchwright.serve({str(stored)!r}, program={str(COMMAND)!r}, size=7)
feed = batchwright.connect(server).feed("train")
{end}
""")
    assert (ended.returncode, ended.stderr) == (code, "")
    assert ended.stdout.split() == (["9"] if "epoch" in end else [])


def test_a_forked_child_neither_keeps_nor_ends_it(stored, runtime):
    """The child outlives its parent, and waits for the daemon's end."""
    ended = run(f"""
import batchwright, glob, os, sys, time
server = batchwright.serve({str(stored)!r}, program={str(COMMAND)!r}, size=7)
child = os.fork()
if child == 0:
    with server:
        try:
            server.close()
        except batchwright.ForkedError as error:
            assert "this server was made before fork()" in str(error)
    os.write(1, b"left ")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert sum(1 for _ in batchwright.connect(server).feed("train").epoch(0)) == 9
held, hold = os.pipe()
if os.fork() == 0:
    os.close(hold)
    os.read(held, 1)  # until the parent has gone
    end = time.monotonic() + {served.SECONDS}
    while glob.glob({str(runtime)!r} + "/batchwright-*") and time.monotonic() < end:
        time.sleep(0.01)
    os.write(1, b"gone" if time.monotonic() < end else b"still there")
    os._exit(0)
os._exit(0)
""")
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "left gone")


def test_ctrl_c_while_it_starts_ends_what_was_started(stored, tmp_path):
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/started\nexec sleep 1000\n")
    program.chmod(0o755)

    before = len(serving._all)

    def interrupt():
        served.eventually(lambda: (tmp_path / "started").exists() and
                          (tmp_path / "started").read_text().endswith("\n") and
                          len(serving._all) > before, "the start")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        batchwright.serve(stored, program=program)
    thread.join()
    started = pathlib.Path("/proc", (tmp_path / "started").read_text().strip(), "stat")

    def has_ended():  # a zombie until its parent looks
        return not started.exists() or started.read_text().rpartition(")")[2].split()[0] == "Z"

    served.eventually(has_ended, "the end of what was started")


def test_many_daemons_of_a_process_give_a_warning(start, stored):
    for _ in range(4):
        start(stored)
    with pytest.warns(RuntimeWarning, match=r"4 daemons of this process.*close\(\)"):
        start(stored)
