// How fast a batch is assembled, against a plain copy of the same rows out of the same map.
//   assembly_bench DATASET [--benchmark_...]
// Fifteen repetitions of each, in a random order, and their medians, unless options say otherwise.
// The dataset (see make_ljspeech) should fit the page cache. Each round assembles the next batch of
// a semi-sorted, dynamically cut epoch into the next of 16 slots, as a feed does.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/assembly/assembly.h"

namespace {

using namespace batchwright;

constexpr std::uint32_t kSlots = 16;

struct Scene {
  EpochSource source;
  std::unique_ptr<Arena> arena;
};

std::unique_ptr<Scene> scene;

PlanSettings plan_settings() {
  PlanSettings settings;
  settings.order = Order::semi_sorted;
  settings.cut = Cut::dynamic;
  settings.size = 16;
  settings.shuffle = Shuffle::batches;
  return settings;
}

Result<std::unique_ptr<Scene>> set_the_scene(const char* path) {
  Catalog catalog;
  auto dataset = catalog.open({path});
  if (!dataset) return dataset.error();
  auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  const auto lengths = (*snapshot)->lengths();
  auto plan = plan_epoch(lengths, plan_settings(), Epoch{0});
  if (!plan) return plan.error();
  const auto bound = plan_bound(lengths, plan_settings());
  if (!bound) return bound.error();
  const auto slot_bytes = slot_bytes_for(**snapshot, {"bench", Layout::batch_major, {}}, *bound);
  if (!slot_bytes) return slot_bytes.error();
  auto arena = Arena::create(kSlots, *slot_bytes);
  if (!arena) return arena.error();
  EpochSource source{Epoch{0}, {}, std::move(*snapshot), std::move(*plan)};
  return std::make_unique<Scene>(Scene{std::move(source), std::move(*arena)});
}

/// The rows of every batch, found beforehand, so that copying them is copying and nothing else.
std::vector<std::vector<std::span<const std::byte>>> rows_in_the_map() {
  std::vector<std::vector<std::span<const std::byte>>> batches(scene->source.plan.batches());
  const std::size_t primary = scene->source.snapshot->schema().primary();
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < batches.size(); ++i) {
    scene->source.plan.rows(BatchIndex{i}, rows);
    for (const Row& row : rows) {
      const auto record = scene->source.snapshot->record(Ordinal{row.ordinal});
      if (record) batches[i].push_back(record->field(primary).bytes);
    }
  }
  return batches;
}

void copy_rows(benchmark::State& state) {
  const auto batches = rows_in_the_map();
  std::uint64_t next = 0;
  std::int64_t bytes = 0;
  for (auto round : state) {
    const auto slot = scene->arena->slot(SlotIndex{static_cast<std::uint32_t>(next % kSlots)});
    std::size_t end = 0;
    for (const auto row : batches[next % batches.size()]) {
      std::memcpy(slot.data() + end, row.data(), row.size());
      end += row.size();
    }
    benchmark::ClobberMemory();
    bytes += static_cast<std::int64_t>(end);
    ++next;
  }
  state.SetBytesProcessed(bytes);
}

/// The rate is that of the bytes that are read, whatever they are cast to.
void assemble(benchmark::State& state, Layout layout, const CopyChoice& copies, DType cast) {
  const BatchStyle style{"bench", layout, {}, OnCorrupt::stop, nullptr, {cast, {}}};
  const auto& snapshot = *scene->source.snapshot;
  const auto frame = frame_bytes(snapshot.schema().fields[snapshot.schema().primary()]);
  std::uint64_t next = 0;
  std::int64_t bytes = 0;
  for (auto round : state) {
    const auto slot = scene->arena->slot(SlotIndex{static_cast<std::uint32_t>(next % kSlots)});
    const auto batch = assemble_batch(
        scene->source, style, BatchIndex{next % scene->source.plan.batches()}, slot, copies);
    if (!batch) return state.SkipWithError(batch.error().message.c_str());
    bytes += static_cast<std::int64_t>(batch->frames * frame);
    ++next;
  }
  state.SetBytesProcessed(bytes);
}

/// One for memcpy of the rows, then one for each way this processor has, one for the choice, and
/// one for each cast.
void register_all(const CopyChoice& chosen) {
  benchmark::RegisterBenchmark("copy_rows", copy_rows);
  const auto add = [](std::string_view name, const CopyChoice& copies, DType cast = DType::none) {
    for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
      const bool by_time = layout == Layout::time_major;
      const std::string title =
          fmt::format("assemble/{}/{}", by_time ? "time_major" : "batch_major", name);
      benchmark::RegisterBenchmark(title.c_str(), assemble, layout, copies, cast);
    }
  };
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) add(way.name, CopyChoice(way));
  }
  add("chosen", chosen);
  add("chosen_float16", chosen, DType::float16);
  add("chosen_bfloat16", chosen, DType::bfloat16);
}

/// What disturbs one repetition disturbs its neighbours, too: those of one way must not be these.
std::vector<std::string>& usual_options() {
  static std::vector<std::string> options{"--benchmark_enable_random_interleaving=true",
                                          "--benchmark_repetitions=15", "--benchmark_min_time=0.1",
                                          "--benchmark_report_aggregates_only=true"};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> words{argv, argv + argc};
  // Before the caller's own: of two equal options the last one counts.
  for (std::string& each : usual_options()) words.insert(words.begin() + 1, each.data());
  argc = static_cast<int>(words.size());
  argv = words.data();
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: assembly_bench DATASET [--benchmark_...]\n");
    return 2;
  }
  auto set = set_the_scene(argv[1]);
  if (!set) {
    std::fprintf(stderr, "assembly_bench: %s\n", set.error().message.c_str());
    return 1;
  }
  scene = std::move(*set);
  const CopyChoice copies = CopyChoice::of_name(kAutoCopy);
  std::printf("chosen: %s\n", std::string(copies.name()).c_str());
  register_all(copies);
  benchmark::RunSpecifiedBenchmarks();
  scene.reset();
  return 0;
}
