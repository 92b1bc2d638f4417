"""`batchwright plan` as a script sees it: keys, exit codes, messages. Call: plan_command.py PROGRAM"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = """epoch sequences batches frames padded_frames zpr abl padded_share dur steps
largest_batch_frames seconds""".split()


def run(program, *arguments, stdin=""):
    call = [program, "plan", *arguments]
    return subprocess.run(call, input=stdin, capture_output=True, text=True)


def expect(what, condition):
    if not condition:
        raise SystemExit(f"not so: {what}")


def check_figures(program):
    done = run(program, "--lengths", "-", "--order", "sorted", "--size", "2", "--json", "--batches",
               stdin="5\n9\n7\n2\n")
    expect("exit code 0", done.returncode == 0)
    plan = json.loads(done.stdout)
    expect("all keys", all(key in plan for key in KEYS))
    expect("line numbers, longest first", plan["batch_list"] == [[1, 2], [0, 3]])
    expect("frames", (plan["frames"], plan["padded_frames"]) == (23, 28))
    expect("rates are fractions", abs(plan["padded_share"] - 5 / 28) < 1e-12)


def check_imbalance(program):
    lengths = "".join(f"{20 + i * 37 % 500}\n" for i in range(600))
    done = run(program, "--lengths", "-", "--cut", "dynamic", "--world", "4", "--shuffle", "groups",
               "--json", stdin=lengths)
    plan = json.loads(done.stdout)
    expect("groups are what was planned", plan["rank_imbalance"] == plan["rank_imbalance_grouped"])
    expect("groups make ranks more equal",
           1 <= plan["rank_imbalance_grouped"] < plan["rank_imbalance_ungrouped"])


def check_refusals(program):
    for text, found in [("5\nfive\n", 'line 2: found "five"'), ("5\n\n6\n", 'line 2: found ""'),
                        ("0\n", 'line 1: found "0"'), ("-3\n", 'line 1: found "-3"'),
                        ("3.5\n", 'line 1: found "3.5"'), ("a\t3\n", 'line 1: found "a\\x093"'),
                        ("1\n99999999999\n", 'line 2: found "99999999999"'),
                        ("", "the list of lengths is empty")]:
        done = run(program, "--lengths", "-", stdin=text)
        expect(f"{text!r} is refused with {found}", found in done.stderr)
        expect(f"{text!r} gives exit code 2", done.returncode == 2 and done.stdout == "")
    for arguments, found in [
        (["--order", "sorted", "--bins", "3"], "bins = 3 has a meaning only with"),
        (["--order", "semi-sorted", "--randomization", "nan"], 'randomization: found "nan"'),
        (["--world", "0"], 'world: found "0", allowed: 1 to 65536'),
        (["--select", "cosine", "--usage", "0.77", "--flat-after", "7", "--floor", "0.2",
          "--epochs", "16"], "feasible: from"),
    ]:
        done = run(program, "--lengths", "-", *arguments, stdin="5\n6\n")
        expect(f"{arguments} is refused", found in done.stderr and done.returncode == 2)
    missing = run(program, "--lengths", "no/file")
    expect("a missing file is named", "no/file: the list" in missing.stderr)
    expect("and is the caller's fault", missing.returncode == 2)
    folder = run(program, "--lengths", "/")
    expect("a directory is refused", "/: found a directory" in folder.stderr)
    expect("and is the caller's fault", folder.returncode == 2)


def check_page(program):
    lengths = "".join(f"{20 + i * 37 % 500}\n" for i in range(600))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "plan.html"
        done = run(program, "--lengths", "-", "--compare", "--json", "--html", str(page),
                   stdin=lengths)
        expect("compare works", done.returncode == 0)
        strategies = json.loads(done.stdout)["strategies"]
        expect("the first is the plan as configured", strategies[0]["name"] == "as configured")
        expect("random is the measure", strategies[1]["relative_time"] == 1)
        names = " ".join(s["name"] for s in strategies)
        expect("all orders", all(word in names for word in
               ["random", "sorted", "semi-sorted", "bucket 256", "bucket-span", "bucket-optimal",
                "alternated"]))
        text = page.read_text()
        expect("the page has its data and its script", "Chart.js v" in text and "/*DATA*/" not in text)
        expect("the page loads nothing", "src=" not in text.split("<body>")[1])


def check_cuts(program):
    """Each way to cut is there, with batches of about the same size; and the one that is used."""
    lengths = "".join(f"{20 + i * 37 % 500}\n" for i in range(600))
    for cut in (["--cut", "frames", "--max-frames", "3000"], ["--size", "12"],
                ["--cut", "real-frames", "--max-frames", "3000", "--max-padded", "9000"]):
        done = run(program, "--lengths", "-", "--order", "sorted", "--compare", "--json", *cut,
                   stdin=lengths)
        expect(f"{cut} is compared: {done.stderr}", done.returncode == 0)
        rows = {s["name"]: s for s in json.loads(done.stdout)["strategies"]}
        plain = run(program, "--lengths", "-", "--order", "sorted", "--json", *cut, stdin=lengths)
        expect("as configured is the plan itself",
               rows["as configured"]["padded_frames"] == json.loads(plain.stdout)["padded_frames"])
        batches = [rows[f"random, {each}"]["batches"] for each in ("fixed", "dynamic", "frames")]
        expect(f"batches of about one size: {batches}", max(batches) < 2 * min(batches))


def check_bars(program):
    """Of few values most bars of a histogram are empty: the ends are left out."""
    done = run(program, "--lengths", "-", "--size", "2", stdin="10\n" * 20 + "4000\n")
    bars = done.stdout.split("frames of a row")[1].strip().splitlines()
    counts = [int(bar.split("..")[1].split()[1]) for bar in bars]
    expect(f"no empty ends: {counts}", counts[0] > 0 and counts[-1] > 0)
    few = run(program, "--lengths", "-", "--size", "2", stdin="10\n" * 20)
    expect("one value has one bar", len(few.stdout.split("frames of a row")[1].strip().splitlines()) == 1)


def check_small_epochs(program):
    lengths = "".join(f"{20 + i * 37 % 500}\n" for i in range(400))
    done = run(program, "--lengths", "-", "--select", "fixed", "--alpha", "0.1", "--compare",
               stdin=lengths)
    expect("few rows an epoch are compared too", done.returncode == 0)
    expect("no more bins than rows", "alternated 8" in done.stdout and
           "alternated 64" not in done.stdout)


if __name__ == "__main__":
    check_figures(sys.argv[1])
    check_refusals(sys.argv[1])
    check_page(sys.argv[1])
    check_cuts(sys.argv[1])
    check_bars(sys.argv[1])
    check_small_epochs(sys.argv[1])
    check_imbalance(sys.argv[1])
