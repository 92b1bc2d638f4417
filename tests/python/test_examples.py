"""client/examples as they run: two jobs, and one of them killed; three servers, and one of them."""

import collections
import contextlib
import importlib.util
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import wave

import numpy as np
import pytest

import served

EXAMPLE = served.ROOT / "client" / "examples" / "languages.py"
sys.path.insert(0, str(EXAMPLE.parent))

import prompts  # noqa: E402

if importlib.util.find_spec("torch") is not None:
    import multistyle  # noqa: E402
    import styles  # noqa: E402

EPOCHS, BATCHES = 10, 15  # batches of an epoch: 60 sequences by 4
KILLED = 40  # batches that a job has taken when it is killed, at least
SLOTS = EPOCHS * BATCHES  # so that a job that comes late shares every batch all the same

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                 reason="torch is not installed")


class Job:
    def __init__(self, folder, name, daemon):
        self.log, self.result = folder / f"{name}.log", folder / f"{name}.json"
        self.call = [sys.executable, "-B", EXAMPLE, "--endpoint", daemon.endpoint, "--feed",
                     "train", "--held-out", "train", "--epochs", str(EPOCHS), "--hidden", "4",
                     "--every", "7", "--json", "--checkpoint", folder / f"{name}.pt", "--log",
                     self.log]

    def start(self, *more):
        with self.result.open("a") as result:
            self.process = subprocess.Popen([*self.call, *more], stdout=result,
                                            env=served.environment())
        return self

    def finish(self):
        assert self.process.wait(served.SECONDS * 4) == 0
        return self

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def last(self):
        return json.loads(self.result.read_text().splitlines()[-1])


@pytest.fixture
def job(tmp_path):
    """Makes jobs; those that still run are killed with the test."""
    made = []

    def start(name, daemon):
        made.append(Job(tmp_path, name, daemon).start())
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()


def killed_in_the_middle(job):
    served.eventually(lambda: len(job.lines()) >= KILLED or job.process.poll() is not None,
                      f"{KILLED} batches")
    job.process.kill()
    assert job.process.wait() == -signal.SIGKILL
    assert KILLED <= len(job.lines()) < SLOTS
    return job.lines()


@needs_torch
def test_a_killed_and_resumed_job_sees_exactly_the_batches_of_one_that_was_not(serve, job):
    daemon = serve(slots=SLOTS)
    whole, broken = job("whole", daemon), job("broken", daemon)
    before = killed_in_the_middle(broken)
    broken.start("--resume").finish()
    whole.finish()
    assert len(whole.lines()) == EPOCHS * BATCHES
    assert before == whole.lines()[:len(before)]
    assert broken.lines() == whole.lines()
    assert broken.last()["weights"] == whole.last()["weights"]
    resumed = [json.loads(line)["resumed_behind"] for line in broken.result.read_text().splitlines()
               if "resumed_behind" in line]
    assert len(resumed) == 1 and 0 < resumed[0] <= len(before)


@needs_torch
def test_two_jobs_share_every_batch(serve, job):
    daemon = serve(slots=SLOTS, poison="false", plan='shuffle = "batches"')
    for each in [job("one", daemon), job("two", daemon)]:
        each.finish()
    # Both are tried on epoch 0 of the same feed, whose batches are in their slots already.
    assert daemon.counter("batches_assembled") == EPOCHS * BATCHES
    assert daemon.counter("batches_delivered") == 2 * (EPOCHS + 1) * BATCHES


@needs_torch
def test_a_job_that_comes_back_when_the_other_has_ended_shares_every_batch(serve, job):
    daemon = serve(slots=SLOTS, poison="false", plan='shuffle = "batches"')
    whole, broken = job("whole", daemon), job("broken", daemon)
    killed_in_the_middle(broken)
    whole.finish()
    broken.start("--resume").finish()
    assert broken.lines() == whole.lines()
    assert daemon.counter("batches_assembled") == EPOCHS * BATCHES


@needs_torch
def test_two_jobs_says_what_differs():
    import two_jobs
    assert two_jobs.first_difference(["a", "b"], ["a", "b"]) == ""
    assert two_jobs.first_difference(["a", "c"], ["a", "b"]) == "batch 2 is c, and not b"
    assert two_jobs.first_difference(["a"], ["a", "b"]) == "batch 2 is missing, and not b"
    assert two_jobs.first_difference(["a", "b"], ["a"]) == "batch 2 is b, and not the end"
    counters = {"batches_assembled": 739, "batches_delivered": 1354}
    assert two_jobs.all_shared(739, counters) == []
    assert two_jobs.all_shared(675, counters) == [
        "the daemon assembled 739 batches, and 675 are all there are: some were assembled again"]


