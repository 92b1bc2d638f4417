#include "storage/frontend/settings.h"

#include <fmt/core.h>

#include <array>
#include <string_view>

namespace batchwright {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The word of a value, from words in the order of the enumeration.
template <class Value, std::size_t kCount>
std::string word(Value value, const std::array<std::string_view, kCount>& words) {
  return std::string(words.at(static_cast<std::size_t>(value)));
}

std::string text(double value) { return fmt::format("{}", value); }
std::string text(bool value) { return value ? "true" : "false"; }
std::string text(std::uint64_t value) { return std::to_string(value); }
std::string text(WindowShape value) {
  return word(value, std::array<std::string_view, 4>{"hamming", "hann", "povey", "rectangular"});
}
std::string text(FrameStart value) {
  return word(value,
              std::array<std::string_view, 4>{"left", "window-centre", "fft-centre", "fft-hop"});
}
std::string text(CountRule value) {
  return word(value,
              std::array<std::string_view, 5>{"padded", "inside", "rounded", "hops", "hops-one"});
}
std::string text(Edges value) {
  return word(value, std::array<std::string_view, 3>{"zeros", "half", "whole"});
}
std::string text(PreEmphasis value) {
  return word(value, std::array<std::string_view, 2>{"frame", "signal"});
}
std::string text(Spectrum value) {
  return word(value, std::array<std::string_view, 3>{"power", "magnitude", "soft-magnitude"});
}
std::string text(MelScale value) {
  return word(value, std::array<std::string_view, 2>{"htk", "slaney"});
}
std::string text(MelSides value) {
  return word(value, std::array<std::string_view, 2>{"mel", "hz"});
}
std::string text(LogKind value) {
  return word(value, std::array<std::string_view, 4>{"floor", "add", "ten", "db"});
}
std::string text(Normalise value) {
  return word(value,
              std::array<std::string_view, 4>{"none", "whisper", "per-feature", "all-features"});
}
std::string text(Lifter value) {
  return word(value, std::array<std::string_view, 2>{"kaldi", "librosa"});
}
std::string text(const std::string& value) { return value; }

/// Appends an option that htk has otherwise.
template <class Value>
void add_other(Settings& all, const char* name, const FrontEndOptions& options,
               Value FrontEndOptions::*member) {
  const FrontEndOptions htk;
  if (options.*member != htk.*member) all.emplace_back(name, text(options.*member));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_text(const FrontEndOptions& options,
                                                               const FrameMeasures& measures,
                                                               std::uint32_t sample_rate) {
  using O = FrontEndOptions;
  const bool mfcc = options.features == FeatureKind::mfcc;
  const auto ms = [&](double given, std::uint32_t samples, std::size_t measured) {
    return samples == 0 ? given : 1000.0 * static_cast<double>(measured) / sample_rate;
  };
  Settings all = {
      {"features", mfcc ? "mfcc" : "logmel"},
      {"sample_rate_hz", std::to_string(sample_rate)},
      {"window_ms", text(ms(options.window_ms, options.window_samples, measures.window))},
      {"hop_ms", text(ms(options.hop_ms, options.hop_samples, measures.hop))},
      {"window", text(options.window)},
      {"fft_size", std::to_string(measures.fft_size)},
      {"mel_bands", std::to_string(options.mel_bands)},
      {"fmin_hz", text(options.fmin_hz)},
      {"fmax_hz", text(measures.fmax_hz)},
      {"pre_emphasis", text(options.pre_emphasis)},
      {"log_floor", text(options.log_floor)}};
  if (mfcc) all.emplace_back("cepstra", std::to_string(options.cepstra));
  add_other(all, "like", options, &O::like);
  add_other(all, "sample_scale", options, &O::sample_scale);
  add_other(all, "peak", options, &O::peak);
  add_other(all, "round_down", options, &O::round_down);
  add_other(all, "start", options, &O::start);
  add_other(all, "count", options, &O::count);
  add_other(all, "edges", options, &O::edges);
  add_other(all, "pad_to", options, &O::pad_to);
  add_other(all, "remove_dc", options, &O::remove_dc);
  add_other(all, "emphasis", options, &O::emphasis);
  add_other(all, "periodic", options, &O::periodic);
  add_other(all, "centre_window", options, &O::centre_window);
  add_other(all, "spectrum", options, &O::spectrum);
  add_other(all, "mel_scale", options, &O::scale);
  add_other(all, "mel_sides", options, &O::sides);
  add_other(all, "equal_area", options, &O::equal_area);
  add_other(all, "empty_bands", options, &O::empty_bands);
  add_other(all, "log", options, &O::log);
  add_other(all, "top_db", options, &O::top_db);
  add_other(all, "normalise", options, &O::normalise);
  add_other(all, "lifter", options, &O::lifter);
  add_other(all, "lifter_form", options, &O::lifter_form);
  add_other(all, "use_energy", options, &O::use_energy);
  add_other(all, "raw_energy", options, &O::raw_energy);
  add_other(all, "energy_floor", options, &O::energy_floor);
  return all;
}

}  // namespace batchwright
