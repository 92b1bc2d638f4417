// Features of a minute of sound, from memory, on one core:
//   bench_features [seconds=60] [rounds=5]
// Prints the seconds of processor time that the best round took, by convention.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <random>
#include <vector>

#include "storage/features/frontend/front_end.h"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// A tone with noise: what it is makes no difference.
std::vector<float> sound_of(std::size_t samples) {
  std::mt19937 random(1);
  std::vector<float> sound(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const double noise = static_cast<double>(random()) / 4294967296.0 - 0.5;
    sound[i] = static_cast<float>(0.3 * std::sin(0.01 * static_cast<double>(i)) + 0.1 * noise);
  }
  return sound;
}

double best_of(const FrontEnd& front_end, const std::vector<float>& sound, std::uint64_t rounds) {
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const double before = cpu_seconds();
    const auto features = front_end.compute(sound);
    best = std::min(best, cpu_seconds() - before);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Words words(argc, argv);
  constexpr std::uint32_t kRate = 16000;
  const auto sound = sound_of(words.number("seconds", 60) * kRate);
  std::printf("{");
  for (const std::string_view name : front_end_names()) {
    const auto options = front_end_like(name, FeatureKind::logmel);
    const auto front_end = FrontEnd::create(*options, kRate);
    if (!front_end) {
      std::fprintf(stderr, "bench_features: %s\n", front_end.error().message.c_str());
      return 1;
    }
    std::printf("%s\"%s\":%.6f", name == front_end_names()[0] ? "" : ",", std::string(name).c_str(),
                best_of(*front_end, sound, words.number("rounds", 5)));
  }
  std::printf("}\n");
}
