"""Trials in which a writer appends to the dataset while its epochs are delivered."""
import shutil

from checks import check_trial, expect, read_ledger, read_record
from events import (KINDS, draw_events, kill_all_workers, kill_other, kill_worker, stop_daemon,
                    stop_other, stop_worker)
from setting import (GROWING_EPOCHS, LARGE, MODES, committed_states, draw_setting,
                     planned_of_first)
from trial import Child, Trial, record_bytes

WRITERS = (kill_other, kill_other, kill_other, stop_other)
# What was decided of an epoch dies with a daemon, except for a queue's: trainers that
# are asked again for one of which they had a part may then be refused.
WITHOUT_DEATHS = (kill_worker, kill_worker, kill_all_workers, stop_worker, stop_daemon)
MIDDLE = (committed_states()[0] + LARGE) // 2


def batches_of(events, epoch):
    """By index, what was delivered of an epoch. Errors: Broken, of two plans."""
    found = {}
    for event in events:
        if event["event"] == "delivered" and event["epoch"] == epoch:
            rows = found.setdefault(event["index"], event["ordinals"])
            expect(rows == event["ordinals"], f"the epoch was planned anew: {event}")
    return found


def plan_of_epoch(events, epoch, plan_of_first, states):
    """How many sequences the epoch has, one of `states`, and its plan by `plan_of_first`."""
    batches = batches_of(events, epoch)
    expect(batches, f"nothing of epoch {epoch} was delivered")
    least = 1 + max(row for rows in batches.values() for row in rows)
    for sequences in [count for count in states if count >= least]:
        plan = plan_of_first(sequences)
        if all(index < len(plan) and plan[index] == rows for index, rows in batches.items()):
            return sequences, plan
    expect(False, f"epoch {epoch} is of no state that was committed")


def check_growth(counts, events):
    """Epochs have what the ones before them had, and what was there before the epoch before the
    last one began: the epoch between may be planned while that one is served."""
    for epoch, (before, count) in enumerate(zip(counts, counts[1:]), start=1):
        expect(count >= before, f"epoch {epoch} has {count} sequences, the one before {before}")
    for epoch in range(2, len(counts)):
        known = 0
        for event in events:
            if event["event"] == "mark" and event["what"] == "committed":
                known = event["sequences"]
            elif event["event"] == "delivered" and event["epoch"] >= epoch - 2:
                break
        expect(counts[epoch] >= known, f"epoch {epoch} has {counts[epoch]} sequences, and {known} "
                                       f"were committed before epoch {epoch - 2} began")


class Growth(Trial):
    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, draw.choice(MODES), GROWING_EPOCHS)
        setting.feed["follow"] = True
        setting.more = {"pause_ms": draw.choice((2, 10, 40))}
        kinds = (KINDS if setting.mode == "queue" else WITHOUT_DEATHS) + WRITERS
        return setting, draw_events(draw, setting.workers, setting.grace_ms, kinds)

    def make_workers(self):
        shutil.copytree(self.home.growing, self.dataset)
        self.others = [Child("writer", [
            self.home.programs / "chaos_writer", self.dataset, str(LARGE),
            str(self.setting.more["pause_ms"]), self.folder / "ledger"], self.folder)]
        return super().make_workers()

    @property
    def dataset(self):
        return self.folder / "growing"

    def _plan(self, epoch, sequences):
        return planned_of_first(self.setting.plan, epoch, sequences, self.home.programs)

    def bytes_to_come(self):
        copies = self.setting.workers if self.setting.mode == "replica" else 1
        return copies * record_bytes([self._plan(0, MIDDLE)]) * GROWING_EPOCHS

    def check(self):
        events, _ = read_ledger(self.folder / "ledger")
        counts, plans = [], []
        for epoch in range(GROWING_EPOCHS):
            count, plan = plan_of_epoch(
                events, epoch, lambda sequences, epoch=epoch: self._plan(epoch, sequences),
                committed_states())
            counts.append(count)
            plans.append(plan)
        check_growth(counts, events)
        check_trial(self.setting, [read_record(path) for path in self.records],
                    self.folder / "ledger", self.deaths, plans)
