"""Trials in which some workers come through a proxy that slows down, freezes and cuts."""
import random
import time

from events import KINDS, draw_events
from proxy import WAYS, Proxy
from setting import MODES, draw_setting
from trial import Progress, Stuck, Trial

SILENCE = 10  # seconds without a sign of life, after which either side is lost
SLACK = 5  # seconds for a crowded machine
LONG = (SILENCE + 0.5, SILENCE + 3)  # seconds of a freeze after which a peer is lost


class Bystander:
    """A worker that has no proxy, and has to go on. Time is an argument."""

    def __init__(self, name, now, patience):
        self._name, self._progress = name, Progress(now, patience)

    def look(self, written, now, paused):
        """Of `written` bytes of its record. Errors: Stuck."""
        try:
            self._progress.look(written, now, paused)
        except Stuck as stuck:
            raise Stuck(f"{self._name} has no proxy, and {stuck}") from None


class Peers(Trial):
    """Workers with "tcp=1" come through the proxy; the others must not notice."""

    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, draw.choice(MODES))
        while setting.workers < 2:
            setting = draw_setting(draw, setting.mode)
        peer = draw.randrange(setting.workers)
        for number, words in enumerate(setting.worker):
            for way in ("tcp=1", "inline=1"):
                if way in words:
                    words.remove(way)
            if number == peer or number == (peer + 1) % 3 and setting.workers > 2:
                words.append("tcp=1")
        setting.more = {"seed": draw.randrange(10000), "long_freeze": draw.random() < 0.15}
        kinds = KINDS[::3] + 2 * (freeze_peers, freeze_peers, slow_peers, cut_peers)
        events = draw_events(draw, setting.workers, setting.grace_ms, kinds)
        if not any(event.kind in (freeze_peers, slow_peers, cut_peers) for event in events):
            events[0].kind = freeze_peers
        return setting, events

    def make_workers(self):
        self.random = random.Random(self.setting.more["seed"])
        self.long_freeze = self.setting.more["long_freeze"]
        self.proxy = Proxy(self.setting.port)
        self.ends = None  # when a freeze or slowness is over
        self.is_marked = set()  # processes of peers that may have been lost
        self.is_lossy = False  # whether the trouble is more than slowness
        workers = [self.worker(number, words, port=self.proxy.port)
                   for number, words in enumerate(self.setting.worker)]
        self.peers = [worker for worker in workers if "tcp=1" in worker.words]
        self.bystanders = {worker: Bystander(worker.name, time.monotonic(), self.bound())
                           for worker in workers if worker not in self.peers}
        return workers

    def bound(self):
        """Seconds without a batch for a worker that has no proxy. In a queue an epoch ends with the
        batches of the lost. With `max_lead`, and as ranks of one job, workers wait for each other:
        for as long as the peer is away."""
        if self.setting.mode == "sharded" or self.setting.feed["max_lead"]:
            return LONG[1] + SILENCE + SLACK
        if self.setting.mode == "queue":
            return SILENCE + self.setting.grace_ms / 1000 + SLACK
        return SLACK

    def is_paused(self):
        return self.ends is not None or super().is_paused()

    # ---- trouble -----------------------------------------------------------------------------

    def freeze(self):
        if self.ends is not None:
            return
        ways = self.random.choice((WAYS, WAYS[:1], WAYS[1:]))
        seconds = self.random.uniform(0.05, 1.5)
        if self.long_freeze:
            seconds, self.long_freeze = self.random.uniform(*LONG), False
        self.proxy.freeze(ways)
        self.begin(f"frozen {' and '.join(ways)}", seconds, lossy=True)

    def slow_down(self):
        if self.ends is not None:
            return
        rate = self.random.choice((5, 20, 100)) * 1000
        self.proxy.slow_down(rate)
        self.begin(f"slowed down to {rate} bytes a second", self.random.uniform(0.2, 2),
                   lossy=False)

    def begin(self, what, seconds, lossy):
        self.tell(f"the proxy is {what} for {seconds:.1f} s")
        self.figures[f"peers {what.split()[0]}"] += 1
        self.ends = time.monotonic() + seconds
        self.is_lossy = lossy
        self.mark_peers()

    def cut(self):
        self.tell("the proxy cuts its connections")
        self.figures["peers cut off"] += 1
        self.mark_peers(even_so=True)
        self.proxy.cut()

    def mark_peers(self, even_so=False):
        """What they had may go to others from here on."""
        if not (self.is_lossy and self.ends is not None or even_so):
            return
        for peer in self.peers:
            if peer.process.pid not in self.is_marked:
                self.is_marked.add(peer.process.pid)
                self.mark("troubled", peer)

    def look(self):
        now = time.monotonic()
        self.mark_peers()
        if self.ends is not None and now >= self.ends:
            self.tell("the proxy is itself again")
            self.proxy.freeze(())
            self.proxy.slow_down(None)
            self.ends = None
        daemon_stands = not self.daemon.runs or self.daemon.killed or self.daemon.resume_at
        for worker, bystander in self.bystanders.items():
            path = self.records[self.workers.index(worker)]
            written = path.stat().st_size if path.exists() else 0
            paused = daemon_stands or worker.finished or worker.resume_at or not worker.runs
            try:
                bystander.look(written, now, paused)
            except Stuck as stuck:
                raise Stuck(f"{stuck}\n{self.describe()}") from None

    def _end(self):
        super()._end()
        self.proxy.close()


def freeze_peers(trial, _, __):
    trial.freeze()


def slow_peers(trial, _, __):
    trial.slow_down()


def cut_peers(trial, _, __):
    trial.cut()
