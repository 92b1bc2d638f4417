"""The conventions a second time, in float64 and as slowly as they read: from the formulae in
storage/features/frontend/DEFINITIONS.md, with nothing of the front end's own code.

CONVENTIONS has what each is made of; sizes are in samples, unless they end in _ms.
"""

import math

import numpy as np

# What all but htk and kaldi have in common: torch's and librosa's way of framing.
_CENTRED = {
    "scale": 1.0, "start": "centre", "edges": "whole", "remove_dc": False, "emphasis": None,
    "window": "hann", "periodic": True, "centre_window": True, "spectrum": "power",
    "mel": "slaney", "sides": "hz", "slaney_norm": True, "bands": 80, "fmin": 0.0, "fmax": 0.0,
    "lifter": 0,
}
_FRAMED = {
    "scale": 1.0, "start": "left", "edges": "zeros", "remove_dc": False, "emphasis": "frame",
    "periodic": False, "centre_window": False, "spectrum": "power", "mel": "htk", "sides": "mel",
    "slaney_norm": False, "window_ms": 25.0, "hop_ms": 10.0, "fft": 0, "fmin": 20.0, "fmax": 0.0,
    "lifter": 0,
}

CONVENTIONS = {
    "htk": {**_FRAMED, "round": "nearest", "count": "padded", "window": "hamming", "bands": 40,
            "log": ("ln", 1e-10), "cepstra": 13},
    "kaldi": {**_FRAMED, "round": "down", "count": "inside", "window": "povey", "bands": 80,
              "mfcc_bands": 23, "scale": 32768.0, "remove_dc": True, "log": ("ln", 2.0 ** -23),
              "cepstra": 13, "lifter": 22, "mfcc_energy": True},
    "whisper": {**_CENTRED, "window_size": 400, "hop": 160, "fft": 400, "count": "hops",
                "fmax": 8000.0, "log": ("ten", 1e-10), "after": "whisper"},
    "nemo": {**_CENTRED, "round": "down", "window_ms": 25.0, "hop_ms": 10.0, "fft": 0,
             "count": "hops", "edges": "zeros", "emphasis": "signal", "periodic": False,
             "log": ("add", 2.0 ** -24), "after": "nemo"},
    "librosa": {**_CENTRED, "window_size": 2048, "hop": 512, "fft": 2048, "count": "hops_one",
                "edges": "zeros", "bands": 128, "log": ("db", 1e-10), "after": "db",
                "cepstra": 20},
    "torchaudio": {**_CENTRED, "window_size": 400, "hop": 200, "fft": 400, "count": "hops_one",
                   "mel": "htk", "slaney_norm": False, "bands": 128, "log": ("db", 1e-10),
                   "whole_nyquist": True,
                   "after": "db", "cepstra": 40},
    "tacotron2": {**_CENTRED, "window_size": 1024, "hop": 256, "fft": 1024, "count": "hops_one",
                  "spectrum": "magnitude", "fmax": 8000.0, "log": ("ln", 1e-5)},
    "hifigan": {**_CENTRED, "window_size": 1024, "hop": 256, "fft": 1024, "count": "hops",
                "start": "hop", "spectrum": "soft", "fmax": 8000.0, "log": ("ln", 1e-5)},
}


def in_samples(like, name, rate):
    exact = like[name] * rate / 1000
    return math.floor(exact) if like["round"] == "down" else math.floor(exact + 0.5)


def sizes(like, rate):
    """W, H, P"""
    window = in_samples(like, "window_ms", rate) if "window_ms" in like else like["window_size"]
    hop = in_samples(like, "hop_ms", rate) if "hop_ms" in like else like["hop"]
    return window, hop, like["fft"] or 1 << (window - 1).bit_length()


