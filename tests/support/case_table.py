"""What the programs have in common that try cases and print a line of a table for each."""
import subprocess
import time

PATIENCE = 90  # seconds for any one thing to happen


class Failed(Exception):
    """A case did not go as it should."""


class Skipped(Exception):
    """A case needs something that is not here."""


def expect(condition, what):
    """`what` is said where the condition does not hold."""
    if not condition:
        raise Failed(what)


def until(condition, what, seconds=PATIENCE, also=lambda: ""):
    """The value of `condition`, once it is true. `also` is asked for what else there is to say."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"waited {seconds:.0f} s for {what} {also()}")
        time.sleep(0.01)
    return value


def call(*words, **options):
    """What a program prints; it has to succeed."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **options)
    expect(done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr}")
    return done.stdout


def run_case(name, case, width):
    """Calls the case, which returns its figures, and prints its line. Returns whether nothing went
    wrong."""
    began = time.monotonic()
    try:
        verdict, text = "ok", case()
    except Skipped as error:
        verdict, text = "skipped", str(error)
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
        verdict, text = "FAILED", str(error)
    took = time.monotonic() - began
    print(f"{name:<{width}}{took:6.1f} s  {verdict:<8}{text}", flush=True)
    return verdict != "FAILED"


def print_cases(cases, width):
    """Each case's name and first sentences."""
    for name, case in cases.items():
        print(f"{name:<{width}} {' '.join(case.__doc__.split())}")
