"""Features of sound in memory: those of the conventions' own programs, and of a second reading of
the formulae; what is no sound, or no front end, is refused in words."""

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import batchwright
from batchwright import errors

import second_front_end
from served import ROOT

GOLDEN = ROOT / "tests" / "data" / "frontend"
RATES = {"8k": 8000, "16k": 16000, "22k": 22050}
FRAMES_OF_400 = {"window_samples": 400, "hop_samples": 160, "fft_size": 512, "mel_bands": 80}

# Name of the golden files, convention, options.
CALLS = [
    ("htk-logmel40", "htk", {"log_floor": 2.0 ** -23}),
    ("kaldi-fbank80", "kaldi", {}),
    ("kaldi-fbank80-reflect", "kaldi", {"snip_edges": False}),
    ("kaldi-fbank80-lhotse", "kaldi-lhotse", {}),
    ("kaldi-fbank40-energy", "kaldi", {"mel_bands": 40, "use_energy": True}),
    ("kaldi-mfcc13", "kaldi", {"features": "mfcc"}),
    ("kaldi-mfcc40", "kaldi-hires", {}),
    ("kaldi-plp13", "kaldi", {"features": "plp"}),
    ("whisper80", "whisper", {}),
    ("whisper128", "whisper", {"mel_bands": np.int64(128)}),
    ("nemo80", "nemo", {}),
    ("nemo80-raw", "nemo", {"normalise": "none"}),
    ("librosa-db128", "librosa", {}),
    ("librosa-mfcc20", "librosa", {"features": "mfcc"}),
    ("librosa-ln80", "librosa", {**FRAMES_OF_400, "log": "floor", "log_floor": 1e-10}),
    ("torchaudio-ln80", "torchaudio",
     {**FRAMES_OF_400, "window_samples": 512, "log": "floor", "log_floor": "1e-10"}),
    ("torchaudio-mfcc40", "torchaudio", {**FRAMES_OF_400, "window_samples": 512,
                                         "features": "mfcc"}),
    ("tacotron2", "tacotron2", {}),
    ("hifigan", "hifigan", {}),
]


def clip(name):
    return np.load(GOLDEN / f"audio-{name}.npy"), RATES[name.rpartition("-")[2]]


def farthest(found, wanted):
    assert found.shape == wanted.shape
    return np.max(np.abs(found - wanted) / np.maximum(1, np.abs(wanted)))


@pytest.fixture(scope="module")
def synth():
    return clip("synth-16k")[0]


@pytest.mark.parametrize("name, like, options", CALLS, ids=[call[0] for call in CALLS])
def test_features_are_those_of_the_conventions_own_program(name, like, options):
    files = sorted(GOLDEN.glob(f"{name}.*.npy"))
    assert files
    for path in files:
        samples, rate = clip(path.name[len(name) + 1:-len(".npy")])
        found = batchwright.features(samples, rate, like=like, **options)
        assert found.dtype == np.float32 and found.flags.c_contiguous and found.flags.writeable
        assert farthest(found, np.load(path)) < 1e-5


@pytest.mark.parametrize("like", sorted(second_front_end.CONVENTIONS))
def test_features_are_those_of_a_second_reading_of_the_formulae(synth, like):
    mfcc = ("logmel", "mfcc") if "cepstra" in second_front_end.CONVENTIONS[like] else ("logmel",)
    for rate in (16000, 22050):
        if rate != 16000 and like == "whisper":
            continue  # a convention of one rate
        for kind in mfcc:
            wanted = second_front_end.features(synth, rate, like, kind == "mfcc")
            found = batchwright.features(synth, rate, like, features=kind)
            assert farthest(found, wanted) < 1e-5, (rate, kind)


def test_plp_is_that_of_a_second_reading_of_the_formulae():
    for name in ("goodbye-8k", "goodbye-16k", "received-16k", "hello-16k"):
        samples, rate = clip(name)
        wanted = second_front_end.features(samples, rate, "kaldi", plp=True)
        found = batchwright.features(samples, rate, "kaldi", features="plp")
        assert farthest(found, wanted) < 1e-5, name


