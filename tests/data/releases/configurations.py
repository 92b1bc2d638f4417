#!/usr/bin/python3
"""Prints feeds' configurations, a line of TOML each, of which one in some is refused:
configurations.py COUNT. Each key alone with another value than its default, then random ones.

tests/config/releases_test.cpp keeps what a release makes of those that it takes.
"""
import argparse
import random

PLAN = {
    "select": ['"linear"', '"cosine"', '"fixed"'], "usage": ["0.5", "0.33"], "alpha": ["0.25"],
    "beta": ["0.125"], "lambda": ["1.5", "0.1"], "flat_after": ["7"], "floor": ["0.75", "0.1"],
    "epochs": ["9"], "chunk": ["40"], "hop": ["20"], "min_chunk": ["10"], "lanes": ["8"],
    "unroll": ["30"], "mix_weights": ["[1.0, 2.5]"], "mix_exhausted": ['"end"'],
    "min_length": ["2"], "max_length": ["1000"],
    "order": ['"sorted"', '"bucket"', '"bucket-span"', '"bucket-optimal"', '"alternated"',
              '"semi-sorted"'],
    "randomization": ["0.3", "0.1", "1e-3"], "bins": ["5"], "bucket_size": ["64"],
    "bucket_span": ["10"], "bucket_count": ["6"], "bucket_boundaries": ["[10, 20]"],
    "cut": ['"dynamic"', '"frames"', '"quadratic"'], "size": ["24", "1"], "rule": ['"overrun"'],
    "max_frames": ["5000"], "quadratic_scale": ["500"], "size_multiple": ["8"],
    "max_size": ["48"], "last": ['"drop"'], "seed": ["7", '"18446744073709551615"'],
    "shuffle": ['"groups"', '"batches"'], "world": ["2"], "remainder": ['"wrap"', '"spread"'],
}
NEEDS = {  # of a plan: what a value takes beside it
    '"linear"': {"usage": "0.5", "flat_after": "7", "epochs": "9"},
    '"cosine"': {"usage": "0.5", "flat_after": "7", "epochs": "9"},
    '"fixed"': {"alpha": "0.25"}, '"bucket"': {"bucket_size": "64"},
    '"bucket-span"': {"bucket_span": "10"}, '"bucket-optimal"': {"bucket_count": "6"},
    '"alternated"': {"bins": "5"}, '"frames"': {"max_frames": "5000"},
    '"quadratic"': {"max_frames": "5000", "quadratic_scale": "500"},
}
ALONE = {"hop": {"chunk": "40"}, "min_chunk": {"chunk": "40"}, "lanes": {"unroll": "30"},
         "unroll": {"lanes": "8"}, "rule": {"cut": '"dynamic"'}, "max_size": {"cut": '"dynamic"'},
         "bins": {"order": '"alternated"'}, "bucket_size": {"order": '"bucket"'},
         "bucket_count": {"order": '"bucket-optimal"'}, "bucket_span": {"order": '"bucket-span"'},
         "bucket_boundaries": {"order": '"bucket-span"'},
         "max_frames": {"cut": '"frames"'}, "remainder": {"world": "2"}}
LIKE = ["htk", "kaldi", "kaldi-lhotse", "kaldi-hires", "whisper", "nemo", "librosa", "torchaudio",
        "tacotron2", "hifigan", "variani"]
