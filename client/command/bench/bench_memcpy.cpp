#include "client/command/bench/bench_memcpy.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

namespace batchwright {
namespace {

/// Long enough to time, short enough that a busy machine leaves some rounds alone.
constexpr std::chrono::milliseconds kRound{200};

}  // namespace

Result<MemcpyBaseline> MemcpyBaseline::prepare(const std::vector<std::string>& shards,
                                               std::span<const std::uint64_t> ordinals,
                                               std::size_t arena_bytes) {
  MemcpyBaseline baseline;
  baseline.catalog_ = std::make_unique<Catalog>();
  // Unverified: a checksum is not part of a copy.
  auto dataset = baseline.catalog_->open({shards.begin(), shards.end()}, VerifyRecords::never);
  if (!dataset) return dataset.error();
  auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  baseline.snapshot_ = std::move(*snapshot);
  std::size_t longest = 0;
  // In the order in which the daemon delivered them, and so with its jumps in the map.
  for (const std::uint64_t ordinal : ordinals) {
    const auto record = baseline.snapshot_->record(Ordinal{ordinal});
    if (!record) return record.error();
    for (std::size_t i = 0; i < record->fields(); ++i) {
      baseline.rows_.push_back(record->field(i).bytes);
      longest = std::max(longest, baseline.rows_.back().size());
    }
  }
  // As large as the arena, so that the caches help neither side more; a row has to fit.
  baseline.ring_.resize(std::max(arena_bytes, longest));
  baseline.copy_once();
  return baseline;
}

double MemcpyBaseline::measure() {
  const auto now = &std::chrono::steady_clock::now;
  const auto end = now() + std::chrono::seconds(1);
  double best = 0.0;
  while (now() < end) {
    const auto start = now();
    std::uint64_t bytes = 0;
    std::chrono::duration<double> taken{0};
    while (taken < kRound) {
      bytes += copy_once();
      taken = now() - start;
    }
    // The best round is the least disturbed one: a yardstick must not be too short.
    best = std::max(best, static_cast<double>(bytes) / taken.count());
  }
  return best;
}

std::uint64_t MemcpyBaseline::copy_once() {
  std::uint64_t bytes = 0;
  for (const auto row : rows_) {
    // A row stays in one piece, as in a batch.
    if (row.size() > ring_.size() - place_) place_ = 0;
    std::memcpy(ring_.data() + place_, row.data(), row.size());
    place_ += row.size();
    bytes += row.size();
  }
  return bytes;
}

}  // namespace batchwright