def test_torchaudios_filters_end_at_half_of_an_odd_rate_rounded_down(synth):
    for rate in (11025, 22051, 7999):
        wanted = second_front_end.features(synth, rate, "torchaudio")
        assert farthest(batchwright.features(synth, rate, "torchaudio"), wanted) < 1e-5, rate


@pytest.mark.parametrize("like", sorted(second_front_end.CONVENTIONS))
def test_short_sound_has_the_frames_of_a_second_reading(synth, like):
    for samples in (0, 1, 2, 160, 255, 256, 399, 400, 511, 512, 1025):
        wanted = second_front_end.features(synth[:samples], 16000, like)
        found = batchwright.features(synth[:samples], 16000, like)
        assert found.shape == wanted.shape, samples
        if wanted.size:
            assert farthest(found, wanted) < 1e-5, samples


def test_the_same_sound_of_any_dtype_and_layout_has_the_same_features(synth):
    front_end = batchwright.FrontEnd(16000, "kaldi")
    wanted = front_end(synth)
    floats = synth / np.float32(32768)
    assert floats.dtype == np.float32
    twice = np.repeat(synth, 2)
    unaligned = np.frombuffer(b"x" + floats.tobytes(), np.uint8)[1:].view(np.float32)
    read_only = floats.copy()
    read_only.flags.writeable = False
    for same in (floats, floats.astype(np.float64), list(floats.astype(np.float64)), twice[::2],
                 synth.astype(">i2"), floats.astype(">f4"), unaligned, read_only,
                 synth[::-1][::-1], memoryview(synth)):
        assert np.array_equal(front_end(same), wanted)
    assert synth[0] == clip("synth-16k")[0][0]


def test_tensors_on_the_cpu_are_taken_and_others_are_named(synth):
    torch = pytest.importorskip("torch")
    front_end = batchwright.FrontEnd(16000, "whisper")
    wanted = front_end(synth)
    sound = torch.from_numpy(synth)
    floats = (sound.float() / 32768).requires_grad_()
    for same in (sound, floats, floats.double(), torch.stack([floats, floats], 1)[:, 1]):
        assert np.array_equal(front_end(same), wanted)
    for wrong, words in ((floats[None], r"of shape \[1, 12000\]"),
                         (sound.int(), "of dtype int32"), (sound.long(), "of dtype int64"),
                         (floats.bfloat16(), "a tensor that NumPy cannot take"),
                         (torch.empty(800, device="meta"), "on meta.*use .cpu"),
                         (floats.detach().to_sparse(), "layout torch.sparse_coo: use .to_dense")):
        with pytest.raises(ValueError, match=words):
            front_end(wrong)


def test_espnets_default_is_what_the_guide_writes_for_it(synth):
    torch = pytest.importorskip("torch")
    sound = torch.from_numpy(synth).double() / 32768
    window = torch.hann_window(512, dtype=torch.float64)
    bins = torch.stft(sound, 512, 128, window=window, return_complex=True).abs().T
    like = {**second_front_end.CONVENTIONS["librosa"], "fmax": 8000.0}
    filters = torch.from_numpy(second_front_end.mel_weights(like, 80, 512, 16000))
    wanted = (bins ** 2 @ filters.T).clamp(min=1e-10).log().numpy()
    found = batchwright.features(synth, 16000, "librosa", edges="whole", window_samples=512,
                                 hop_samples=128, fft_size=512, mel_bands=80, log="floor",
                                 log_floor=1e-10)
    assert farthest(found, wanted) < 1e-5


