"""Trials in which the journal of a queue is damaged while no daemon has it open."""
import random
import struct
import subprocess
import time
from collections import Counter

from checks import expect, read_ledger
from events import KINDS, draw_events
from setting import draw_setting
from trial import PATIENCE, Stuck, Trial
from undone import make_returning

RECORD, PAGE, HEAD = 32, 4096, 64  # the head: plan and epoch
EPOCH, GIVEN, DONE, RETURNED = 1, 2, 3, 4  # kinds of records
MOST_TORN = 6  # records that are damaged at the end
REFUSES = 3  # exit code of a worker
LOOK = 3  # seconds within which a daemon looks again at a feed that is absent
PAUSE = 0.1  # seconds, for which a refused worker is away


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def sound_records(content):
    whole = (content[at:at + RECORD] for at in range(0, len(content) // RECORD * RECORD, RECORD))
    return [record for record in whole
            if struct.unpack_from("<I", record)[0] == crc32c(record[4:])]


class Journal:
    """What the sound records of a journal say."""

    def __init__(self, content):
        self.records = sound_records(content)
        self.epoch = 0
        self.done = set()
        self.undone = Counter()  # by batch: how often it came back
        out = {}  # by lease: batch and owner
        for record in self.records:
            _, kind, lease, second, owner = struct.unpack("<IIQQQ", record)
            if kind == EPOCH:
                self.epoch = second
            elif kind == GIVEN:
                out = {key: held for key, held in out.items() if held[0] != second}
                out[lease] = (second, owner)
            elif kind in (DONE, RETURNED) and out.get(lease, (0, None))[1] == owner:
                batch = out.pop(lease)[0]
                if kind == DONE:
                    self.done.add(batch)
                    del self.undone[batch]
                else:
                    self.undone[batch] += 1


def zeros_at_end(content, draw):
    """A power cut took what was written last: zeros to the end of a page."""
    kept = draw.randint(max(HEAD, len(content) - MOST_TORN * RECORD), len(content) - 1)
    return content[:kept] + bytes(-kept % PAGE or PAGE)


def zeros_before_page(content, draw):
    """A power cut took a page of which a later one is there."""
    pages = range(PAGE, len(content) - RECORD + 1, PAGE)
    if not pages:
        return zeros_at_end(content, draw)
    end = draw.choice(pages)
    begin = max(HEAD, end - RECORD * draw.randint(1, 40))
    return content[:begin] + bytes(end - begin) + content[end:]


def cut(content, draw):
    return content[:draw.randint(max(HEAD, len(content) - MOST_TORN * RECORD), len(content) - 1)]


def flip(content, places, draw):
    changed = bytearray(content)
    changed[draw.choice(places)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def flip_last(content, draw):
    """It cannot be told from what a death leaves."""
    return flip(content, range(len(content) - RECORD, len(content)), draw)


def flip_before(content, draw):
    """Sound records follow."""
    return flip(content, range(len(content) - RECORD), draw)


REFUSED = (flip_before,)
HARMS = (zeros_at_end, zeros_before_page, cut, flip_last, flip_before, flip_before)


def forgotten(before, after):
    """What a queue that goes on with `after` no longer knows, as a mark for the ledger."""
    undone = {str(batch): times for batch, times in after.undone.items()}
    return {"epoch": before.epoch, "batches": sorted(before.done - after.done), "undone": undone}


def check_refused(events):
    """Nothing is served by a journal that is damaged, until it is good again."""
    refused = False
    for event in events:
        if event["event"] == "mark":
            refused = event["what"] == "refused" or refused and event["what"] != "mended"
        else:
            expect(not refused, f"served with a damaged journal: {event}")


class Damaged:
    """A journal that is to be refused, until we mend it."""

    def __init__(self, good, bad, log_bytes, draw):
        self.good, self.bad = good, bad
        self.log_bytes = log_bytes  # of the daemon's log before
        self.began = time.monotonic()
        self.seconds = draw.uniform(0, 0.4)  # for which it stays so when it is refused
        # Without its first records nothing can be salvaged.
        self.salvage = bad[:HEAD] == good[:HEAD] and draw.random() < 0.6
        self.refused_at = None


class Journals(Trial):
    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, "queue")
        setting.plan["size" if "size" in setting.plan else "max_frames"] = (
            1 if "size" in setting.plan else 40)  # many batches: the journal has several pages
        for words in setting.worker:
            if draw.random() < 0.5:
                make_returning(draw, words)
        setting.more = {"seed": draw.randrange(10000)}
        kinds = KINDS + 6 * (damage_journal,)
        events = draw_events(draw, setting.workers, setting.grace_ms, kinds)
        if not any(event.kind is damage_journal for event in events):
            events[0].kind = damage_journal
        return setting, events

    def make_workers(self):
        self.random = random.Random(self.setting.more["seed"])
        self.journal = self.folder / "journal"
        self.damaged = None
        self.mended_at = 0
        self.refused = {}  # workers, and when they come again
        return super().make_workers()

    def is_paused(self):
        return self.damaged is not None or super().is_paused()

    # ---- damage ------------------------------------------------------------------------------

    def damage(self):
        daemon = self.daemon
        if self.damaged or not daemon.runs or daemon.killed:
            return
        self.kill(daemon)
        daemon.process.wait()
        content = self.journal.read_bytes() if self.journal.exists() else b""
        if len(content) <= HEAD:
            return
        harm = self.random.choice(HARMS)
        bad = harm(content, self.random)
        self.tell(f"journal of {len(content)} bytes: {harm.__name__}")
        self.figures[f"journals: {harm.__name__.replace('_', ' ')}"] += 1
        if harm in REFUSED:
            self.mark("refused", daemon)
            self.damaged = Damaged(content, bad, daemon.log.stat().st_size, self.random)
        else:
            self.forget(content, bad)
        self.journal.write_bytes(bad)

    def forget(self, before, after):
        lost = forgotten(Journal(before), Journal(after))
        self.figures["batches forgotten"] += len(lost["batches"])
        self.mark("forgotten", self.daemon, lost)

    def look(self):
        damaged, now = self.damaged, time.monotonic()
        for worker in [worker for worker, due in self.refused.items() if now >= due]:
            del self.refused[worker]
            worker.start()
        if damaged is None:
            return
        if damaged.refused_at is None:
            with open(self.daemon.log, "rb") as log:
                log.seek(damaged.log_bytes)
                if f"journal {self.journal}: it is damaged".encode() in log.read():
                    damaged.refused_at = now
                elif now - damaged.began > PATIENCE:
                    raise Stuck(f"the daemon does not refuse its journal\n{self.describe()}")
        elif now - damaged.refused_at > damaged.seconds:
            self._mend(damaged)

    def _mend(self, damaged):
        """With its good bytes, or with what is sound of it."""
        expect(self.journal.read_bytes() == damaged.bad, "a refused journal was changed")
        mended = self.folder / "journal.mended"
        if damaged.salvage:
            subprocess.run([self.home.programs / "batchwright", "journal", self.journal,
                            "--salvage", mended], check=True, stdout=subprocess.DEVNULL)
            content = mended.read_bytes()
            expect(content == b"".join(sound_records(damaged.bad)),
                   "what was salvaged is not what was sound")
            self.forget(damaged.good, content)
        else:
            mended.write_bytes(damaged.good)
        self.tell("the journal is salvaged" if damaged.salvage else "the journal is as it was")
        self.mark("mended", self.daemon)
        mended.rename(self.journal)
        self.damaged = None
        self.mended_at = time.monotonic()

    def ended(self, child, code):
        """Until its journal is good, and the daemon has looked, a queue refuses its workers by
        name: they come again."""
        if child in self.refused:
            return
        now = time.monotonic()
        told = child.log.read_text(errors="replace").rpartition("chaos_worker: ")[2]
        by_name = f"journal {self.journal}: it is damaged" in told
        may_be = self.damaged is not None or child.started < self.mended_at + LOOK
        if code != REFUSES or not by_name or not may_be:
            super().ended(child, code)
        self.mark("ended", child)
        self.tell(f"{child.name} is refused")
        self.figures["workers refused"] += 1
        self.refused[child] = now + PAUSE

    def check(self):
        super().check()
        check_refused(read_ledger(self.folder / "ledger")[0])


def damage_journal(trial, _, __):
    trial.damage()
