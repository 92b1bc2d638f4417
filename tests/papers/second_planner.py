"""A second planner, written from daemon/planning/DEFINITIONS.md alone.

It is slow and says every rule once, in that page's words, so that the two can be held side by side.
"""
import math

import numpy as np

MASK = (1 << 64) - 1
SELECT, ORDER, NOISE, TIES, BUCKET, DRAW, BATCHES, GROUPS = range(1, 9)
NO_LIMIT = 2**31 - 1
RESET, LAST = 1, 2


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Stream:
    def __init__(self, seed_plus_epoch, number):
        self.state = mix((mix(seed_plus_epoch & MASK) + number) & MASK)

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return mix(self.state) >> 32

    def many_bits(self, count):
        """The next `count` of bits(), at once."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = np.uint64(self.state) + steps
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        self.state = (self.state + count * 0x9E3779B97F4A7C15) & MASK
        return (z ^ (z >> np.uint64(31))) >> np.uint64(32)

    def below(self, n):
        product = self.bits() * n
        while product % 2**32 < 2**32 % n:
            product = self.bits() * n
        return product >> 32

    def permute(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values


# ---------------------------------------------------------------- select


def cosine(x):
    q = x * x
    v = 1.0
    for k in range(14, 0, -1):
        v = 1.0 - q / ((2.0 * k - 1.0) * (2.0 * k)) * v
    return v


def cosine_sum(angle, last):
    total = 0.0
    for n in range(last + 1):
        total += cosine(angle * n)
    return total


def sweep_parameter(s):
    """alpha, beta or lambda; None where usage is infeasible."""
    kind = s["select"]
    if kind == "full":
        return 0.0
    given = {"fixed": "alpha", "linear": "beta", "cosine": "lambda"}[kind]
    if given in s:
        return s[given]
    if kind == "fixed":
        return s["usage"]
    l, c, epochs = s["flat_after"], s.get("floor", 0.0), s["epochs"]
    wanted = s["usage"] * epochs - (epochs - l - 1) * c
    if kind == "linear":
        feasible = (l + 1) / 2 <= wanted < l + 1
        return 2 * (l + 1 - wanted) / (l * (l + 1)) if feasible else None
    high = 1.5707963267948966 / l
    if not cosine_sum(high, l) <= wanted < l + 1:
        return None
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        if cosine_sum(middle, l) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def share(s, epoch):
    parameter = sweep_parameter(s)
    kind = s["select"]
    if kind == "full":
        return 1.0
    if kind == "fixed":
        return parameter
    if epoch > s["flat_after"]:
        return s.get("floor", 0.0)
    return 1 - parameter * epoch if kind == "linear" else cosine(parameter * epoch)


def select(lengths, datasets, s, epoch, seed):
    """Ordinals that the epoch uses, growing; one several times if a dataset starts again."""
    weights = s.get("mix_weights")
    if not weights:
        datasets = [len(lengths)]
    least, most = s.get("min_length", 0), s.get("max_length") or NO_LIMIT
    kept, begin = [], 0
    for size in datasets:
        kept.append([i for i in range(begin, begin + size) if least <= lengths[i] <= most])
        begin += size
    portion = share(s, epoch)
    wanted = [max(1, math.floor(portion * len(k) + 0.5)) for k in kept]
    if weights:
        ratios = [w / m for w, m in zip(wanted, weights)]
        t = min(ratios) if s.get("mix_exhausted", "wrap") == "end" else max(ratios)
        wanted = [max(1, math.floor(m * t + 0.5)) for m in weights]
    stream = Stream(seed, SELECT)
    used = []
    for ordinals, w in zip(kept, wanted):
        times, need = divmod(w, len(ordinals))
        left = len(ordinals)
        for ordinal in ordinals:
            once_more = need > 0 and (need == left or stream.below(left) < need)
            used += [ordinal] * (times + once_more)
            need -= once_more
            left -= 1
    longest = max(lengths[i] for k in kept for i in k)
    return used, longest


def chunks(ordinals, lengths, s):
    """Rows as (ordinal, start, length, flags)."""
    n = s.get("chunk", 0)
    h = s.get("hop", n)
    rows = []
    for ordinal in ordinals:
        total = lengths[ordinal]
        if n == 0:
            rows.append((ordinal, 0, total, RESET | LAST))
            continue
        count = 1 if total <= n else -(-(total - n) // h) + 1
        if count > 1 and total - (count - 1) * h < s.get("min_chunk", 0):
            count -= 1
        for j in range(count):
            size = min(n, total - j * h)
            flags = (RESET if j == 0 else 0) | (LAST if j == count - 1 else 0)
            rows.append((ordinal, j * h, size, flags))
    # The i-th row by ordinal, start, repetition.
    return sorted(rows)


# ---------------------------------------------------------------- order


def keys(x, r, stream):
    lo, hi = min(x), max(x)
    a = float(hi - lo) * r
    f = 31
    while (float(hi - lo) + a) * 2.0**f >= 2.0**32:
        f -= 1
    width = int(math.floor(a * 2.0**f))
    scaled = [(v - lo) << f if f >= 0 else (v - lo) >> -f for v in x]
    if width == 0:
        return scaled
    bits = stream.many_bits(len(x)).tolist()
    return [v + ((width * b) >> 32) for v, b in zip(scaled, bits)]


def by_key(x, r, seed):
    key = keys(x, r, Stream(seed, NOISE))
    order = sorted(range(len(x)), key=lambda i: -key[i])
    ties = Stream(seed, TIES)
    out, start = [], 0
    while start < len(order):
        end = start
        while end < len(order) and key[order[end]] == key[order[start]]:
            end += 1
        out += ties.permute(order[start:end])
        start = end
    return out


def at_random(count, seed):
    part = (Stream(seed, ORDER).many_bits(count) >> np.uint64(22)).astype(np.int64)
    stable = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=1024)).tolist()
    ties = Stream(seed, TIES)
    out, start = [], 0
    for end in ends:
        out += ties.permute(stable[start:end].tolist())
        start = end
    return out


def optimal_limits(x, k):
    """By the plainest dynamic programme there is: all pairs of places."""
    values, counts = np.unique(np.array(x), return_counts=True)
    before = [0] + np.cumsum(counts).tolist()
    values = values.tolist()
    m, k = len(values), min(k, len(values))
    best = [[None] * (m + 1) for _ in range(k + 1)]
    came = [[None] * (m + 1) for _ in range(k + 1)]
    best[0][0] = 0
    for layer in range(1, k + 1):
        for p in range(layer, m + 1):
            for q in range(layer - 1, p):
                if best[layer - 1][q] is None:
                    continue
                cost = best[layer - 1][q] + values[p - 1] * (before[p] - before[q])
                if best[layer][p] is None or cost < best[layer][p]:  # the smallest q stays
                    best[layer][p], came[layer][p] = cost, q
    limits, p = [], m
    for layer in range(k, 0, -1):
        limits.append(values[p - 1])
        p = came[layer][p]
    return limits[::-1]


def limits_of(x, s):
    if s["order"] == "bucket-optimal":
        return optimal_limits(x, s["bucket_count"])
    if "bucket_boundaries" in s:
        return s["bucket_boundaries"]
    span = s["bucket_span"]
    return sorted({((v - 1) // span + 1) * span for v in x})


def order(x, s, seed):
    """Positions of rows, bucket by bucket."""
    kind = s["order"]
    if kind == "random":
        return [at_random(len(x), seed)]
    if kind in ("sorted", "semi-sorted"):
        return [by_key(x, s.get("randomization", 0.1) if kind == "semi-sorted" else 0.0, seed)]
    if kind == "bucket":
        positions, size = by_key(x, 0.0, seed), s["bucket_size"]
        stream = Stream(seed, BUCKET)
        parts = [stream.permute(positions[i : i + size]) for i in range(0, len(x), size)]
        return [[i for part in parts for i in part]]
    if kind == "alternated":
        positions, bins = at_random(len(x), seed), s["bins"]
        out, start = [], 0
        for b in range(bins):
            size = len(x) // bins + (b < len(x) % bins)
            sign = 1 if b % 2 == 0 else -1
            out += sorted(positions[start : start + size], key=lambda i: sign * x[i])
            start += size
        return [out]
    limits = limits_of(x, s)
    ascending = sorted(range(len(x)), key=lambda i: x[i])
    stream = Stream(seed, BUCKET)
    buckets, low = [], 0
    for limit in limits:
        bucket = [i for i in ascending if low < x[i] <= limit]
        if bucket:
            buckets.append(stream.permute(bucket))
        low = limit
    return buckets


# ---------------------------------------------------------------- cut


def allowed(s, longest_of_all, longest):
    kind = s.get("cut", "fixed")
    if kind == "fixed":
        return s.get("size", 16)
    if kind == "dynamic":
        return s.get("size", 16) * longest_of_all // longest
    if kind == "frames":
        return s["max_frames"] // longest
    if kind == "real-frames":
        return s.get("max_padded", min(4 * s["max_frames"], 2**62)) // longest
    return s["max_frames"] // (longest + longest * longest // s["quadratic_scale"])


def rounded(rows, multiple):
    return rows - rows % multiple if rows >= multiple else rows


def is_full(batch, x, s, longest_of_all):
    """Whether the next row, or the next `size_multiple` ones, would pass, were they as long."""
    overruns = s.get("rule", "strict") == "overrun"
    multiple, most = s.get("size_multiple", 1), s.get("max_size") or NO_LIMIT
    rows, longest, total = len(batch), max(x[j] for j in batch), sum(x[j] for j in batch)
    within = allowed(s, longest_of_all, longest)
    if s.get("cut") != "real-frames":
        return rows >= rounded(min(within + overruns, most), multiple)
    more = 1 if rows < multiple else multiple
    over = total > s["max_frames"] if overruns else total + more * longest > s["max_frames"]
    return rows + more > min(within, most) or over


def cut(bucket, x, s, longest_of_all):
    overruns, real = s.get("rule", "strict") == "overrun", s.get("cut") == "real-frames"
    most = s.get("max_size") or NO_LIMIT
    batches, i = [], 0
    while i < len(bucket):
        rows, longest, total = 0, 0, 0
        while i + rows < len(bucket) and rows < most:
            length = x[bucket[i + rows]]
            longest, total = max(longest, length), total + length
            padded = rows + 1 > allowed(s, longest_of_all, longest)
            if padded or (real and total > s["max_frames"]):
                rows += overruns and not (real and padded)
                break
            rows += 1
        rows = rounded(rows, s.get("size_multiple", 1))
        batch = bucket[i : i + rows]
        i += rows
        dropped = i == len(bucket) and s.get("last", "keep") == "drop"
        if dropped and not is_full(batch, x, s, longest_of_all):
            break
        batches.append(batch)
    return batches


def spread(batches, s):
    world = s.get("world", 1)
    over = len(batches) % world
    if s.get("remainder", "drop") != "spread" or over == 0:
        return batches
    multiple = s.get("size_multiple", 1)
    for _ in range(world - over):
        at = max(range(len(batches)), key=lambda j: (len(batches[j]), -j))
        rows = len(batches[at])
        first = rows - rows // 2
        up = -(-first // multiple) * multiple
        first = up if up < rows else first
        batches[at : at + 1] = [batches[at][:first], batches[at][first:]]
    return batches


def arrange(batches, x, s, seed):
    world = s.get("world", 1)
    if s["order"] in ("bucket-span", "bucket-optimal"):
        Stream(seed, DRAW).permute(batches)
    if s.get("shuffle", "off") != "off":
        Stream(seed, BATCHES).permute(batches)
    over = len(batches) % world
    if s.get("shuffle") == "groups":
        count = len(batches) - over
        like = sorted(batches[:count], key=lambda b: -max(x[i] for i in b))
        stream = Stream(seed, GROUPS)
        groups = stream.permute([like[g : g + world] for g in range(0, count, world)])
        batches = [b for g in groups for b in stream.permute(g)] + batches[count:]
    if over and s.get("remainder", "drop") == "drop":
        batches = batches[: len(batches) - over]
    elif over:
        batches = list(batches)
        for i in range(world - over):
            batches.append(batches[i])
    return batches


def unroll(rows, positions, s):
    lanes, u, world = s["lanes"], s["unroll"], s.get("world", 1)
    free = [0] * (lanes * world)
    held = [[] for _ in free]
    for i in positions:
        lane = min(range(len(free)), key=lambda v: (free[v], v))
        ordinal, _, total, _ = rows[i]
        for start in range(0, total, u):
            size = min(u, total - start)
            flags = (RESET if start == 0 else 0) | (LAST if start + size == total else 0)
            held[lane].append((ordinal, start, size, flags))
        free[lane] = len(held[lane])
    steps = max(free) if s.get("last", "keep") == "keep" else min(free)
    batches = []
    for step in range(steps):
        for rank in range(world):
            mine = held[rank * lanes : (rank + 1) * lanes]
            batches.append([h[step] if step < len(h) else (0, 0, 0, 0) for h in mine])
    return batches


def plan(lengths, s, epoch=0, datasets=None):
    """Batches in the order of delivery, each a list of (ordinal, start, length, flags)."""
    s = {"select": "full", "order": "random", **s}
    seed = (s.get("seed", 0) + epoch) & MASK
    ordinals, longest = select(lengths, datasets or [len(lengths)], s, epoch, seed)
    rows = chunks(ordinals, lengths, s)
    x = [row[2] for row in rows]
    longest = min(longest, s.get("chunk", longest))
    buckets = order(x, s, seed)
    if "lanes" in s:
        return unroll(rows, buckets[0], s)
    grid = s.get("length_multiple", 1)
    *x, longest = [-(-y // grid) * grid for y in [*x, longest]]
    batches = [batch for bucket in buckets for batch in cut(bucket, x, s, longest)]
    batches = arrange(spread(batches, s), x, s, seed)
    return [[rows[i] for i in batch] for batch in batches]