@pytest.mark.parametrize("samples, found", [
    (np.zeros((1, 400), np.int16), "of shape [1, 400]"),
    (np.int16(3), "of shape []"),
    (np.zeros(400, np.int32), "of dtype int32"),
    ([1, 2, 3], "of dtype int64"),
    (np.zeros(400, np.uint8), "of dtype uint8"),
    (np.zeros(400, bool), "of dtype bool"),
    (np.zeros(400, np.float16), "of dtype float16"),
    (np.zeros(400, complex), "of dtype complex128"),
    ("sound.wav", "of shape []"),
    (["a", "b"], "of dtype str"),
    (None, "a NoneType, which is no array of numbers"),
    ([[1.0], [1.0, 2.0]], "a list that NumPy cannot take"),
    (np.ma.masked_array([0.0, 1.0], [True, False]), "a masked array: use .filled()"),
])
def test_what_is_no_sound_is_refused_with_what_is_allowed(samples, found):
    with pytest.raises(ValueError) as refused:
        batchwright.features(samples, 16000)
    assert isinstance(refused.value, errors.InvalidArgumentError)
    text = str(refused.value)
    assert text.startswith("samples are ") and found in text
    assert "; allowed: one channel, [N], of int16" in text


def test_what_is_not_finite_is_refused_with_its_place():
    samples = np.zeros(800)
    for wrong, words in ((np.nan, "nan"), (-np.inf, "-inf"), (1e300, "inf")):
        samples[700] = wrong
        with pytest.raises(ValueError, match=f"sample 700 of 800 is {words}; allowed: finite"):
            batchwright.features(samples, 16000)


@pytest.mark.parametrize("rate, like, options, words", [
    (16000, "kladi", {}, 'no convention "kladi"; allowed: htk kaldi kaldi-lhotse'),
    (16000, None, {}, "like is of type NoneType; allowed: str"),
    (16000, "htk", {"features": "plc"}, 'features = "plc"; allowed: logmel, mfcc, plp'),
    (16000, "htk", {"features": "plp"}, 'features "plp" of convention "htk"; allowed: like kaldi'),
    (16000, "htk", {"mel_bins": 80}, 'no option "mel_bins" of a front end; allowed: window_ms '),
    (16000, "htk", {"mel_bands": 80.5}, 'mel_bands = "80.5"; allowed: a whole number, 0 or more'),
    (16000, "htk", {"mel_bands": None}, "mel_bands is of type NoneType; allowed: numbers"),
    (16000, "htk", {"window": "blackman"}, "allowed: hamming, hann, povey, rectangular"),
    (16000, "htk", {"remove_dc": 1}, 'remove_dc = "1"; allowed: true, false'),
    (16000, "htk", {"fmax": 9000}, "at 16000 Hz allowed: up to 8000 Hz"),
    (16000, "htk", {"pre_emphasis": float("nan")}, "pre-emphasis nan is not in"),
    (0, "htk", {}, "rate 0; allowed: a whole number of samples a second"),
    (-1, "htk", {}, "rate -1; allowed"),
    (1 << 32, "htk", {}, "rate 4294967296; allowed"),
    (16000.0, "htk", {}, "rate 16000.0; allowed"),
    (True, "htk", {}, "rate True; allowed"),
])
def test_what_is_no_front_end_is_refused_with_what_is_allowed(rate, like, options, words):
    for make in (lambda: batchwright.FrontEnd(rate, like, **options),
                 lambda: batchwright.features([0.0], rate, like, **options)):
        with pytest.raises(ValueError) as refused:
            make()
        assert isinstance(refused.value, errors.InvalidArgumentError)
        assert words in str(refused.value)


