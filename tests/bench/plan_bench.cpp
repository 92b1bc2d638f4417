#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/planning/planning.h"
#include "daemon/planning/rng.h"

// How long an epoch's plan takes, beside std::sort of the lengths alone and of semi-sorted keys,
// and the memory it needs beyond the lengths. BATCHWRIGHT_BENCH_MAX sets the largest number of
// sequences (default ten million; a hundred million needs 2.4 GB).

namespace {

using namespace batchwright;

/// A line of /proc/self/status, in bytes.
std::size_t memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoul(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// The most memory that was resident at once since reset().
class PeakMemory {
 public:
  void reset() {
    std::ofstream("/proc/self/clear_refs") << 5;
    before_ = memory("VmRSS:");
  }
  std::size_t beyond() const { return memory("VmHWM:") - before_; }

 private:
  std::size_t before_ = 0;
};

/// Log-normal lengths around 400 frames.
const std::vector<std::uint32_t>& lengths(std::size_t count) {
  static std::vector<std::uint32_t> kept;
  if (kept.size() == count) return kept;
  kept.clear();
  kept.shrink_to_fit();
  kept.reserve(count);
  RandomStream random(1, Stream::select);
  const auto uniform = [&random] {
    return (static_cast<double>(random.next() >> 11) + 0.5) / 9007199254740992.0;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const double normal =
        std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
    kept.push_back(static_cast<std::uint32_t>(std::exp(6 + 0.6 * normal)) + 1);
  }
  return kept;
}

void sort_lengths(benchmark::State& state) {
  const auto& all = lengths(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    auto keys = all;
    state.ResumeTiming();
    std::sort(keys.begin(), keys.end());
    benchmark::DoNotOptimize(keys.data());
  }
}

/// The keys that semi-sorted batching sorts by: hardly two of them are equal.
void sort_noisy_keys(benchmark::State& state) {
  const auto& all = lengths(static_cast<std::size_t>(state.range(0)));
  const std::uint32_t range = *std::max_element(all.begin(), all.end());
  const std::uint32_t scale = 0xFFFFFFFFu / (range + range / 10 + 1);
  RandomStream random(2, Stream::noise);
  for (auto _ : state) {
    state.PauseTiming();
    auto keys = all;
    for (auto& key : keys) key = key * scale + random.below(scale * (range / 10) + 1);
    state.ResumeTiming();
    std::sort(keys.begin(), keys.end());
    benchmark::DoNotOptimize(keys.data());
  }
}

void plan(benchmark::State& state, const std::vector<std::string>& texts) {
  const auto& all = lengths(static_cast<std::size_t>(state.range(0)));
  PlanSettings settings;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (!set_setting(settings, text.substr(0, equals), text.substr(equals + 1))) std::abort();
  }
  std::uint64_t epoch = 0;
  PeakMemory peak;
  peak.reset();
  for (auto _ : state) {
    const auto planned = plan_epoch(all, settings, Epoch{epoch++});
    if (!planned) {
      state.SkipWithError(planned.error().message.c_str());
      return;
    }
    benchmark::DoNotOptimize(planned->batches());
  }
  state.counters["bytes_a_sequence"] =
      static_cast<double>(peak.beyond()) / static_cast<double>(all.size());
}

const std::vector<std::pair<const char*, std::vector<std::string>>>& strategies() {
  static const std::vector<std::pair<const char*, std::vector<std::string>>> all = {
      {"semi-sorted dynamic batches", {"order=semi-sorted", "cut=dynamic", "shuffle=batches"}},
      {"random", {"order=random"}},
      {"sorted", {"order=sorted"}},
      {"semi-sorted", {"order=semi-sorted"}},
      {"bucket 1024", {"order=bucket", "bucket_size=1024"}},
      {"alternated 64", {"order=alternated", "bins=64"}},
      {"bucket-span 50", {"order=bucket-span", "bucket_span=50"}},
      {"bucket-optimal 64", {"order=bucket-optimal", "bucket_count=64"}},
      {"random frames", {"order=random", "cut=frames", "max_frames=40000"}},
      {"semi-sorted quadratic groups",
       {"order=semi-sorted", "cut=quadratic", "max_frames=400000", "quadratic_scale=500",
        "shuffle=groups", "world=8"}},
      {"select fixed, sorted", {"select=fixed", "alpha=0.5", "order=sorted"}},
      {"lanes", {"lanes=32", "unroll=20"}}};
  return all;
}

/// Starts at many lengths, so that the time's growth shows; all strategies at one.
void add_benchmarks(std::int64_t most) {
  const auto sized = [most](benchmark::internal::Benchmark* added) {
    for (std::int64_t count = 10'000; count <= most; count *= 10) added->Arg(count);
    added->Unit(benchmark::kMillisecond);
  };
  sized(benchmark::RegisterBenchmark("std::sort of lengths", sort_lengths));
  sized(benchmark::RegisterBenchmark("std::sort of semi-sorted keys", sort_noisy_keys));
  for (const auto& [name, texts] : strategies()) {
    auto* added = benchmark::RegisterBenchmark(name, plan, texts);
    if (&texts == &strategies()[0].second) {
      sized(added);
    } else {
      added->Arg(std::min<std::int64_t>(most, 10'000'000))->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* most = std::getenv("BATCHWRIGHT_BENCH_MAX");
  add_benchmarks(most == nullptr ? 10'000'000 : std::atoll(most));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("most resident memory: %.3f GB\n", static_cast<double>(usage.ru_maxrss) / 1e6);
}
