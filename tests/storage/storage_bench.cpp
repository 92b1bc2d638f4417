// Measures the storage room: storage_bench FOLDER [SEQUENCES] [FRAMES]
//
// Writes a dataset of SEQUENCES x FRAMES x 80 float32 into FOLDER if it does not exist, opens it,
// and compares reading with CRC-32C to memcpy over the same warm map.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

using namespace batchwright;

namespace {

constexpr std::size_t kFrameBytes = 80 * sizeof(float);

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void write(const std::filesystem::path& path, std::uint64_t sequences, std::uint32_t frames) {
  const Schema schema{{{"features", FieldKind::primary, DType::float32, {80}, {}}}, {}};
  auto writer = must(DatasetWriter::open(path, schema));
  const std::vector<float> features(frames * 80ULL, 0.5F);
  const std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), frames}};
  for (std::uint64_t i = 0; i < sequences; ++i) {
    must(writer.append({"utterance-" + std::to_string(i * 7919 % 100000007), values}));
  }
  must(writer.commit());
}

/// Seconds to visit the payload of every sequence.
template <class Visit>
double visit_all(const Snapshot& snapshot, Visit visit) {
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < snapshot.sequences(); ++i) {
    visit(must(snapshot.record(Ordinal{i})).field(0).bytes);
  }
  return seconds_since(start);
}

void report(const char* what, double seconds, double amount, const char* unit) {
  std::printf("%-28s %8.3f s  %10.3f %s\n", what, seconds, amount / seconds, unit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::filesystem::path path = argv[1];
  const std::uint64_t sequences = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  const auto frames = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 1);
  const double gigabytes = static_cast<double>(sequences * frames * kFrameBytes) / 1e9;
  auto start = Clock::now();
  if (!std::filesystem::exists(path)) {
    write(path, sequences, frames);
    const double seconds = seconds_since(start);
    report("append and commit", seconds, static_cast<double>(sequences) / 1e3, "k sequences/s");
    report("", seconds, gigabytes, "GB/s");
  }

  Catalog catalog;
  const std::pair<const char*, Holding> openings[] = {{"open and snapshot", Holding::lengths},
                                                      {"again", Holding::lengths},
                                                      {"with checksums", Holding::checksums},
                                                      {"again", Holding::checksums}};
  for (const auto& [what, holding] : openings) {
    start = Clock::now();
    const auto opened =
        must(must(catalog.open({path}, VerifyRecords::never, Locking::on, holding))->snapshot());
    report(what, seconds_since(start), static_cast<double>(opened->sequences()) / 1e6, "M/s");
  }

  const auto snapshot = must(must(catalog.open({path}, VerifyRecords::never))->snapshot());
  std::vector<std::byte> copy(frames * kFrameBytes);
  std::uint32_t crc = 0;
  const auto copy_one = [&](auto bytes) { must(copy_from_map(copy, bytes)); };
  const auto crc_one = [&](auto bytes) { crc = crc32c(bytes, crc); };
  const auto look_up = [&](auto bytes) { crc += static_cast<std::uint32_t>(bytes.size()); };
  visit_all(*snapshot, copy_one);
  const double sequences_k = static_cast<double>(sequences) / 1e3;
  report("look up", visit_all(*snapshot, look_up), sequences_k, "k sequences/s");
  report("look up and memcpy", visit_all(*snapshot, copy_one), gigabytes, "GB/s");
  report("look up and CRC-32C", visit_all(*snapshot, crc_one), gigabytes, "GB/s");
  std::printf("checksum %08x\n", crc);
  return 0;
}
