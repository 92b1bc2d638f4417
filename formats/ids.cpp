#include "formats/ids.h"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace batchwright {

std::string to_string(const Fingerprint& fingerprint) {
  std::array<char, 64> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64,
                    fingerprint.data, fingerprint.settings, fingerprint.seed);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string describe_difference(const Fingerprint& a, const Fingerprint& b) {
  std::string parts;
  const auto add = [&parts](bool differs, const char* name) {
    if (!differs) return;
    if (!parts.empty()) parts += " and ";
    parts += name;
  };
  add(a.data != b.data, "data");
  add(a.settings != b.settings, "settings (or planner)");
  add(a.seed != b.seed, "seed");
  return parts;
}

}  // namespace batchwright