def test_options_have_the_commands_names():
    """Each option of `batchwright ingest audio`'s front end, with the value that it shows."""
    command = os.path.join(os.environ["BATCHWRIGHT_BIN"], "batchwright")
    text = subprocess.run([command, "ingest", "audio", "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    _, _, group = text.partition("Front end:")
    names = [word[2:].replace("-", "_").rstrip(":") for line in group.splitlines()
             for word in line.split()[:1] if word.startswith("--")]
    assert {"like", "features", "window_ms", "fmin", "mel_bands", "pad_to"} <= set(names)
    for name in set(names) - {"like", "features", "option"}:
        with pytest.raises(ValueError, match=f'^{name}.* = "neither"; allowed: '):
            batchwright.FrontEnd(16000, "kaldi", **{name: "neither"})


def test_a_front_end_says_what_it_is(synth):
    front_end = batchwright.FrontEnd(np.int32(16000), "kaldi", mel_bands=40, use_energy=True)
    assert (front_end.rate, front_end.like) == (16000, "kaldi")
    assert (front_end.bands, front_end.values) == (40, 41)
    assert front_end(synth).shape == (front_end.frames(len(synth)), 41)
    assert [front_end.frames(n) for n in (0, 399, 400, 559, 560)] == [0, 0, 1, 1, 2]
    assert front_end.settings["window"] == "povey"
    assert repr(front_end) == "<batchwright.FrontEnd like kaldi, 16000 Hz, 41 values a frame>"
    assert batchwright.FrontEnd(8000, "htk").like == "htk"
    for wrong in (-1, 1.5, None, 1 << 62):
        with pytest.raises(ValueError, match="samples; allowed: a whole number, 0 or more"):
            front_end.frames(wrong)


def test_no_samples_have_no_frames():
    for like in second_front_end.CONVENTIONS:
        front_end = batchwright.FrontEnd(16000, like)
        for none in ([], np.zeros(0, np.int16)):
            assert front_end(none).shape == (0, front_end.values)
    assert batchwright.features([0.0], 16000, "whisper", pad_to=480000).shape == (3000, 80)


def test_settings_make_the_same_front_end_again_copied_or_pickled_too(synth):
    first = batchwright.FrontEnd(16000, "nemo", mel_bands=64, window="hamming", fmax=-100)
    wanted = first(synth)
    stored = json.loads(json.dumps(first.settings))
    for again in (batchwright.FrontEnd.from_settings(stored), copy.copy(first),
                  copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert again.settings == first.settings
        assert np.array_equal(again(synth), wanted)
    del stored["fft_size"]
    with pytest.raises(ValueError, match="the settings have no fft_size; without a convention"):
        batchwright.FrontEnd.from_settings(stored)
    with pytest.raises(ValueError, match="no convention, and settings without sample_rate_hz"):
        batchwright.FrontEnd.from_settings({})


def test_threads_share_a_front_end_and_python_goes_on_meanwhile():
    samples = np.random.default_rng(1).uniform(-1, 1, 16000 * 180).astype(np.float32)
    front_end = batchwright.FrontEnd(16000, "kaldi")
    wanted = front_end(samples)
    found = []
    threads = [threading.Thread(target=lambda: found.append(front_end(samples)))
               for _ in range(3)]
    turns = 0
    for each in threads:
        each.start()
    # Without the GIL's release this thread has no turn before they are done, but at a switch.
    while len(found) < len(threads) and any(each.is_alive() for each in threads):
        turns += 1
        time.sleep(0)
    for each in threads:
        each.join()
    assert turns > 3 * len(threads)
    assert len(found) == len(threads)
    assert all(np.array_equal(each, wanted) for each in found)


def test_a_forked_child_has_the_same_features(synth):
    wanted = batchwright.features(synth, 16000)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(batchwright.features(synth, 16000), wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_readers_need_no_library_for_features():
    program = ("import batchwright, sys; assert 'batchwright.front_end' not in sys.modules; "
               "batchwright.features")
    environment = {**os.environ, "BATCHWRIGHT_STORAGE_LIBRARY": "/nowhere/lib.so",
                   "PYTHONPATH": str(ROOT / "client" / "python")}
    run = [sys.executable, "-c"]
    subprocess.run([*run, program], check=True, env=environment)
    said = subprocess.run([*run, "import batchwright; batchwright.features([], 16000)"],
                          check=False, env=environment, text=True, stderr=subprocess.PIPE).stderr
    assert "BATCHWRIGHT_STORAGE_LIBRARY names /nowhere/lib.so" in said