FEATURES = {
    "like": [f'"{name}"' for name in LIKE], "features": ['"mfcc"'],
    "options": ["{ mel_bands = 30 }", "{ window_ms = 20, hop_ms = 5 }", "{ fmin_hz = 50 }"],
    "field": ['"fbank"'], "sample_rate": ["16000"], "resampler": ['"sinc"'],
    "speeds": ["[0.9, 1.0, 1.1]", "[1.0]", "[0.5, 0.75, 2.0]"], "dither": ["1.0", "0.25"],
    "sound": ['"int16"'], "aligned": ['["labels"]'],
    "cmvn": ['"utterance"', '"sliding"', '"global"', '"speaker"'], "cmvn_variance": ["false"],
    "cmvn_window": ["300"], "cmvn_statistics": ['"/c"'], "cmvn_speaker": ['"speaker"'],
    "spec_augment": ["true"], "mask_probability": ["0.5"], "time_warp": ["80"],
    "time_masks": ["3"], "time_width": ["50"], "time_share": ["0.2"], "adaptive_masks": ["0.04"],
    "adaptive_width": ["0.04"], "freq_masks": ["1"], "freq_width": ["15"], "mask_mean": ["true"],
    "mask_value": ["-1.5"], "deltas": ["2", "1"], "delta_window": ["3"],
    "delta_edges": ['"kaldi"'], "splice": ["[5, 5]"], "stack": ["4"], "stride": ["3"],
    "stack_align": ['"left"', '"centre"'], "stack_end": ['"drop"', '"zeros"'],
    "target_offset": ["1"], "keep_one_of": ["3"], "keep_offset": ['"random"'],
    "label_delay": ["5"], "label_extend": ["false"], "ignore_value": ["-1"], "label_slack": ["0"],
}
BESIDE = {"options": {"like": '"kaldi"'}, "target_offset": {"stride": "3"},
          "keep_offset": {"keep_one_of": "3"}, "cmvn_window": {"cmvn": '"sliding"'},
          "cmvn_speaker": {"cmvn": '"speaker"', "cmvn_statistics": '"/c"'},
          "cmvn_statistics": {"cmvn": '"global"'}}
STYLE = {
    "weight": ["2", "0.5"], "noise": ['["/n"]'], "noise_probability": ["0.5"],
    "snr_db": ["[0, 10]"], "rooms": ['["/r"]'], "room_probability": ["0.5"],
    "room_normalise": ["false"], "gain_db": ["[-6, 6]"], "telephone_probability": ["0.5"],
    "telephone_law": ['"a"', '"mu"'], "each_noise": ['["/n", ["/a", "/b"]]'],
    "each_snr_db": ["[[0, 10], [10, 20]]"], "each_rooms": ['["/r"]'],
}
LOOK = {
    "layout": ['"time-major"'], "padding": ["{ features = -1.5 }", "{ label = 3 }"],
    "dtype": ['"float16"', '"bfloat16"', '{ features = "float16" }'],
}


def table(values):
    return "{ " + ", ".join(f"{key} = {value}" for key, value in values.items()) + " }"


def line(plan=None, features=None, styles=(), look=None):
    feed = {"name": '"train"', "dataset": '"/data"', **(look or {})}
    if plan:
        feed["plan"] = table(plan)
    if features:
        feed["features"] = table(features)
    if styles:
        feed["style"] = "[" + ", ".join(table(style) for style in styles) + "]"
    return f"feed = [{table(feed)}]"


def alone():
    """Each value of each key, with the little that it takes beside it."""
    yield line()
    for key, values in PLAN.items():
        for value in values:
            yield line({**ALONE.get(key, {}), **NEEDS.get(value, {}), key: value})
    for key, values in FEATURES.items():
        for value in values:
            yield line(features={**BESIDE.get(key, {}), key: value})
            yield line(features={"like": '"kaldi"', "spec_augment": "true",
                                 **BESIDE.get(key, {}), key: value})
    for key, values in STYLE.items():
        for value in values:
            yield line(features={"like": '"kaldi"'}, styles=[{key: value}])
            yield line(features={"like": '"kaldi"'}, styles=[{"weight": "3"}, {key: value}])
    for key, values in LOOK.items():
        for value in values:
            yield line(look={key: value})


def some(draw, table_of, most):
    keys = draw.sample(sorted(table_of), draw.randint(0, most))
    return {key: draw.choice(table_of[key]) for key in keys}


def drawn(draw):
    plan = some(draw, PLAN, 8)
    for key in sorted(plan):
        plan = {**ALONE.get(key, {}), **NEEDS.get(plan[key], {}), **plan}
    features, styles = {}, []
    if draw.random() < 0.6:
        features = some(draw, FEATURES, 8)
        for key in sorted(features):
            features = {**BESIDE.get(key, {}), **features}
        styles = [some(draw, STYLE, 5) or {"weight": "1"} for _ in range(draw.randint(0, 3))]
    return line(plan, features, styles, some(draw, LOOK, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many random ones")
    count = parser.parse_args().count
    draw = random.Random(20261126)
    for text in alone():
        print(text)
    for _ in range(count):
        print(drawn(draw))


if __name__ == "__main__":
    main()
