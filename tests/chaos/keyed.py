"""Trials over TCP with CURVE keys, beside local workers, and a stranger that no one let in."""
import json
import subprocess

from checks import expect, read_ledger, read_record
from events import draw_events
from setting import MODES, draw_setting
from trial import Trial


def make_keys(folder, names, programs):
    for name in names:
        subprocess.run([programs / "batchwright", "keygen", "--into", folder / name], check=True,
                       stdout=subprocess.DEVNULL)


def check_stranger(processes, record, events):
    """Nothing was given to one of these."""
    expect(not record, f"a stranger was given {[line.batch for line in record[:3]]}")
    for event in events:
        expect(event["event"] == "mark" or event["pid"] not in processes,
               f"given to a stranger: {json.dumps(event)}")


class Keyed(Trial):
    @staticmethod
    def draw(draw, kind):
        setting = draw_setting(draw, draw.choice(MODES))
        remote = draw.randrange(setting.workers)  # at least this one
        for number, words in enumerate(setting.worker):
            if "tcp=1" in words:
                words.remove("tcp=1")
            if number == remote or draw.random() < 0.5:
                words.append("tcp=1")
        return setting, draw_events(draw, setting.workers, setting.grace_ms)

    def make_workers(self):
        folder = self.folder
        make_keys(folder, ("server", "trainer", "stranger"), self.home.programs)
        self.setting.daemon = {"insecure": False,
                               "curve_secret_key_file": str(folder / "server.secret"),
                               "authorized_keys_file": str(folder / "trainer.public")}
        keys = [f"server={folder / 'server.public'}", f"keys={folder / 'trainer'}"]
        stranger = ["mode=replica", "epochs=1", "tcp=1", keys[0], f"keys={folder / 'stranger'}"]
        self.others = [self.worker(0, stranger, "stranger", "stranger.record")]
        return [self.worker(number, words + (keys if "tcp=1" in words else []))
                for number, words in enumerate(self.setting.worker)]

    def check(self):
        super().check()
        events, _ = read_ledger(self.folder / "ledger")
        check_stranger({other.process.pid for other in self.others},
                       read_record(self.folder / "stranger.record0"), events)