@needs_torch
def test_two_jobs_waits_as_long_as_there_is_progress(monkeypatch):
    import two_jobs
    seconds, batches = itertools.count(), itertools.count()
    monkeypatch.setattr(two_jobs.time, "monotonic", lambda: next(seconds) * 400)
    monkeypatch.setattr(two_jobs.time, "sleep", lambda _: None)
    done = iter([False] * 9 + [True])
    two_jobs.until(lambda: next(done), "the end", lambda: next(batches))
    with pytest.raises(SystemExit, match="no progress for 600 s towards the end"):
        two_jobs.until(lambda: False, "the end", lambda: 0)


def test_about_a_fifth_of_the_texts_is_held_out():
    sides = [prompts.side_of(f"digits/{number}") for number in range(1000)]
    assert 150 < sides.count("held-out") < 250


def test_a_link_to_the_folder_of_another_language_is_no_language(tmp_path):
    sounds = tmp_path / "sounds"
    for language in ("es_MX_f_Allison", "en", ".cache"):
        (sounds / language).mkdir(parents=True)
        (sounds / language / "hello.wav").write_bytes(b"x")
    (tmp_path / "elsewhere").mkdir()
    for link, target in (("es", "es_MX_f_Allison"), ("es_MX", "es"), ("zz", "en"),
                         ("b", tmp_path / "elsewhere"), ("a", tmp_path / "elsewhere")):
        (sounds / link).symlink_to(target)
    assert [each.name for each in prompts.languages(sounds)] == ["a", "en", "es_MX_f_Allison"]
    prompts.split(sounds, tmp_path / "links")
    sides = [each for each in prompts.SIDES if (tmp_path / "links" / each).exists()]
    assert [sorted(path.name for path in (tmp_path / "links" / side).iterdir())
            for side in sides] == [["en", "es_MX_f_Allison"]]


def test_the_split_puts_a_text_on_one_side(tmp_path):
    for language in ("ann", "bob"):
        for number in range(30):
            file = tmp_path / "sounds" / language / "digits" / f"{number}.wav"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    prompts.split(tmp_path / "sounds", tmp_path)
    names = {side: {language: {path.name for path in (tmp_path / side / language).rglob("*.wav")}
                    for language in ("ann", "bob")} for side in prompts.SIDES}
    assert names["train"]["ann"] == names["train"]["bob"]
    assert names["held-out"]["ann"] == names["held-out"]["bob"]
    assert not names["train"]["ann"] & names["held-out"]["ann"]
    assert len(names["train"]["ann"]) + len(names["held-out"]["ann"]) == 30


LANGUAGES, PROMPTS = 2, 15  # of sound that a test makes, for three servers


