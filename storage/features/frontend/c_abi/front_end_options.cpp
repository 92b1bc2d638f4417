#include "storage/features/frontend/c_abi/front_end_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace batchwright {
namespace {

constexpr bw_front_end_options kUnset = BW_FRONT_END_OPTIONS_INIT;
using Given = std::span<const bw_setting>;

Error refused(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

// The words of settings() that name what a front end is of, and are no options of its.
constexpr std::string_view kLike = "like";
constexpr std::string_view kFeatures = "features";
constexpr std::string_view kRate = "sample_rate_hz";

/// `batchwright ingest audio` leaves out the unit of these.
constexpr std::array kCommandWords = {std::pair("fmin", "fmin_hz"), std::pair("fmax", "fmax_hz")};

std::string_view option_name(std::string_view name) {
  for (const auto& [word, option] : kCommandWords) {
    if (name == word) return option;
  }
  return name;
}

Result<std::uint32_t> to_rate(std::string_view text) {
  const auto rate = parse_whole<std::uint32_t>(text);
  if (rate && *rate != 0) return *rate;
  return refused(fmt::format("{} = \"{}\"; allowed: a whole number, 1 or more", kRate, text));
}

/// The settings, or none where the names or values that are counted are not there.
Result<Given> settings_of(const bw_front_end_options& options) {
  if (options.setting_count != 0 && options.settings == nullptr) {
    return refused("settings are counted, but not given");
  }
  const Given all(options.settings, options.setting_count);
  const bool whole = std::all_of(all.begin(), all.end(), [](const bw_setting& one) {
    return one.name != nullptr && one.value != nullptr;
  });
  if (!whole) return refused("a setting has no name or no value");
  return all;
}

/// What differs from a convention.
Result<FrontEnd> changed_convention(const bw_front_end_options& given, Given settings) {
  const auto kind = parse_features(given.features == nullptr ? "logmel" : given.features);
  if (!kind) return kind.error();
  auto options = front_end_like(given.like, *kind);
  if (!options) return options.error();
  for (const bw_setting& one : settings) {
    if (auto set = set_option(*options, option_name(one.name), one.value); !set) {
      return set.error();
    }
  }
  return FrontEnd::create(*options, given.sample_rate_hz);
}

/// A few settings are not a front end's, although each of them is one: what they leave out would be
/// htk's, whatever convention they name.
Result<void> check_whole(Given settings, const FrontEnd& made) {
  for (const auto& [name, value] : made.settings()) {
    const bool there = std::any_of(
        settings.begin(), settings.end(),
        [&name = name](const bw_setting& one) { return option_name(one.name) == name; });
    if (there) continue;
    return refused(
        fmt::format("the settings have no {}; without a convention, all that a front end tells are "
                    "needed",
                    name));
  }
  return {};
}

/// From htk's, by all that another front end told of itself.
Result<FrontEnd> told_front_end(const bw_front_end_options& given, Given settings) {
  FrontEndOptions options;
  std::uint32_t rate = 0;
  for (const bw_setting& one : settings) {
    if (one.name == kLike) {
      if (auto known = front_end_like(one.value, options.features); !known) return known.error();
      options.like = one.value;
    } else if (one.name == kFeatures) {
      const auto kind = parse_features(one.value);
      if (!kind) return kind.error();
      options.features = *kind;
    } else if (one.name == kRate) {
      const auto told = to_rate(one.value);
      if (!told) return told.error();
      rate = *told;
    } else if (auto set = set_option(options, option_name(one.name), one.value); !set) {
      return set.error();
    }
  }
  if (given.features != nullptr) return refused("features beside the settings that have them");
  if (rate == 0) return refused(fmt::format("no convention, and settings without {}", kRate));
  if (given.sample_rate_hz != 0 && given.sample_rate_hz != rate) {
    return refused(
        fmt::format("a sample rate of {} Hz, and settings of {} Hz", given.sample_rate_hz, rate));
  }
  auto made = FrontEnd::create(options, rate);
  if (!made) return made.error();
  if (auto whole = check_whole(settings, *made); !whole) return whole.error();
  return made;
}

}  // namespace

Result<FrontEnd> to_front_end(const bw_front_end_options* given) {
  const auto options = read_options(given, kUnset);
  if (!options) return options.error();
  if (options->reserved != 0) return refused("reserved is not 0");
  const auto settings = settings_of(*options);
  if (!settings) return settings.error();
  return options->like != nullptr ? changed_convention(*options, *settings)
                                  : told_front_end(*options, *settings);
}

}  // namespace batchwright
