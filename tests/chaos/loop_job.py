"""A training job: ranks as Python's `for` loops, which meet at a barrier after every step.

Call: loop_job.py JOB, a file of JSON. A rank that is killed breaks the barrier; the others are
ended then, and all begin again at the last state that was saved, as launchers of training jobs do.
"""
import json
import os
import random
import select
import signal
import socket
import sys
import time
from pathlib import Path

REFUSED, BROKEN = 3, 5  # exit codes of a rank: an error of the package; the barrier is broken
LAST_WORDS = 3  # seconds that the other ranks have for saying what they wait for


class Rank:
    """In a process of its own, whose only way to the others is `barrier`."""

    def __init__(self, job, number, barrier):
        self.job, self.number, self.barrier = job, number, barrier
        self.random = random.Random(f"{job['seed']} {number}")
        self.state_path = Path(job["folder"]) / "state"

    def run(self):
        state = json.loads(self.state_path.read_text()) if self.state_path.exists() else None
        self.record = self._open_record(state)
        trained = 0
        for batch in self._loop(state):
            values = batch["features"]
            self._check(batch, values)
            time.sleep(self.random.uniform(0, 0.002))
            self._note(batch)
            trained += 1
            if trained % self.job["batches_per_step"] == 0:
                self._meet()
                if self.number == 0 and self.random.random() < self.job["saves"]:
                    self._save(batch)
        self.barrier.send(b"finished")

    def _loop(self, state):
        import batchwright
        job = self.job
        connection = batchwright.connect(job["endpoint"], program=f"rank{self.number}",
                                         timeout=job["patience"], reconnect=600,
                                         inline=job["inline"])
        if job["face"] == "dataset":
            return self._dataset(connection, state)
        start = {}
        if state is not None:
            start = dict(epoch=state["epoch"], step=state["step"],
                         fingerprint=state["fingerprint"], terms=state["terms"])
        self.subscription = connection.feed("train").subscribe(
            rank=self.number, ranks=job["ranks"], window=job["window"], timeout=job["patience"],
            epochs=job["epochs"] - start.get("epoch", 0), ranks_here=job["ranks_here"], **start)
        return self.subscription

    def _dataset(self, connection, state):
        from batchwright.torch import BatchDataset
        job = self.job
        self.data = BatchDataset(connection=connection, rank=self.number, ranks=job["ranks"],
                                 window=job["window"], timeout=job["patience"],
                                 epochs=job["epochs"], ranks_here=job["ranks_here"])
        if state is not None:
            self.data.load_state_dict(state["dataset"])
        for epoch in range(self.data.epoch, job["epochs"]):
            self.data.set_epoch(epoch)
            yield from self.data

    @staticmethod
    def _check(batch, values):
        """Every value of a sequence is its ordinal."""
        for row, (ordinal, length) in enumerate(zip(batch.ordinals, batch.lengths)):
            if not (values[row, :length] == ordinal).all():
                raise ValueError(f"batch {batch.index} of epoch {batch.epoch}: row {row} is not of "
                                 f"sequence {ordinal}")

    def _open_record(self, state):
        """What follows the state is not part of the training: the line that says so begins it."""
        path = Path(self.job["folder"]) / f"record{self.number}"
        record = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        if path.stat().st_size:
            os.ftruncate(record, path.read_bytes().rfind(b"\n") + 1)
        place = (state["epoch"], state["step"]) if state is not None else (0, 0)
        os.write(record, b"resume %d %d\n" % place)
        return record

    def _note(self, batch):
        ordinals = ",".join(map(str, batch.ordinals))
        line = (f"{os.getpid()} {batch.epoch} {batch.index} {ordinals} "
                f"{batch.position.fingerprint} {batch.rows_lost}\n")
        os.write(self.record, line.encode())

    def _meet(self):
        self.barrier.send(b"here")
        if self.barrier.recv(16) != b"go":
            os._exit(BROKEN)

    def _save(self, batch):
        place = batch.position
        state = {"epoch": place.epoch, "step": place.step, "fingerprint": place.fingerprint}
        if self.job["face"] == "dataset":
            state["dataset"] = self.data.state_dict()
        else:
            state["terms"] = self.subscription.terms
        new = self.state_path.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.rename(self.state_path)


def rank_process(job, number, barrier):
    """Never returns."""
    code = REFUSED
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        Rank(job, number, barrier).run()
        code = 0
    except (BrokenPipeError, ConnectionResetError):
        code = BROKEN
    except BaseException as error:
        print(f"rank {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        sys.stderr.flush()
        os._exit(code)


class Attempt:
    """All ranks, from a state on until they are done or one is dead."""

    def __init__(self, job):
        self.job = job
        self.ways, self.pids = [], []
        self.here = set()  # ranks that are at the barrier
        self.finished = set()
        for number in range(job["ranks"]):
            self._start(number)
        new = Path(job["folder"]) / "pids.new"
        new.write_text(json.dumps(self.pids))
        new.rename(Path(job["folder"]) / "pids")

    def _start(self, number):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            for way in (*self.ways, ours):
                way.close()
            rank_process(self.job, number, its)
        its.close()
        self.ways.append(ours)
        self.pids.append(pid)

    def run(self):
        """True when all are done."""
        while len(self.finished) < len(self.ways):
            open_ways = [way for number, way in enumerate(self.ways) if number not in self.finished]
            for way in select.select(open_ways, [], [])[0]:
                if not self._hear(self.ways.index(way)):
                    return self._end()
        return self._end()

    def _hear(self, number):
        """False when the rank is dead."""
        try:
            word = self.ways[number].recv(16)
        except ConnectionResetError:
            return False
        if word == b"finished":
            self.finished.add(number)
        elif word == b"here":
            self.here.add(number)
            if len(self.here) == len(self.ways):
                self._let_go()
        return bool(word)

    def _let_go(self):
        self.here.clear()
        for way in self.ways:
            try:
                way.send(b"go")
            except BrokenPipeError:
                pass  # it is dead, which is seen when it is listened to

    def _end(self):
        """Whether all are done. Errors: SystemExit, when a rank has failed by itself."""
        codes = self._wait({pid: None for pid in self.pids})
        for number, pid in enumerate(self.pids):
            if codes[pid] == REFUSED:
                at = ", ".join(map(str, sorted(self.here))) or "none"
                sys.exit(f"rank {number} has failed; at the barrier: {at}")
        return all(code == 0 for code in codes.values())

    def _wait(self, codes):
        """Of the rank that is dead, and those that then end or are ended. One that fails is not
        alone: the others may say, too, what they wait for."""
        end = None
        while None in codes.values():
            for pid in [pid for pid, code in codes.items() if code is None]:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    codes[pid] = os.waitstatus_to_exitcode(status)
            now = time.monotonic()
            if end is None and any(codes.values()):
                end = now + (LAST_WORDS if REFUSED in codes.values() else 0)
            if end is not None and now >= end:
                for pid in [pid for pid, code in codes.items() if code is None]:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        for way in self.ways:
            way.close()
        return codes


def main():
    job = json.loads(Path(sys.argv[1]).read_text())
    import batchwright  # once for all ranks, which are forked
    if job["face"] == "dataset":
        import batchwright.torch  # noqa: F401
    del batchwright
    while not Attempt(job).run():
        print("a rank is dead: all begin anew", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
