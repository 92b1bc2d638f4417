"""Each check of live/live_checks.py finds what it is for, and passes what is right."""
import copy
import json
import sys
import tempfile
from pathlib import Path

from checks import Broken
from live.live_checks import AT_MOST_ONCE, EXACTLY_ONCE, check_live, read_made, read_trained
from setting import Setting

GROUP = 7
# Three items in step 0, of which two are a group; and one that was taken back.
MADE = ["begin 11 100 0", f"offer 0 100 5 0 {GROUP} 2", f"offer 1 100 6 0 {GROUP} 2", "took 0 100 0",
        "took 1 100 1", f"offer 2 100 7 1 {2**64 - 1} 0", "took 2 100 2",
        f"offer 3 100 8 1 {2**64 - 1} 0", "took 3 100 3", "back 3", "made", "outcomes 100 3335",
        "totals 100 4 0 0 0 3 0 1 0"]


def row(number, version=0, weight=1.0, group=GROUP, item=None):
    item = number if item is None else item
    return ["actor0", number, f"actor0/{item}", version, weight, group, 5 + item]


def batch(index, rows, version=1, rank=0, incarnation=100, world=2):
    return {"pid": 1, "rank": rank, "incarnation": incarnation, "index": index, "world": world,
            "version": version, "attempt": 0, "fingerprint": "f", "rows": rows}


TRAINED = [{"life": 21}, batch(0, [row(0), row(1)]), batch(1, [row(2, version=1, group=None)])]


def complaint(made=MADE, trained=TRAINED, promise=AT_MOST_ONCE, deaths=0, mode="replica", **live):
    """What check_live() says; empty when all is well."""
    setting = Setting(mode, 2, 100, {"world": 2}, {}, 0)
    setting.worker = [["name=actor0"], [f"mode={mode}", f"ranks={2 if mode == 'sharded' else 1}"]]
    setting.more = {"live": {"groups": "step", "max_staleness": 1, "stale": "drop", **live}}
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "made", Path(folder) / "trained"
        first.write_text("".join(line + "\n" for line in made))
        second.write_text("".join(json.dumps(line) + "\n" for line in trained))
        try:
            check_live(setting, [read_made(first)], [read_trained(second)], promise, deaths)
        except Broken as error:
            return str(error)
    return ""


def changed(lines, place, line):
    return [*lines[:place], line, *lines[place + 1:]]


def edited(place, **more):
    trained = copy.deepcopy(TRAINED)
    trained[place].update(more)
    return trained


def expect(text, **case):
    found = complaint(**case)
    if (text not in found) if text else found:
        sys.exit(f"{case}: {found!r}, and it should say {text!r}")


def main():
    expect("")
    expect("", promise=EXACTLY_ONCE)
    alone = row(2, version=1, group=None)
    expect("never offered", trained=edited(2, rows=[row(2, item=9)]))
    expect("is not what was offered", trained=edited(2, rows=[row(2, version=0, group=None)]))
    expect("has the number of item", trained=edited(2, rows=[row(1, 1, group=None, item=2)]))
    expect("is two", trained=[*TRAINED, {"life": 22}, *edited(2, version=2)[1:]])
    expect("two daemons", deaths=1, trained=[
        *TRAINED, {"life": 22}, batch(0, [row(0), row(1)], incarnation=200)],
        made=[*MADE[:11], "gone 0", "gone 1", *MADE[11:]])
    expect("is in steps", trained=[*TRAINED, batch(2, [alone]), batch(3, [alone])])
    expect("times in step", trained=edited(2, rows=[alone, alone]))
    expect("", trained=edited(2, rows=[alone, row(2, version=1, weight=0, group=None)]))
    expect("the bound is 0", max_staleness=0)
    expect("the bound is 0", max_staleness=0, stale="zero")
    expect("", max_staleness=0, stale="zero",
           trained=edited(1, rows=[row(0, weight=0), row(1, weight=0)]))
    torn = [TRAINED[0], batch(0, [row(0)]), batch(1, [row(1), alone])]
    expect("", trained=torn)
    expect("is torn", trained=torn, groups="batch")
    expect("1 of 2 members", trained=edited(1, rows=[row(0)]))
    expect("another world", trained=[TRAINED[0], batch(0, [row(0), row(1), alone], world=1)])
    expect("comes behind", trained=[TRAINED[0], TRAINED[2], TRAINED[1]])
    expect("within a step", trained=[TRAINED[0], batch(1, [alone])])
    expect("ends within a step", trained=TRAINED[:2])
    ranks = [TRAINED[0], TRAINED[1], batch(1, [alone], rank=1)]
    expect("", trained=ranks, mode="sharded")
    expect("unequal steps", trained=ranks[:2], mode="sharded")
    expect("totals", made=[*MADE[:-1], "totals 100 4 0 1 0 2 0 1 0"])
    expect("totals", made=changed(MADE, -2, "outcomes 100 333"))
    expect("totals", made=changed(MADE, -2, "outcomes 100 0335"))
    expect("", made=["begin 11 100 0", *MADE[1:11], "begin 12 100 4", "outcomes 100 0335", MADE[-1]])
    expect("its outcome is 4", made=[*changed(MADE, -2, "outcomes 100 3435")[:-1],
                                     "totals 100 4 0 0 0 2 1 1 0"])
    expect("is done, and nobody had it", made=[*changed(MADE, -2, "outcomes 100 3333")[:-1],
                                               "totals 100 4 0 0 0 4 0 0 0"])
    forgotten = ["begin 10 99 0", f"offer 9 99 5 0 {2**64 - 1} 0", "took 9 99 0", *MADE]
    expect("", made=forgotten, deaths=1)
    expect("incarnations, 0 deaths", made=forgotten)
    expect("a restart forgot", made=forgotten, deaths=1, promise=EXACTLY_ONCE)


if __name__ == "__main__":
    main()
