// Rows by a recipe, from FLAC in a dataset to masked features:
//   bench_chain folder=DIR [threads=1] [rounds=3] [sinc=1]
// DIR has speech/*.flac, noise.flac and room.flac. sinc: resampled by short sincs in place of
// libsoxr. Prints seconds of sound, and of processor and of wall that the best round took.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "storage/features/recipe/recipe.h"
#include "storage/features/sound/sound.h"
#include "tests/bench/words.h"

namespace {

using namespace batchwright;
namespace fs = std::filesystem;

template <class T>
T or_end(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "bench_chain: %s\n", result.error().message.c_str());
  std::exit(1);
}

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(fs::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// A dataset as `batchwright ingest audio --store encoded` makes it.
void make_dataset(const fs::path& path, const std::vector<fs::path>& files) {
  const Schema schema{{{"samples", FieldKind::primary, DType::uint8, {0}, {}},
                       {"encoded", FieldKind::independent, DType::uint8, {}, {}},
                       {"rate", FieldKind::independent, DType::uint8, {0}, {}}},
                      {{"store", "encoded"}, {"channel", "only"}}};
  auto writer = or_end(DatasetWriter::open(path, schema));
  for (const fs::path& file : files) {
    const auto bytes = bytes_of(file);
    const auto extent = or_end(decode_bytes(
        bytes, ChannelChoice::only, [](auto) {}, kMostSequence));
    const std::vector<FieldValue> values{
        {{}, static_cast<std::uint32_t>(extent.samples)},
        {std::as_bytes(std::span(bytes)), static_cast<std::uint32_t>(bytes.size())},
        {{}, extent.sample_rate}};
    if (!writer.append({file.filename().string(), values})) std::exit(1);
  }
  if (!writer.commit()) std::exit(1);
}

RecipeSettings chain(const fs::path& folder, ResamplerKind resampler) {
  RecipeSettings settings;
  settings.like = "kaldi";
  settings.speeds = {or_end(parse_speed(0.9)), or_end(parse_speed(1.1))};
  StyleSettings style;
  style.noise = {folder / "noise"};
  style.rooms = {folder / "rooms"};
  settings.styles = {style};
  settings.spec_augment = true;
  settings.resampler = resampler;
  return settings;
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Makes every row once, the threads taking turns.
void make_all(const Recipe& recipe, const Snapshot& of, unsigned threads, std::uint64_t epoch,
              std::array<double, kRecipeSteps>& seconds) {
  const DrawKeys keys = or_end(recipe.draw_keys(of, Epoch{epoch}));
  const auto work = [&](unsigned first) {
    RowMaker maker;
    std::vector<MadeField> row;
    for (std::uint64_t i = first; i < of.sequences(); i += threads) {
      const auto record = or_end(of.record(Ordinal{i}));
      std::vector<FieldValue> values;
      for (std::size_t f = 0; f < record.fields(); ++f) values.push_back(record.field(f));
      if (!maker.make(recipe, keys.of(Ordinal{i}, 0), values, row)) std::exit(1);
    }
    if (first == 0) seconds = maker.take_seconds();
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads; ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Words words(argc, argv);
  const fs::path folder = words.text("folder");
  const auto threads = static_cast<unsigned>(words.number("threads", 1));
  if (!fs::exists(folder / "set")) {
    std::vector<fs::path> speech(fs::directory_iterator(folder / "speech"), {});
    std::sort(speech.begin(), speech.end());
    make_dataset(folder / "noise", {folder / "noise.flac"});
    make_dataset(folder / "rooms", {folder / "room.flac"});
    make_dataset(folder / "set", speech);
  }
  Catalog catalog;
  const auto snapshot = or_end(or_end(catalog.open({folder / "set"}))->snapshot());
  const ResamplerKind resampler = words.has("sinc") ? ResamplerKind::sinc : ResamplerKind::soxr;
  const auto recipe = or_end(Recipe::open(chain(folder, resampler), *snapshot, 1, catalog));
  double sound = 0;
  for (const std::uint32_t samples : snapshot->lengths()) sound += samples / 16'000.0;
  double cpu = std::numeric_limits<double>::infinity();
  double wall = cpu;
  std::array<double, kRecipeSteps> steps{};
  for (std::uint64_t round = 0; round < words.number("rounds", 3); ++round) {
    const auto began = std::chrono::steady_clock::now();
    const double before = cpu_seconds();
    make_all(*recipe, *snapshot, threads, round, steps);
    cpu = std::min(cpu, cpu_seconds() - before);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    wall = std::min(wall, spent.count());
  }
  std::printf("{\"sound\":%.6f,\"cpu\":%.6f,\"wall\":%.6f,\"steps\":[", sound, cpu, wall);
  // Of the first thread, in the last round.
  for (std::size_t i = 0; i < steps.size(); ++i) std::printf(i == 0 ? "%.6f" : ",%.6f", steps[i]);
  std::printf("]}\n");
}