def write_sounds(folder, prompts_of_each):
    """A folder of prompts as prompts.split() takes it: notes of a language's own."""
    random = np.random.default_rng(1)
    for language in range(LANGUAGES):
        (folder / f"notes-{language}").mkdir(parents=True)
        for number in range(prompts_of_each):
            samples = int(random.integers(5000, 14000))
            notes = random.integers(2, 8, samples // 1000 + 1) * (0.15 + 0.06 * language)
            tone = np.sin(np.cumsum(np.repeat(notes, 1000)[:samples])) * 9000
            with wave.open(str(folder / f"notes-{language}" / f"{number}.wav"), "w") as file:
                file.setparams((1, 2, 8000, samples, "NONE", ""))
                file.writeframes((tone + random.normal(0, 300, samples)).astype("<i2").tobytes())
    return folder


@pytest.fixture
def sounds(tmp_path):
    return write_sounds(tmp_path / "sounds", PROMPTS)


class Takers:
    """Two workers that take whatever batch of any server is next, each in a thread.

    Each counts epochs from where it finds a queue, so none takes a batch before all are there.
    """

    def __init__(self, servers, keys, epochs):
        self.taken = {server.number: collections.Counter() for server in servers}
        self.lock = threading.Lock()
        self.together = threading.Barrier(multistyle.WORKERS, timeout=60)
        self.threads = [threading.Thread(target=self.take, args=(servers, keys, epochs))
                        for _ in range(multistyle.WORKERS)]
        for thread in self.threads:
            thread.start()

    def take(self, servers, keys, epochs):
        with contextlib.ExitStack() as stack:
            queues = [multistyle.connected(stack, server.endpoint, keys).feed("styled").subscribe(
                mode="queue", window=2, epochs=epochs) for server in servers]
            self.together.wait()
            for server, batch in multistyle.by_turns(queues):
                assert np.isfinite(batch["features"]).all()
                with self.lock:
                    self.taken[server][batch.epoch, batch.step] += 1
                batch.release()

    def count(self, server):
        with self.lock:
            return sum(self.taken[server].values())


def steps_of(server, epochs):
    """Epoch and step of every batch that a server has."""
    steps = set()
    for epoch in range(epochs):
        done = subprocess.run(
            [server.programs / "batchwright", "plan", "--feed-config", server.config, "--feed",
             "styled", "--epoch", str(epoch), "--json"], check=True, stdout=subprocess.PIPE)
        steps |= {(epoch, step) for step in range(json.loads(done.stdout)["batches"])}
    return steps


@needs_torch
def test_example_servers_lose_no_batch_when_one_of_them_dies(tmp_path, sounds):
    epochs, form = 3, multistyle.SHORT._replace(lanes=4)
    work, programs = tmp_path, pathlib.Path(os.environ["BATCHWRIGHT_BIN"])
    prompts.split(sounds, work / "links")
    styles.write_prompts(work / "links", work, form.most)
    (work / "other-rooms").mkdir()
    text = multistyle.make_styles(work / "links", work)
    keys = multistyle.make_keys(programs, work)
    with multistyle.started_servers(programs, work, form, text) as servers:
        takers = Takers(servers, keys, epochs)
        served.eventually(lambda: takers.count(1) >= 5, "five batches of the second server")
        servers[1].process.kill()
        servers[1].process.wait()
        before = takers.count(0)
        served.eventually(lambda: takers.count(0) > before or takers.count(0) ==
                          len(steps_of(servers[0], epochs)), "the others go on")
        servers[1].start()
        for thread in takers.threads:
            thread.join()
        for server in servers:
            taken = takers.taken[server.number]
            assert set(taken) == steps_of(server, epochs)
            # A batch that was held at the death may come to another worker, once more.
            held = multistyle.WORKERS * 2 if server.number == 1 else 0
            assert sum(taken.values()) <= len(taken) + held


@needs_torch
def test_rollouts_are_learned_from_in_whole_groups_and_none_is_too_stale():
    done = subprocess.run([EXAMPLE.with_name("rollouts.py"), "--bin", served.BIN, "--short"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["pace", "40"], ["drop", "40"]]
    assert lines[3] == "on the record of pace: 40 of 40 losses are the same"


@needs_torch
def test_example_servers_push_outer_derivatives_and_the_most_stale_count_for_nothing(tmp_path):
    done = subprocess.run(
        [EXAMPLE.with_name("example_servers.py"), "--bin", served.BIN, "--short", "--sounds",
         write_sounds(tmp_path / "sounds", 60)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[-3] for line in lines[-3:]] == ["4", "0", "1"], done.stdout  # zeroed


@needs_torch
def test_example_servers_have_seeds_apart_and_a_test_set_of_the_styles_that_train(
        tmp_path, monkeypatch):
    monkeypatch.setattr(multistyle.Server, "start", lambda self: None)
    text = {name: multistyle.style_of([tmp_path / name], [tmp_path / "room"], loud=name == "noisy")
            for name in ("styled", "noisy")}
    text["styles"] = text["styled"]
    feeds, seeds = {}, []
    for number in range(multistyle.SERVERS):
        config = multistyle.Server(pathlib.Path(), tmp_path, number, multistyle.FULL,
                                   text).config.read_text()
        tables = {table.split('"')[1]: table for table in config.split("[[feed]]\nname = ")[1:]}
        seeds.append({line for line in tables["styled"].splitlines() if line.startswith("seed")})
        feeds.update(tables)
    numbers = sorted(int(line.split(" = ")[1]) for (line,) in seeds)
    assert all(b - a > multistyle.FULL.epochs for a, b in zip(numbers, numbers[1:]))
    made = {name: table[table.index("[feed.features]"):].strip() for name, table in feeds.items()}
    assert made["styles"] == made["styled"] != made["noisy"]
    assert "held-out" in feeds["styles"] and "held-out" not in feeds["styled"]
