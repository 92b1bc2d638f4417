#include "formats/ids.h"

#include <fmt/core.h>

namespace batchwright {

std::string to_string(const Fingerprint& fingerprint) {
  return fmt::format("{:016x}-{:016x}-{:016x}", fingerprint.data, fingerprint.settings,
                     fingerprint.seed);
}

std::string describe_difference(const Fingerprint& a, const Fingerprint& b) {
  std::string parts;
  const auto add = [&parts](bool differs, const char* name) {
    if (!differs) return;
    if (!parts.empty()) parts += " and ";
    parts += name;
  };
  add(a.data != b.data, "data");
  // The planner's version is part of this hash, so another planner looks like other settings.
  add(a.settings != b.settings, "settings (or planner)");
  add(a.seed != b.seed, "seed");
  return parts;
}

}  // namespace batchwright
