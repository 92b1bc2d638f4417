"""Each check of checks.py finds what it is for, and passes what is right. Call: checks_test.py"""
import json
import sys
import tempfile
from pathlib import Path

from checks import Broken, Line, check_trial
from setting import Setting

PLAN = [[[0, 1], [2, 3]], [[3, 0], [1, 2]]]  # two epochs of two batches


def delivered(lease, epoch, index, pid=1, rows=None):
    return {"event": "delivered", "pid": pid, "lease": lease, "epoch": epoch, "index": index,
            "rehearsal": False, "ordinals": rows or PLAN[epoch][index]}


def done(lease, pid=1):
    return {"event": "done", "pid": pid, "lease": lease}


def mark(what, pid=1):
    return {"event": "mark", "what": what, "pid": pid}


def line(epoch, index, pid=1, rows=None):
    rows = ",".join(map(str, rows or PLAN[epoch][index]))
    return Line(f"{pid} {epoch} {index} {rows}")


def setting(mode, workers=1, world=1):
    return Setting(mode, workers, 100, {"world": world}, {}, 0)


def complaint(mode, records, events, deaths=0, **more):
    """What check_trial() says; empty when all is well."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        ledger.write_text("".join(event if isinstance(event, str) else json.dumps(event) + "\n"
                                  for event in events))
        try:
            check_trial(setting(mode, **more), records, ledger, deaths, PLAN)
        except Broken as error:
            return str(error)
    return ""


def expect(what, text, part):
    if (part not in text) if part else text:
        sys.exit(f"{what}: found \"{text}\", expected \"{part}\"")


BATCHES = [(0, 0), (0, 1), (1, 0), (1, 1)]
ALL = [delivered(number + 1, *batch) for number, batch in enumerate(BATCHES)]
LINES = [line(*batch) for batch in BATCHES]
FINISHED = [event for number, one in enumerate(ALL) for event in (one, done(number + 1))]


def check_order():
    expect("all in order", complaint("replica", [LINES], ALL), "")
    expect("a gap", complaint("replica", [LINES[:1] + LINES[2:]], ALL), "but (0, 1) was due")
    expect("the end", complaint("replica", [LINES[:3]], ALL), "3 batches of 4")
    twice = complaint("replica", [LINES[:2] + LINES[1:]], ALL + ALL)
    expect("a batch twice", twice, "but (1, 0) was due")
    shares = [[line(0, 0), line(1, 0)], [line(0, 1), line(1, 1)]]
    expect("shares", complaint("sharded", shares, ALL, workers=2, world=2), "")
    wrong = complaint("sharded", shares[::-1], ALL, workers=2, world=2)
    expect("another's share", wrong, "but (0, 0) was due")


def check_contents():
    other = [line(0, 0, rows=[0, 2])] + LINES[1:]
    expect("other rows", complaint("replica", [other], ALL), "recorded, but not as planned")
    told = [delivered(1, 0, 0, rows=[0, 2])] + ALL[1:]
    expect("other rows told", complaint("replica", [LINES], told), "delivered, but not as planned")
    expect("not delivered", complaint("replica", [LINES], ALL[:3]), "delivered 0")
    expect("a torn line", complaint("replica", [LINES], ALL + ['{"ev\n']), "1 torn lines")
    expect("torn by a death", complaint("replica", [LINES], ALL + ['{"ev\n'], deaths=1), "")


def check_queue():
    expect("all done", complaint("queue", [LINES], FINISHED), "")
    expect("never", complaint("queue", [LINES[1:]], FINISHED[2:]), "(0, 0) was never delivered")
    expect("not done", complaint("queue", [LINES], FINISHED[:-1]), "1 batches are not done")
    expect("not told", complaint("queue", [LINES], FINISHED[:-1], deaths=1), "")
    expect("not trained on", complaint("queue", [LINES[1:]], FINISHED), "1 has not trained on it")
    late = FINISHED + [delivered(9, 0, 0)]
    expect("after done", complaint("queue", [LINES], late), "delivered after it was done")
    expect("a lease twice", complaint("queue", [LINES], FINISHED + [delivered(4, 1, 1)]),
           "a lease was given twice")
    expect("done twice", complaint("queue", [LINES], FINISHED + [done(4)]), "done twice")
    others = [ALL[0], done(1, pid=2)]
    expect("another's done", complaint("queue", [LINES[:1]], others), "by another")
    expect("done of nothing", complaint("queue", [[]], [done(7)]), "never delivered")


def check_second_deliveries():
    lines = [line(0, 0, pid=2)] + LINES[1:]
    rest = FINISHED[2:]

    def given_again(before=(), between=(), behind=()):
        events = [*before, delivered(8, 0, 0), *between, delivered(9, 0, 0, pid=2),
                  done(9, pid=2), *rest, *behind]
        return complaint("queue", [lines], events, deaths=0)

    expect("nobody was lost", given_again(), "was delivered again, and nobody was lost")
    expect("another was lost", given_again(between=[mark("killed", 2)]), "nobody was lost")
    expect("he was killed", given_again(between=[mark("killed")]), "")
    expect("the daemon died", given_again(between=[mark("daemon")]), "")
    expect("it died before", given_again(before=[mark("daemon")]), "nobody was lost")
    expect("he goes on", given_again(behind=[mark("ended")]), "nobody was lost")


if __name__ == "__main__":
    check_order()
    check_contents()
    check_queue()
    check_second_deliveries()