def frame_count(like, samples, window, hop):
    if samples == 0:
        return 0
    inside = 1 + (samples - window) // hop
    return {"padded": max(inside, 1), "inside": max(inside, 0) if samples >= window else 0,
            "hops": samples // hop, "hops_one": 1 + samples // hop}[like["count"]]


def at_edges(x, places, edges):
    """x at places that may lie outside of it."""
    length = len(x)
    if edges == "zeros" or length == 1:
        there = (places >= 0) & (places < length)
        return np.where(there | (edges != "zeros"), x[np.clip(places, 0, length - 1)], 0.0)
    folded = np.mod(places, 2 * length - 2)
    return x[np.where(folded >= length, 2 * length - 2 - folded, folded)]


def frames_of(like, x, rate):
    """[T, W], or [T, P] where the window lies in the middle of the FFT; before the window."""
    window, hop, points = sizes(like, rate)
    count = frame_count(like, len(x), window, hop)
    first = {"left": 0, "centre": -(points // 2), "hop": -((points - hop) // 2)}[like["start"]]
    width = points if like["centre_window"] else window
    places = first + hop * np.arange(count)[:, None] + np.arange(width)
    if like["emphasis"] == "signal":
        x = x - 0.97 * np.concatenate(([0.0], x[:-1]))
    return at_edges(x, places, like["edges"]) if count else np.zeros((0, width))


def window_of(like, window, points):
    turn = np.arange(window) / (window if like["periodic"] else window - 1)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * turn)
    shape = {"hann": hann, "povey": hann ** 0.85,
             "hamming": 0.54 - 0.46 * np.cos(2 * np.pi * turn)}[like["window"]]
    if not like["centre_window"]:
        return shape
    before = (points - window) // 2
    return np.pad(shape, (before, points - window - before))


def mel_of(scale, hz):
    hz = np.asarray(hz, float)
    if scale == "htk":
        return 1127 * np.log(1 + hz / 700)
    high = 15 + 27 * np.log(np.maximum(hz, 1000) / 1000) / np.log(6.4)
    return np.where(hz < 1000, 3 * hz / 200, high)


def hz_of(scale, mel):
    if scale == "htk":
        return 700 * (np.exp(mel / 1127) - 1)
    return np.where(mel < 15, 200 * mel / 3, 1000 * np.exp(np.log(6.4) * (mel - 15) / 27))


def mel_weights(like, bands, points, rate):
    """[B, P / 2 + 1]"""
    # torchaudio's bins lie over 0 to R div 2, as if the rate were even.
    rate = rate // 2 * 2 if like.get("whole_nyquist") else rate
    fmax = like["fmax"] if like["fmax"] > 0 else rate / 2 + like["fmax"]
    corners = np.linspace(mel_of(like["mel"], like["fmin"]), mel_of(like["mel"], fmax), bands + 2)
    hz = hz_of(like["mel"], corners)
    bins = np.arange(points // 2 + 1) * rate / points
    if like["sides"] == "mel":
        bins, edges = mel_of(like["mel"], bins), corners
    else:
        edges = hz
    left, top, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    weights = np.maximum(0, np.minimum((bins - left) / (top - left), (right - bins) / (right - top)))
    return weights * (2 / (hz[2:] - hz[:-2]))[:, None] if like["slaney_norm"] else weights


def logarithm(kind, floor, energies):
    if kind == "add":
        return np.log(energies + floor)
    scale = {"ln": 1.0, "ten": 1 / np.log(10), "db": 10 / np.log(10)}[kind]
    return scale * np.log(np.maximum(energies, floor))


def after(kind, y):
    if kind == "whisper":
        return (np.maximum(y, y.max() - 8) + 4) / 4
    if kind == "db":
        return np.maximum(y, y.max() - 80)
    if kind == "nemo":
        deviation = y.std(axis=0, ddof=1) if len(y) > 1 else np.zeros(y.shape[1])
        return (y - y.mean(axis=0)) / (deviation + 1e-5)
    return y


def cepstra_of(like, y, energies):
    bands, count = y.shape[1], like["cepstra"]
    m = np.arange(count)[:, None]
    rows = np.cos(np.pi * m * (np.arange(bands) + 0.5) / bands) * np.sqrt(2 / bands)
    rows[0] = np.sqrt(1 / bands)
    if like["lifter"]:
        rows *= 1 + like["lifter"] / 2 * np.sin(np.pi * m / like["lifter"])
    cepstra = y @ rows.T
    if like.get("mfcc_energy"):
        cepstra[:, 0] = np.log(np.maximum(energies, 2.0 ** -23))
    return cepstra


def plp_of(like, energies, rate, frame_energies, order=12, count=13, compression=0.33333):
    """Perceptual linear prediction (Hermansky 1990) with Kaldi's settings: [T, count] of band
    energies [T, B]. The normal equations are solved as they stand, and the cepstra of the all-pole
    model are sums of powers of its poles."""
    bands = energies.shape[1]
    fmax = like["fmax"] if like["fmax"] > 0 else rate / 2 + like["fmax"]
    centres = hz_of(like["mel"], np.linspace(mel_of(like["mel"], like["fmin"]),
                                             mel_of(like["mel"], fmax), bands + 2))[1:-1]
    square = centres ** 2
    loudness = (square / (square + 1.6e5)) ** 2 * (square + 1.44e6) / (square + 9.61e6)
    heard = (np.maximum(energies, like["log"][1]) * loudness) ** compression
    # A spectrum from 0 to pi, whose ends are as their neighbours; both halves of it, for the
    # inverse transform.
    half = np.concatenate((heard[:, :1], heard, heard[:, -1:]), axis=1)
    correlations = np.fft.irfft(half, 2 * (bands + 1), axis=1)[:, :order + 1]
    places = np.abs(np.arange(order)[:, None] - np.arange(order))
    cepstra = np.zeros((len(energies), count))
    for t, r in enumerate(correlations):
        a = -np.linalg.solve(r[places], r[1:])
        poles = np.roots(np.concatenate(([1.0], a)))
        cepstra[t, 0] = np.log(max(r[0] + a @ r[1:], 2.0 ** -23))
        cepstra[t, 1:] = [np.sum(poles ** n).real / n for n in range(1, count)]
    cepstra *= 1 + like["lifter"] / 2 * np.sin(np.pi * np.arange(count) / like["lifter"])
    cepstra[:, 0] = np.log(np.maximum(frame_energies, 2.0 ** -23))
    return cepstra


def features(samples, rate, like, mfcc=False, plp=False):
    """[T, values], float64, of int16 samples."""
    like = CONVENTIONS[like]
    window, _, points = sizes(like, rate)
    frames = frames_of(like, np.asarray(samples, float) / 32768 * like["scale"], rate)
    if like["remove_dc"]:
        frames = frames - frames.mean(axis=1, keepdims=True)
    energies = (frames ** 2).sum(axis=1)
    if like["emphasis"] == "frame":
        frames = frames - 0.97 * np.concatenate((frames[:, :1], frames[:, :-1]), axis=1)
    bins = np.abs(np.fft.rfft(frames * window_of(like, window, points), points, axis=1))
    spectrum = {"power": bins ** 2, "magnitude": bins,
                "soft": np.sqrt(bins ** 2 + 1e-9)}[like["spectrum"]]
    bands = like.get("mfcc_bands", like["bands"]) if mfcc or plp else like["bands"]
    weighed = spectrum @ mel_weights(like, bands, points, rate).T
    if plp:
        return plp_of(like, weighed, rate, energies)
    y = logarithm(*like["log"], weighed)
    if not len(y):
        return np.zeros((0, like["cepstra"] if mfcc else bands))
    y = after(like.get("after"), y)
    return cepstra_of(like, y, energies) if mfcc else y
