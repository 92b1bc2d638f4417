#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "daemon/planning/planning.h"
#include "storage/features/recipe/recipe.h"
#include "tests/support/lengths_only.h"

// How long an epoch's plan takes where every sequence has one of three speeds, and so another
// length each epoch, beside the plan without them. BATCHWRIGHT_BENCH_MAX sets the number of
// sequences (default ten million).

namespace {

using namespace batchwright;
namespace fs = std::filesystem;

constexpr std::uint32_t kRate = 16'000;

template <class T>
T or_end(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "lengths_bench: %s\n", result.error().message.c_str());
  std::exit(1);
}

/// As speech is cut: log-normal around 6 s, 30 s at most.
std::vector<std::uint32_t> speech_lengths(std::size_t count) {
  SplitMix64 random(1);
  const auto uniform = [&random] {
    return (static_cast<double>(random.next() >> 11) + 0.5) / 9007199254740992.0;
  };
  std::vector<std::uint32_t> samples;
  for (std::size_t i = 0; i < count; ++i) {
    const double normal =
        std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
    const double seconds = std::min(std::exp(1.8 + 0.6 * normal) + 0.1, 30.0);
    samples.push_back(static_cast<std::uint32_t>(seconds * kRate));
  }
  return samples;
}

/// A dataset of one sequence of sound, for its schema.
std::shared_ptr<const Snapshot> one_sound(Catalog& catalog) {
  const fs::path path = fs::temp_directory_path() / "batchwright-lengths-bench";
  fs::remove_all(path);
  const Schema schema{{{"samples", FieldKind::primary, DType::int16, {}, {}},
                       {"rate", FieldKind::independent, DType::uint8, {0}, {}}},
                      {{"store", "pcm"}, {"channel", "only"}}};
  {
    auto writer = or_end(DatasetWriter::open(path, schema));
    const std::vector<std::int16_t> silence(kRate);
    const std::vector<FieldValue> values{{std::as_bytes(std::span(silence)), kRate}, {{}, kRate}};
    if (!writer.append({"one", values}) || !writer.commit()) std::exit(1);
  }
  auto snapshot = or_end(or_end(catalog.open({path}))->snapshot());
  fs::remove_all(path);
  return snapshot;
}

/// Plans an epoch after the other with the speeds, in thousandths.
void plan(benchmark::State& state, const Snapshot& of, Catalog& catalog,
          const std::vector<std::uint32_t>& speeds) {
  RecipeSettings settings;
  settings.like = "kaldi";
  for (const std::uint32_t speed : speeds) settings.speeds.push_back(Speed{speed});
  const auto recipe = or_end(Recipe::open(settings, of, 1, catalog));
  PlanSettings how;
  for (const auto& [name, value] :
       {std::pair("order", "semi-sorted"), {"cut", "dynamic"}, {"shuffle", "batches"}}) {
    if (!set_setting(how, name, value)) std::abort();
  }
  std::uint64_t epoch = 0;
  // Lengths that all epochs share live as long as somebody has them.
  SharedLengths lengths = or_end(recipe->lengths(of, Epoch{epoch}));
  for (auto _ : state) {
    lengths = or_end(recipe->lengths(of, Epoch{epoch}));
    const auto planned = or_end(plan_epoch(*lengths, how, Epoch{epoch++}));
    benchmark::DoNotOptimize(planned.batches());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* most = std::getenv("BATCHWRIGHT_BENCH_MAX");
  Catalog catalog;
  const std::size_t count = most == nullptr ? 10'000'000 : std::strtoull(most, nullptr, 10);
  const test::LengthsOnly of(one_sound(catalog), speech_lengths(count), kRate);
  for (const std::vector<std::uint32_t>& speeds :
       {std::vector<std::uint32_t>{}, {900, 1000, 1100}}) {
    const std::string name = speeds.empty() ? "plan" : "plan, three speeds";
    benchmark::RegisterBenchmark(
        name.c_str(), [&, speeds](benchmark::State& state) { plan(state, of, catalog, speeds); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
