"""Plans of order files, written from daemon/planning/DEFINITIONS.md alone, like second_planner.py."""
from second_planner import LAST, RESET, arrange, cut, spread, unroll


def read(text, lengths):
    """Rows of lists without keys as (ordinal, start, length, flags, weight), one list a line."""
    lines = []
    for line in text.splitlines():
        if line == "#" or line.startswith("# "):
            continue
        lines.append([read_row(row, lengths) for row in line.split("\t")])
    return lines


def read_row(row, lengths):
    if row == "-":
        return (0, 0, 0, 0, 1.0)
    words = row.split(" ")
    weight = float(words.pop()[1:]) if words[-1].startswith("*") else 1.0
    ordinal = int(words[0][1:])
    start, count = map(int, words[1:]) if len(words) == 3 else (0, lengths[ordinal])
    flags = (RESET if start == 0 else 0) | (LAST if start + count == lengths[ordinal] else 0)
    return (ordinal, start, count, flags, weight)


def plan(lengths, s):
    """Batches in the order of delivery, each a list of rows; those of lanes have no weight."""
    lines = read(s["order_file"], lengths)
    if s.get("cut") == "file":
        return lines
    rows = [row for line in lines for row in line]
    if "lanes" in s:
        return unroll([row[:4] for row in rows], range(len(rows)), s)
    x = [row[2] for row in rows]
    batches = arrange(spread(cut(range(len(rows)), x, s, max(x)), s), x, s, 0)
    return [[rows[i] for i in batch] for batch in batches]
