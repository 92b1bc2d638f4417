"""Trials in which a second feed's data are damaged, cut off, or away for some time."""
import json
import os
import random
import shutil
import signal
import time

from checks import (check_explained, check_in_order, check_ledger, expect, read_ledger, read_record)
from events import KINDS, draw_events
from setting import MODES, Setting, draw_plan, draw_setting, feed_table, planned
from trial import PATIENCE, Stuck, Trial, record_bytes

PAGE = 4096
WINDOW = 4  # of the second feed's workers
REFUSED = 3  # exit code of a worker
EPOCHS = 1


class Harm:
    """What is done to the second feed's data, once all records have so much in them."""

    def __init__(self, draw):
        self.what = draw.choice(("flip", "flip", "cut", "away", "away"))
        self.progress = draw.uniform(0, 0.5)
        self.seconds = draw.uniform(0.05, 0.8)  # until the data are good again
        self.daemon_dies = draw.random() < (0.8 if self.what == "away" else 0.3)
        self.seed = draw.randrange(1000)
        self.ends = None  # once it has begun: when
        self.over = False


def flip_bits(path, draw):
    """As many as 16, anywhere."""
    with open(path, "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for _ in range(draw.randint(1, 16)):
            place = draw.randrange(size)
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1 << draw.randrange(8)]))


