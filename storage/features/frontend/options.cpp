#include "storage/features/frontend/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace batchwright {
namespace {

constexpr std::array<std::string_view, 3> kFeatureWords = {"logmel", "mfcc", "plp"};

constexpr bool is_cepstral(FeatureKind features) { return features != FeatureKind::logmel; }

FrontEndOptions kaldi(FeatureKind features) {
  FrontEndOptions options;
  options.sample_scale = 32768;
  options.round_down = true;
  options.count = CountRule::inside;
  options.edges = Edges::half;
  options.remove_dc = true;
  options.window = WindowShape::povey;
  options.mel_bands = is_cepstral(features) ? 23 : 80;
  options.log_floor = 0x1p-23;
  options.lifter = 22;
  options.use_energy = is_cepstral(features);
  return options;
}

FrontEndOptions kaldi_lhotse(FeatureKind features) {
  FrontEndOptions options = kaldi(features);
  options.sample_scale = 1;
  options.start = FrameStart::window_centre;
  options.count = CountRule::rounded;
  options.fmax_hz = -400;
  return options;
}

FrontEndOptions kaldi_hires(FeatureKind) {
  FrontEndOptions options = kaldi(FeatureKind::mfcc);
  options.features = FeatureKind::mfcc;
  options.mel_bands = 40;
  options.cepstra = 40;
  options.fmax_hz = -400;
  options.use_energy = false;
  return options;
}

/// What torch's, librosa's and their followers' have in common.
FrontEndOptions centred(std::uint32_t window, std::uint32_t hop) {
  FrontEndOptions options;
  options.window_samples = window;
  options.hop_samples = hop;
  options.fft_size = window;
  options.start = FrameStart::fft_centre;
  options.count = CountRule::hops_one;
  options.edges = Edges::whole;
  options.pre_emphasis = 0;
  options.window = WindowShape::hann;
  options.periodic = true;
  options.centre_window = true;
  options.scale = MelScale::slaney;
  options.sides = MelSides::hz;
  options.equal_area = true;
  options.mel_bands = 80;
  options.fmin_hz = 0;
  return options;
}

FrontEndOptions whisper(FeatureKind) {
  FrontEndOptions options = centred(400, 160);
  options.count = CountRule::hops;
  options.fmax_hz = 8000;
  options.log = LogKind::ten;
  options.normalise = Normalise::whisper;
  return options;
}

FrontEndOptions nemo(FeatureKind) {
  FrontEndOptions options = centred(0, 0);
  options.round_down = true;
  options.count = CountRule::hops;
  options.edges = Edges::zeros;
  options.pre_emphasis = 0.97;
  options.emphasis = PreEmphasis::signal;
  options.periodic = false;
  options.log = LogKind::add;
  options.log_floor = 0x1p-24;
  options.normalise = Normalise::per_feature;
  return options;
}

FrontEndOptions librosa(FeatureKind) {
  FrontEndOptions options = centred(2048, 512);
  options.edges = Edges::zeros;
  options.mel_bands = 128;
  options.empty_bands = true;
  options.log = LogKind::db;
  options.top_db = 80;
  options.cepstra = 20;
  options.lifter_form = Lifter::librosa;
  return options;
}

FrontEndOptions torchaudio(FeatureKind) {
  FrontEndOptions options = centred(400, 200);
  options.scale = MelScale::htk;
  options.equal_area = false;
  options.mel_bands = 128;
  options.whole_nyquist = true;
  options.empty_bands = true;
  options.log = LogKind::db;
  options.top_db = 80;
  options.cepstra = 40;
  return options;
}

FrontEndOptions tacotron2(FeatureKind) {
  FrontEndOptions options = centred(1024, 256);
  options.spectrum = Spectrum::magnitude;
  options.fmax_hz = 8000;
  options.log_floor = 1e-5;
  return options;
}

FrontEndOptions hifigan(FeatureKind features) {
  FrontEndOptions options = tacotron2(features);
  options.start = FrameStart::fft_hop;
  options.count = CountRule::hops;
  options.spectrum = Spectrum::soft_magnitude;
  return options;
}

/// Without its stacking and delay, which are steps of their own.
FrontEndOptions variani(FeatureKind) {
  FrontEndOptions options;
  options.window_ms = 32;
  options.window = WindowShape::hann;
  options.fft_size = 1024;
  options.mel_bands = 128;
  options.fmin_hz = 125;
  options.fmax_hz = 7500;
  return options;
}

struct Named {
  std::string_view name;
  FrontEndOptions (*options)(FeatureKind);
};
constexpr std::array kNamed = {
    Named{"htk", [](FeatureKind) { return FrontEndOptions(); }},
    Named{"kaldi", kaldi},
    Named{"kaldi-lhotse", kaldi_lhotse},
    Named{"kaldi-hires", kaldi_hires},
    Named{"whisper", whisper},
    Named{"nemo", nemo},
    Named{"librosa", librosa},
    Named{"torchaudio", torchaudio},
    Named{"tacotron2", tacotron2},
    Named{"hifigan", hifigan},
    Named{"variani", variani},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kNamed.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kNamed[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> feature_words() { return kFeatureWords; }

std::string_view feature_word(FeatureKind features) {
  return kFeatureWords.at(static_cast<std::size_t>(features));
}

Result<FeatureKind> parse_features(std::string_view word) {
  for (std::size_t i = 0; i < kFeatureWords.size(); ++i) {
    if (word == kFeatureWords.at(i)) return static_cast<FeatureKind>(i);
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("features = \"{}\"; allowed: {}", word, fmt::join(kFeatureWords, ", "))};
}

std::span<const std::string_view> front_end_names() { return kNames; }

Result<FrontEndOptions> front_end_like(std::string_view name, FeatureKind features) {
  for (const Named& each : kNamed) {
    if (each.name != name) continue;
    if (features == FeatureKind::plp && name != "kaldi" && name != "kaldi-lhotse") {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("features \"plp\" of convention \"{}\"; allowed: like kaldi or "
                               "kaldi-lhotse",
                               name)};
    }
    FrontEndOptions options = each.options(features);
    options.like = name;
    if (name != "kaldi-hires") options.features = features;
    return options;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("no convention \"{}\"; allowed: {}", name, fmt::join(kNames, " "))};
}

}  // namespace batchwright
