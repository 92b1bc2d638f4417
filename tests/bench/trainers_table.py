"""The figures of tests/bench/trainers: what is compared with what, and what is wanted."""

import statistics
import typing

from served import MIB


class Figure(typing.NamedTuple):
    name: str
    mode: str  # of measurement
    key: str  # of what it found
    scale: float
    least: bool  # whether the ratio is to be at least what is wanted, or at most
    workers: float  # what is wanted against the best form with workers
    alone: float  # and without


# The first series reads a float of every page, the second one every byte.
FIGURES = [
    Figure("one trainer, GB/s", "one page", "rate", 1e-9, True, 12, 1.25),
    Figure("one trainer, CPU s a GB", "one page", "cpu", 1, False, 1 / 8, 1),
    Figure("one trainer, reads all, GB/s", "one all", "rate", 1e-9, True, 6, 1.1),
    Figure("one trainer, reads all, CPU s a GB", "one all", "cpu", 1, False, 1 / 8, 1),
    Figure("next() beside a step of 2 ms, us", "one step", "next", 1e6, False, 1 / 5, 1 / 10),
    Figure("four trainers, GB/s", "four page", "rate", 1e-9, True, 24, 2.4),
    Figure("four trainers, CPU s a GB", "four page", "cpu", 1, False, 1 / 12, 0.4),
    Figure("four trainers, read all, GB/s", "four all", "rate", 1e-9, True, 12, 1.8),
    Figure("four trainers, read all, CPU s a GB", "four all", "cpu", 1, False, 1 / 12, 0.4),
    Figure("four trainers, memory beside, MiB", "alone", "memory", 1 / MIB, False, 1, 1),
]


class Row(typing.NamedTuple):
    figure: str
    ours: float
    opponent: typing.Optional[float] = None
    form: str = ""
    ratio: typing.Optional[float] = None
    wanted: str = ""
    holds: typing.Optional[bool] = None


def values(found, figure, kind):
    """Of all rounds."""
    return [figure.scale * one[figure.key] for one in found[figure.mode].get(kind, ())]


def best(found, figure, kinds):
    """The kind whose median is best."""
    there = [kind for kind in kinds if values(found, figure, kind)]
    return (max if figure.least else min)(
        there, key=lambda kind: statistics.median(values(found, figure, kind)))


def compare(found, figure, kinds, wanted):
    """Ours with the best of `kinds`. The ratio is the median of the rounds' ratios."""
    form = best(found, figure, kinds)
    ours, theirs = values(found, figure, "ours"), values(found, figure, form)
    ratio = statistics.median(one / other for one, other in zip(ours, theirs))
    below = figure.key == "memory"
    holds = ratio >= wanted if figure.least else ratio < wanted if below else ratio <= wanted
    words = f"{'>=' if figure.least else '<' if below else '<='} {wanted:.3f}"
    return Row(figure.name, statistics.median(ours), statistics.median(theirs), form, ratio, words,
               holds)


def show(rows):
    print(f"{'figure':42} {'ours':>9} {'opponent':>9} {'ratio':>8}  wanted")
    for row in rows:
        numbers = [f"{number:9.3f}" if number is not None else " " * 9
                   for number in (row.ours, row.opponent, row.ratio)]
        verdict = "" if row.holds is None else "holds" if row.holds else "MISSED"
        print(f"{row.figure:42} {numbers[0]} {numbers[1]} {numbers[2][1:]}  "
              f"{row.wanted:9} {verdict:7} {row.form}".rstrip())
