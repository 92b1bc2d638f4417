"""Each check of checks.py finds what it is for, and passes what is right. Call: checks_test.py"""
import json
import sys
import tempfile
from pathlib import Path

from checks import Broken, Line, check_trial
from damage import check_count, check_others, check_rows
from growth import check_growth, plan_of_epoch
from keyed import check_stranger
from loops import part_of_training
from setting import Setting
from trial import Progress, Stuck

PLAN = [[[0, 1], [2, 3]], [[3, 0], [1, 2]]]  # two epochs of two batches


def delivered(lease, epoch, index, pid=1, rows=None):
    return {"event": "delivered", "pid": pid, "lease": lease, "epoch": epoch, "index": index,
            "rehearsal": False, "ordinals": rows or PLAN[epoch][index]}


def done(lease, pid=1):
    return {"event": "done", "pid": pid, "lease": lease}


def returned(lease, pid=1):
    return {"event": "returned", "pid": pid, "lease": lease}


def mark(what, pid=1, **more):
    return {"event": "mark", "what": what, "pid": pid, **more}


def text(epoch, index, pid=1, rows=None, lost=0, plan="f", attempt=None):
    rows = ",".join(map(str, rows or PLAN[epoch][index]))
    attempt = "" if attempt is None else f" {attempt}"
    return f"{pid} {epoch} {index} {rows} {plan} {lost}{attempt}"


def line(*place, **more):
    return Line(text(*place, **more))


def broken(check, *arguments):
    """What a check says; empty when all is well."""
    try:
        check(*arguments)
    except (Broken, Stuck) as error:
        return str(error)
    return ""


def setting(mode, workers=1, world=1):
    return Setting(mode, workers, 100, {"world": world}, {}, 0)


