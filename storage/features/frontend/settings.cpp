#include "storage/features/frontend/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <type_traits>

namespace batchwright {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
using O = FrontEndOptions;

// The words of each enumeration, in its order.
template <class Value>
constexpr std::array<std::string_view, 0> kWords{};
template <>
constexpr std::array<std::string_view, 4> kWords<WindowShape>{"hamming", "hann", "povey",
                                                              "rectangular"};
template <>
constexpr std::array<std::string_view, 4> kWords<FrameStart>{"left", "window-centre", "fft-centre",
                                                             "fft-hop"};
template <>
constexpr std::array<std::string_view, 5> kWords<CountRule>{"padded", "inside", "rounded", "hops",
                                                            "hops-one"};
template <>
constexpr std::array<std::string_view, 3> kWords<Edges>{"zeros", "half", "whole"};
template <>
constexpr std::array<std::string_view, 2> kWords<PreEmphasis>{"frame", "signal"};
template <>
constexpr std::array<std::string_view, 3> kWords<Spectrum>{"power", "magnitude", "soft-magnitude"};
template <>
constexpr std::array<std::string_view, 2> kWords<MelScale>{"htk", "slaney"};
template <>
constexpr std::array<std::string_view, 2> kWords<MelSides>{"mel", "hz"};
template <>
constexpr std::array<std::string_view, 4> kWords<LogKind>{"floor", "add", "ten", "db"};
template <>
constexpr std::array<std::string_view, 4> kWords<Normalise>{"none", "whisper", "per-feature",
                                                            "all-features"};
template <>
constexpr std::array<std::string_view, 2> kWords<Lifter>{"kaldi", "librosa"};

template <class Value>
std::string text(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(kWords<Value>.at(static_cast<std::size_t>(value)));
  } else {
    return fmt::format("{}", value);
  }
}

/// Calls `use` with name and member of each option in which conventions differ from htk, until it
/// returns true; returns whether it did.
template <class Use>
bool any_difference(Use use) {
  return use("sample_scale", &O::sample_scale) || use("peak", &O::peak) ||
         use("round_down", &O::round_down) || use("start", &O::start) || use("count", &O::count) ||
         use("edges", &O::edges) || use("pad_to", &O::pad_to) || use("remove_dc", &O::remove_dc) ||
         use("emphasis", &O::emphasis) || use("periodic", &O::periodic) ||
         use("centre_window", &O::centre_window) || use("spectrum", &O::spectrum) ||
         use("mel_scale", &O::scale) || use("mel_sides", &O::sides) ||
         use("equal_area", &O::equal_area) || use("empty_bands", &O::empty_bands) ||
         use("log", &O::log) || use("top_db", &O::top_db) || use("normalise", &O::normalise) ||
         use("lifter", &O::lifter) || use("lifter_form", &O::lifter_form) ||
         use("use_energy", &O::use_energy) || use("raw_energy", &O::raw_energy) ||
         use("energy_floor", &O::energy_floor) || use("htk_compat", &O::htk_compat);
}

/// The same with every option that can be set by itself.
template <class Use>
bool any_option(Use use) {
  return use("window_ms", &O::window_ms) || use("hop_ms", &O::hop_ms) ||
         use("window_samples", &O::window_samples) || use("hop_samples", &O::hop_samples) ||
         use("window", &O::window) || use("fft_size", &O::fft_size) ||
         use("mel_bands", &O::mel_bands) || use("fmin_hz", &O::fmin_hz) ||
         use("fmax_hz", &O::fmax_hz) || use("pre_emphasis", &O::pre_emphasis) ||
         use("log_floor", &O::log_floor) || use("cepstra", &O::cepstra) ||
         use("lpc_order", &O::lpc_order) || use("compress_factor", &O::compress_factor) ||
         use("cepstral_scale", &O::cepstral_scale) || use("whole_nyquist", &O::whole_nyquist) ||
         any_difference(use);
}

constexpr std::string_view kSnipEdges = "snip_edges";

Error bad_option(std::string_view name, std::string_view found, std::string_view allowed) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} = \"{}\"; allowed: {}", name, found, allowed)};
}

template <class Value>
Result<void> parse(std::string_view name, std::string_view text, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    if (text != "true" && text != "false") return bad_option(name, text, "true, false");
    value = text == "true";
  } else if constexpr (std::is_enum_v<Value>) {
    const auto& words = kWords<Value>;
    const auto* const word = std::find(words.begin(), words.end(), text);
    if (word == words.end())
      return bad_option(name, text, fmt::format("{}", fmt::join(words, ", ")));
    value = static_cast<Value>(word - words.begin());
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return bad_option(name, text,
                        std::is_floating_point_v<Value> ? "a number" : "a whole number, 0 or more");
    }
  }
  return {};
}

/// Kaldi's name for where its frames begin and how many there are.
void snip_edges(FrontEndOptions& options, bool snip) {
  options.start = snip ? FrameStart::left : FrameStart::window_centre;
  options.count = snip ? CountRule::inside : CountRule::rounded;
}

const std::vector<std::string_view>& all_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    any_option([&all](std::string_view name, auto) {
      all.push_back(name);
      return false;
    });
    all.push_back(kSnipEdges);
    return all;
  }();
  return names;
}

}  // namespace

std::span<const std::string_view> option_names() { return all_names(); }

std::span<const std::string_view> window_words() { return kWords<WindowShape>; }

Result<void> set_option(FrontEndOptions& options, std::string_view name, std::string_view text) {
  if (name == kSnipEdges) {
    bool snip = false;
    if (auto bad = parse(name, text, snip); !bad) return bad;
    snip_edges(options, snip);
    return {};
  }
  Result<void> set;
  const bool known = any_option([&](std::string_view each, auto member) {
    if (each == name) set = parse(name, text, options.*member);
    return each == name;
  });
  if (!known) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("no option \"{}\" of a front end; allowed: {}", name,
                             fmt::join(all_names(), " "))};
  }
  if (name == "window_ms") options.window_samples = 0;
  if (name == "hop_ms") options.hop_samples = 0;
  return set;
}

std::vector<std::pair<std::string, std::string>> settings_text(const FrontEndOptions& options,
                                                               const FrameMeasures& measures,
                                                               std::uint32_t sample_rate) {
  const auto ms = [&](double given, std::uint32_t samples, std::size_t measured) {
    return samples == 0 ? given : 1000.0 * static_cast<double>(measured) / sample_rate;
  };
  Settings all = {
      {"features", std::string(feature_word(options.features))},
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
  if (options.features != FeatureKind::logmel) {
    all.emplace_back("cepstra", std::to_string(options.cepstra));
  }
  if (options.features == FeatureKind::plp) {
    all.emplace_back("lpc_order", std::to_string(options.lpc_order));
    all.emplace_back("compress_factor", text(options.compress_factor));
    all.emplace_back("cepstral_scale", text(options.cepstral_scale));
  }
  // Told where it decides something, so that settings of even rates stay what they were.
  if (options.whole_nyquist && sample_rate % 2 == 1) all.emplace_back("whole_nyquist", "true");
  const FrontEndOptions htk;
  if (options.like != htk.like) all.emplace_back("like", options.like);
  any_difference([&](std::string_view name, auto member) {
    if (options.*member != htk.*member) all.emplace_back(name, text(options.*member));
    return false;
  });
  return all;
}

}  // namespace batchwright
