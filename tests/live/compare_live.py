"""Compares `batchwright live replay` with the model, log by log.

Call: compare_live.py [--logs N] [--seed S] BATCHWRIGHT...

First come the cases of data/cases.json, then N random logs, and N / 3 with lanes. One that differs is made as short as it
can be, and printed.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path

import model
from random_logs import lane_settings, random_case

CASES = Path(__file__).parent / "data" / "cases.json"
AT_ONCE = 250


def comparable(result):
    """Without the texts that are for people."""
    if "refused" in result: return "refused"
    answers = [{**a, "why": ""} if a["answer"] == "refused" else a for a in result["answers"]]
    return json.loads(json.dumps({**result, "answers": answers}))


def replayed(command, cases):
    """What the command makes of the cases' settings and logs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        bare = [{"name": c["name"], "settings": c["settings"], "log": c["log"]} for c in cases]
        path.write_text(json.dumps(bare), encoding="utf-8")
        run = subprocess.run([*command, "live", "replay", str(path), "--json"], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if run.returncode != 0:
        return [{"failed": run.stderr.decode(errors="replace")}] * len(cases)
    return [case["expect"] for case in json.loads(run.stdout)]


def differs(command, case):
    """Whether the two differ; the model is asked again."""
    try:
        want = model.run(case["settings"], case["log"])
    except (KeyError, IndexError, ValueError):  # too much was left out for the model
        return False
    got, = replayed(command, [case])
    return "failed" in got or comparable(got) != comparable(want)


def shortened(command, case):
    """Fewer events, and fewer settings, that still differ."""
    log, size = case["log"], max(1, len(case["log"]) // 2)
    while size >= 1:
        start, found = 0, False
        while start < len(log):
            fewer = log[:start] + log[start + size:]
            if differs(command, {**case, "log": fewer}):
                log, found = fewer, True
            else:
                start += size
        size = size if found and size == 1 else size // 2
    settings = dict(case["settings"])
    for key in [key for key in settings if key != "step"]:
        fewer = {k: v for k, v in settings.items() if k != key}
        if differs(command, {**case, "settings": fewer, "log": log}): settings = fewer
    return {**case, "settings": settings, "log": log}


def explain(command, case):
    case = shortened(command, case)
    got, = replayed(command, [case])
    want = model.run(case["settings"], case["log"])
    print(f"{case['name']} differs\nsettings {json.dumps(case['settings'])}")
    for number, event in enumerate(case["log"]): print(f"  {number}: {json.dumps(event)}")
    for key in want:
        if "refused" in want or got.get(key) != want[key]:
            print(f"{key}\n  model   {json.dumps(want[key])}\n  command {json.dumps(got.get(key, got))}")


def compare(command, cases):
    """The number of cases that differ; the first of them is explained."""
    wrong = [case for case, got in zip(cases, replayed(command, cases))
             if "failed" in got or comparable(got) != comparable(case["expect"])]
    # Where the command fails, all of its cases do, and most of them not by themselves.
    alone = (c for c in sorted(wrong, key=lambda c: len(c["log"])) if differs(command, c))
    for case in alone:
        explain(command, case)
        break
    return len(wrong)


def random_cases(logs, seed):
    for first in range(0, logs, AT_ONCE):
        names = range(first, min(first + AT_ONCE, logs))
        yield [random_case(random.Random(f"{seed} {i}"), f"log {i} of seed {seed}") for i in names]


def lane_cases(logs, seed):
    for first in range(0, logs, AT_ONCE):
        yield [random_case(random.Random(f"lanes {seed} {i}"), f"lanes {i} of seed {seed}",
                           lane_settings) for i in range(first, min(first + AT_ONCE, logs))]


def reached(seen, case):
    """Counts what logs have come to, so that logs which reach nothing are noticed."""
    result = case["expect"]
    limits = {number for number, e in enumerate(case["log"]) if e["do"] == "limits"}
    seen["refused settings"] += "refused" in result
    seen["limits"] += len(limits)
    seen["step: by limits"] += sum(s["after"] in limits for s in result.get("steps", []))
    for step in result.get("steps", []):
        seen[f"step: {step['why']}"] += 1
        seen["zeroed"] += len(step["zeroed"])
        seen["filler"] += len(step["filler"])
        rows = [flags for of_rank in step.get("flags", []) for flags in of_rank]
        seen["lane goes on"] += rows.count(0) > sum(batch.count(None) for batch in step["batches"])
        seen["lane is free"] += any(None in batch for batch in step["batches"])
    for answer in result.get("answers", []): seen[f"answer: {answer['answer']}"] += 1
    for drop in result.get("dropped", []): seen[f"{drop['outcome']}: {drop['why']}"] += 1


REACHED = ["refused settings", "limits", "step: by limits", "zeroed", "filler", "lane goes on", "lane is free", "dropped_stale: stale", "dropped_stale: late",
           "abandoned: late", "abandoned: asked", "abandoned: incomplete",
           *(f"step: {why}" for why in ("full", "end", "pool", "linger", "starved")),
           *(f"answer: {what}" for what in ("accepted", "duplicate", "refused", "granted",
                                            "timed_out", "ended", "step", "end"))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    wrong, seen = compare(given.command, cases), Counter()
    for chunk in chain(random_cases(given.logs, given.seed),
                       lane_cases(given.logs // 3, given.seed)):
        for case in chunk: reached(seen, case)
        wrong += compare(given.command, chunk)
        if wrong: break
    for what in REACHED:
        print(f"{what:24} {seen[what]}")
        if given.logs >= 500 and seen[what] == 0: sys.exit(f"no log has come to {what}")
    print(f"{len(cases)} cases and {given.logs} logs, a third as many with lanes; {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