def complaint(mode, records, events, deaths=0, **more):
    """What check_trial() says; empty when all is well."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        ledger.write_text("".join(event if isinstance(event, str) else json.dumps(event) + "\n"
                                  for event in events))
        return broken(check_trial, setting(mode, **more), records, ledger, deaths, PLAN)


def expect(what, found, part):
    if (part not in found) if part else found:
        sys.exit(f"{what}: found \"{found}\", expected \"{part}\"")


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
    less = [line(0, 0, lost=1)] + LINES[1:]
    expect("a lost row", complaint("replica", [less], ALL), "recorded, but not as planned")
    mixed = [LINES[0], line(0, 1, plan="g"), *LINES[2:]]
    expect("two plans", complaint("replica", [mixed], ALL), "epoch 0 has the plans f and g")
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
    expect("he gave it back", given_again(between=[returned(8)]), "")
    expect("another was given back", given_again(between=[delivered(7, 0, 0), returned(7)]),
           "nobody was lost")
    expect("he may have lost it", given_again(between=[mark("troubled")]), "")
    expect("another may have", given_again(between=[mark("troubled", 2)]), "nobody was lost")


def check_loops():
    """Steps of one batch. What lies after the state that a job began with again is not counted."""
    first = [text(*batch) for batch in BATCHES[:3]]
    again = ["resume 0 1", text(0, 1, 2), text(1, 0, 2), text(1, 1, 2)]
    kept = part_of_training(["resume 0 0", *first, *again], 1)
    expect("a second attempt", str([one.batch for one in kept] == BATCHES), "True")
    expect("of the second", str([one.process for one in kept] == [1, 2, 2, 2]), "True")
    given = ALL + [delivered(5, 0, 1, 2), delivered(6, 1, 0, 2), delivered(7, 1, 1, 2)]
    expect("all is trained on", complaint("sharded", [kept], given), "")
    gap = part_of_training([*first[:1], "resume 1 0", text(1, 0)], 1)
    expect("a state too late", complaint("sharded", [gap], ALL), "but (0, 1) was due")
    early = part_of_training([*first, "resume 0 1", text(1, 0, 2)], 1)
    expect("not from the state on", complaint("sharded", [early], given), "but (0, 1) was due")


def check_progress():
    def goes_on(*looks):
        progress = Progress(0, patience=10)
        return broken(lambda: [progress.look(*look) for look in looks])

    expect("it goes on", goes_on((1, 9), (2, 18), (3, 27)), "")
    expect("it stands still", goes_on((1, 9), (1, 20)), "no batch for 10 s")
    expect("from the start", goes_on((0, 11)), "no batch for 10 s")
    expect("something is stopped", goes_on((1, 9), (1, 18, True), (1, 27)), "")


def check_damage():
    def rows(record, damaged=((0, 9),)):
        return broken(check_rows, record, PLAN, damaged)

    lacks = [line(0, 0), line(0, 1, rows=[3], lost=1)]
    expect("whole", rows([line(0, 0)], []), "")
    expect("a row is lost", rows(lacks), "")
    expect("it is lost before the damage", rows(lacks, [(2, 9)]), "and its data were whole")
    expect("it is lost after it", rows(lacks, [(0, 1)]), "and its data were whole")
    expect("not told", rows([line(0, 1, rows=[3])]), "lacks 1 rows and says 0")
    expect("told too much", rows([line(0, 1, lost=1)]), "lacks 0 rows and says 1")
    expect("another's row", rows([line(0, 1, rows=[2, 0])]), "rows that are not planned")
    expect("counted", broken(check_count, 2, 2), "")
    expect("not counted", broken(check_count, 2, 1), "the daemon counted 1")

    def others(record, events):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Path(folder) / "ledger"
            ledger.write_text("".join(json.dumps(event) + "\n" for event in events))
            return broken(check_others, {"plan": {"world": 1}}, [record], ledger, 0, PLAN, [[]])

    expect("the second feed", others(LINES, ALL), "")
    expect("its end is missing", others(LINES[:3], ALL), "3 batches of 4")
    expect("it was not delivered", others(LINES, ALL[1:]), "delivered 0")
    expect("otherwise planned", others(LINES, [delivered(1, 0, 0, rows=[2, 0]), *ALL[1:]]),
           "delivered, but not as planned")


def check_growing():
    """A plan of so many sequences: one a batch."""
    def of_first(sequences):
        return [[row] for row in range(sequences)]

    def found(events, states=(2, 4)):
        return broken(plan_of_epoch, events, 0, of_first, states)

    told = [delivered(row + 1, 0, row, rows=[row]) for row in range(4)]
    expect("a state", str(plan_of_epoch(told, 0, of_first, (2, 4))[0]), "4")
    expect("half a commit", found(told[:3], states=(2, 3)), "")
    expect("no such state", found(told, states=(2, 3)), "no state that was committed")
    expect("rows of two plans", found([delivered(1, 0, 0, rows=[1]), *told[1:]]),
           "no state that was committed")
    expect("planned anew", found([*told, delivered(9, 0, 0, rows=[2])]), "planned anew")
    expect("nothing", found([]), "nothing of epoch 0")

    commits = [{**mark("committed"), "sequences": 4}, delivered(1, 0, 0)]
    expect("it grows", broken(check_growth, (2, 2, 4), commits), "")
    expect("it shrinks", broken(check_growth, (4, 2), []), "epoch 1 has 2 sequences")
    expect("it does not follow", broken(check_growth, (2, 2, 2), commits), "4 were committed")
    expect("too late", broken(check_growth, (2, 2, 2), commits[::-1]), "")


def check_keys():
    expect("nothing for it", broken(check_stranger, {9}, [], ALL), "")
    expect("trained", broken(check_stranger, {9}, LINES, ALL), "a stranger was given [(0, 0)")
    expect("delivered", broken(check_stranger, {9}, [], [*ALL, delivered(5, 1, 1, pid=9)]),
           "given to a stranger")


if __name__ == "__main__":
    check_order()
    check_contents()
    check_queue()
    check_second_deliveries()
    check_loops()
    check_progress()
    check_damage()
    check_growing()
    check_keys()