def cut_off(path, draw):
    """At the end of a page, for what a cut leaves of one are zeros, which is other damage."""
    os.truncate(path, draw.randrange(os.stat(path).st_size // PAGE) * PAGE)


def check_rows(record, plan, damaged):
    """Each batch has the rows of the plan, or says how many are lost, and does so between the
    lines of the record where there was damage alone. The rest is in check_in_order()."""
    for place, line in enumerate(record):
        epoch, index = line.batch
        rows = plan[epoch][index]
        left = iter(rows)
        expect(all(row in left for row in line.ordinals),
               f"rows that are not planned: {line.batch}")
        expect(line.lost == len(rows) - len(line.ordinals),
               f"{line.batch} lacks {len(rows) - len(line.ordinals)} rows and says {line.lost}")
        expect(not line.lost or any(first <= place < last for first, last in damaged),
               f"{line.batch} lacks rows, and its data were whole")


def check_count(lost, counted):
    """Of one daemon: rows that are lost of what it delivered, and its own figure."""
    expect(counted >= lost, f"{lost} rows are lost, and the daemon counted {counted}")


class Damage(Trial):
    """`workers` train on the feed "train", `victims` on the feed "other"."""

    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, draw.choice(MODES))
        victims = draw.randint(1, 2)
        plan = draw_plan(draw, "replica")
        feed = {"slots": draw.randint(3, 8), "max_window": WINDOW, "verify": "always",
                "on_corrupt": draw.choice(("stop", "skip")), "max_corrupt_share": 1.0}
        harms = sorted((Harm(draw) for _ in range(draw.randint(1, 2))),
                       key=lambda harm: harm.progress)
        setting.more = {"plan": plan, "feed": feed, "harms": harms, "victims": [
            ["feed=other", "mode=replica", f"epochs={EPOCHS}", f"world={plan['world']}",
             f"window={draw.randint(1, WINDOW)}", f"seed={draw.randrange(10000)}"]
            for _ in range(victims)]}
        if feed["on_corrupt"] == "stop":
            del feed["max_corrupt_share"]
        events = draw_events(draw, setting.workers, setting.grace_ms, KINDS)
        return setting, events[:draw.randint(0, 3)]

    def make_workers(self):
        self.other = self.folder / "other"
        shutil.copytree(self.home.data, self.other)
        self.harms = self.setting.more["harms"]
        self.trash = 0
        self.told = []  # (rows lost, rows counted)
        trained = super().make_workers()
        self.victims = [self.worker(number, words, "victim", "other.record")
                        for number, words in enumerate(self.setting.more["victims"])]
        self.damaged = [[] for _ in self.victims]  # of each: lines of its record, first and last
        self.refused = set()
        self.mended = 0  # when flipped bits were last gone
        return trained + self.victims

    @property
    def others_records(self):
        return [self.folder / f"other.record{number}" for number in range(len(self.victims))]

    def configuration(self):
        more = self.setting.more
        return super().configuration() + "\n".join(feed_table(
            "other", self.other, self.folder / "other.ledger", more["feed"], more["plan"])) + "\n"

    def others_plan(self):
        return planned(self.setting.more["plan"], EPOCHS, self.home.data, self.home.programs)

    def bytes_to_come(self):
        return super().bytes_to_come() + len(self.victims) * record_bytes(self.others_plan())

    def written(self):
        return super().written() + sum(os.stat(path).st_size for path in self.others_records
                                       if path.exists())

    def _act(self, total_bytes):
        super()._act(total_bytes)
        now = time.monotonic()
        harm = next((harm for harm in self.harms if not harm.over), None)
        if harm is None:
            return
        if harm.ends is None and self.written() / total_bytes >= harm.progress:
            self._begin(harm, now)
        elif harm.ends is not None and now >= harm.ends:
            self._end_harm(harm)

    # ---- damage ------------------------------------------------------------------------------

    def _begin(self, harm, now):
        draw = random.Random(harm.seed)
        self.tell(f"the data of \"other\": {harm.what}")
        harm.ends = now + harm.seconds
        harm.deaths = self.deaths
        harm.first = self._lines()
        if harm.what == "flip":
            flip_bits(self.other / "data.mdb", draw)
        elif harm.what == "cut":
            cut_off(self.other / "data.mdb", draw)
        else:
            self._put_away()
        if harm.daemon_dies:
            self.kill(self.daemon, draw.choice((signal.SIGKILL, signal.SIGTERM)))

    def _end_harm(self, harm):
        """Flipped bits may have been read into slots: a new daemon has none of these."""
        self.tell("the data of \"other\" are good again")
        if harm.what != "away":
            self._put_away()
        shutil.copytree(self.home.data, self.folder / "other.new")
        (self.folder / "other.new").rename(self.other)
        harm.over = True
        if harm.what != "flip":
            return
        if harm.deaths == self.deaths and self.setting.more["feed"]["on_corrupt"] == "skip":
            self._compare_counts(harm)
        if self.daemon.killed or not self.daemon.runs:
            self._wait_for_death()
        else:
            self.kill(self.daemon)
            self._wait_for_death()
        for number, (first, last) in enumerate(zip(harm.first, self._lines())):
            self.damaged[number].append((first - WINDOW, last + WINDOW))
        self.mended = time.monotonic()
        for victim in self.refused:
            victim.start()
        self.refused.clear()

    def _put_away(self):
        self.trash += 1
        self.other.rename(self.folder / f"other.away{self.trash}")

    def _wait_for_death(self):
        """Before a worker that was refused comes again."""
        end = time.monotonic() + PATIENCE
        while self.daemon.runs:
            if time.monotonic() > end:
                raise Stuck(f"the daemon does not die\n{self.describe()}")
            time.sleep(0.001)

    def _lines(self):
        return [len(read_record(path)) for path in self.others_records]

    def _compare_counts(self, harm):
        lost = {line.batch: line.lost for first, path in zip(harm.first, self.others_records)
                for line in read_record(path)[first:]}
        page = self.stats()
        for feed in json.loads(page)["feeds"] if page.startswith("{") else ():
            if feed["name"] == "other" and "counters" in feed:
                self.told.append((sum(lost.values()), feed["counters"]["sequences_skipped"]))

    def ended(self, child, code):
        """One that reads flipped bits may be refused, and is started again when they are mended;
        its end may be seen after that only."""
        flipped = any(harm.what == "flip" and harm.ends and not harm.over for harm in self.harms)
        if child in self.refused:
            return
        late = child.started < self.mended
        if child not in self.victims or code != REFUSED or not (flipped or late):
            super().ended(child, code)
        self.tell(f"{child.name} is refused")
        if flipped:
            self.refused.add(child)
        else:
            child.start()

    # ---- checks ------------------------------------------------------------------------------

    def check(self):
        super().check()
        for harm in self.harms:
            if harm.what == "flip" and harm.ends and not harm.over:
                for number, first in enumerate(harm.first):
                    self.damaged[number].append((first - WINDOW, float("inf")))
        plan = self.others_plan()
        check_others(self.setting.more, [read_record(path) for path in self.others_records],
                     self.folder / "other.ledger", self.deaths, plan, self.damaged)
        for lost, counted in self.told:
            check_count(lost, counted)


def check_others(more, records, ledger, deaths, plan, damaged):
    """The second feed serves all its batches, too, each once and in order."""
    events, torn = read_ledger(ledger)
    check_ledger(events, torn, deaths, plan)
    if torn == 0:
        check_explained(records, events)
    for record, when in zip(records, damaged):
        check_rows(record, plan, when)
    check_in_order(Setting("replica", len(records), 0, more["plan"], {}, 0), records, plan)
