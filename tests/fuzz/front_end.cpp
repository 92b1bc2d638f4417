// A front end's options as text, a line each, and features made with what was accepted.

#include "storage/frontend/front_end.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// The first line is the convention, and `mfcc` or not; the others are NAME=VALUE.
FrontEndOptions options_of(std::string_view text) {
  const auto lines = split(text, '\n');
  const auto words = split(lines.front(), ' ');
  const bool mfcc = words.size() > 1 && words[1] == "mfcc";
  auto options = front_end_like(words[0], mfcc ? FeatureKind::mfcc : FeatureKind::logmel);
  if (!options) options = FrontEndOptions();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t at = lines[i].find('=');
    if (at == std::string_view::npos) continue;
    const auto set = set_option(*options, lines[i].substr(0, at), lines[i].substr(at + 1));
    require(set || set.error().code == ErrorCode::invalid_argument, "a refusal is by name");
  }
  return *options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto made = FrontEnd::create(
      options_of(std::string_view(reinterpret_cast<const char*>(data), size)), 16000);
  if (!made) {
    require(made.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  for (const std::size_t samples : {0U, 1U, 399U, 4000U}) {
    // What would take a test's memory is not made: padding, or a hop of a sample.
    if (made->frames(samples) * made->dimensions() > 1'000'000) continue;
    std::vector<float> sound(samples);
    for (std::size_t i = 0; i < samples; ++i) {
      sound[i] = static_cast<float>(std::sin(0.05 * static_cast<double>(i)) * 0.5);
    }
    const auto features = made->compute(sound);
    require(features.size() == made->frames(samples) * made->dimensions(), "as many as promised");
  }
  // What it tells of itself makes the same one.
  std::string told;
  for (const auto& [name, value] : made->settings()) told += name + value;
  require(!told.empty(), "it tells of itself");
  return 0;
}
