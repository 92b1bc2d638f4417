// Options of a front end, as recipes, `batchwright ingest` and the C ABI set them from text, and
// the features of a short sound where they are accepted.
//
// An input: convention, kind of features, 4 bytes of sample rate, 2 of samples, then a line
// `name=text` for each option.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "storage/features/frontend/frontend.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_bound.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// The largest FFT for eight frames at once, 4,096 cepstra of as many bands, and the features.
constexpr std::int64_t kMostBytes = std::int64_t{768} << 20;

/// Values of all frames, and points of all their FFTs: what is beyond takes longer, and no more.
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostPoints = std::uint64_t{1} << 18;

/// Also lines that set nothing, which leave the rest as it is.
void set_options(FrontEndOptions& options, std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::string_view name = line.substr(0, line.find('='));
    const std::string_view text = line.substr(std::min(line.size(), name.size() + 1));
    const auto set = set_option(options, name, text);
    if (set) continue;
    require(set.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    require(set.error().message.find(name) != std::string::npos, "the error names the option");
  }
}

FrontEndOptions read_options(Choices& input) {
  const auto names = front_end_names();
  const std::string_view like = names[input.byte() % names.size()];
  const auto kind = static_cast<FeatureKind>(input.byte() % feature_words().size());
  auto options = front_end_like(like, kind);
  if (!options && kind == FeatureKind::plp) options = front_end_like(like, FeatureKind::logmel);
  require(options.has_value(), "a convention has options");
  return *options;
}

/// A front end of another one's settings has the same.
void make_again(const FrontEnd& front_end, FeatureKind kind) {
  FrontEndOptions options;
  options.features = kind;
  const auto settings = front_end.settings();
  for (const auto& [name, text] : settings) {
    if (name == "like") options.like = text;
    if (name == "like" || name == "features" || name == "sample_rate_hz") continue;
    require(set_option(options, name, text).has_value(), "a setting is an option");
  }
  const auto again = FrontEnd::create(options, front_end.sample_rate());
  require(again.has_value(), "what was accepted is accepted as settings() has it");
  require(again->settings() == settings, "and has the same settings");
}

void compute(const FrontEnd& front_end, std::size_t samples, std::uint64_t points) {
  const std::uint64_t frames = front_end.frames(samples);
  if (frames > kMostValues / front_end.dimensions() || frames > kMostPoints / points) return;
  std::vector<float> sound;
  for (std::size_t n = 0; n < samples; ++n) {
    sound.push_back(static_cast<float>(std::sin(0.1 * static_cast<double>(n))) *
                    (n % 7 == 0 ? 0.25F : 1.F));
  }
  const auto features = front_end.compute(sound);
  require(features.size() == frames * front_end.dimensions(), "there are as many as were said");
  require(std::all_of(features.begin(), features.end(), [](float v) { return std::isfinite(v); }),
          "features are numbers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices input(data, size);
  FrontEndOptions options = read_options(input);
  const auto rate = input.number<std::uint32_t>();
  const std::size_t samples = input.number<std::uint16_t>() % 4096;
  const auto lines = input.rest();
  const MemoryBound bound(kMostBytes);
  set_options(options, {reinterpret_cast<const char*>(lines.data()), lines.size()});
  const auto front_end = FrontEnd::create(options, rate);
  if (!front_end) {
    require(front_end.error().code == ErrorCode::invalid_argument, "the error is invalid_argument");
    return 0;
  }
  require(front_end->dimensions() > 0, "frames have values");
  require(front_end->frames(0) == 0, "no sound has no frames");
  require(front_end->frames(samples) <= front_end->frames(samples + 1), "frames do not get fewer");
  std::uint64_t points = 1;
  for (const auto& [name, text] : front_end->settings()) {
    if (name == "fft_size") points = std::stoull(text);
  }
  // A second one is made only where the first cost little.
  if (points * options.mel_bands <= kMostPoints) make_again(*front_end, options.features);
  compute(*front_end, samples, points);
  return 0;
}
