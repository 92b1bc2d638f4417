#include "client/command/bench/bench_memcpy.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

namespace batchwright {
namespace {

/// Long enough to time, short enough that a busy machine leaves some rounds alone.
constexpr std::chrono::milliseconds kRound{200};

}  // namespace

Result<MemcpyBaseline> MemcpyBaseline::prepare(const std::vector<std::string>& shards,
                                               std::span<const std::uint64_t> ordinals,
                                               std::size_t arena_bytes, std::size_t threads) {
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
  // A thread without a row would copy nothing.
  baseline.rings_.resize(std::clamp<std::size_t>(baseline.rows_.size(), 1, threads));
  for (std::size_t thread = 0; thread < baseline.rings_.size(); ++thread) {
    baseline.rings_[thread].bytes.resize(std::max(arena_bytes / threads, longest));
    baseline.copy_once(thread);
  }
  return baseline;
}

double MemcpyBaseline::measure() {
  const auto now = &std::chrono::steady_clock::now;
  const auto end = now() + std::chrono::seconds(1);
  double best = 0.0;
  // The best round is the least disturbed one: a yardstick must not be too short.
  while (now() < end) best = std::max(best, round());
  return best;
}

double MemcpyBaseline::round() {
  const auto now = &std::chrono::steady_clock::now;
  std::vector<double> rates(rings_.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < rates.size(); ++thread) {
      threads.emplace_back([this, thread, now, &rates] {
        const auto start = now();
        std::uint64_t bytes = 0;
        std::chrono::duration<double> taken{0};
        while (taken < kRound) {
          bytes += copy_once(thread);
          taken = now() - start;
        }
        rates[thread] = static_cast<double>(bytes) / taken.count();
      });
    }
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

std::uint64_t MemcpyBaseline::copy_once(std::size_t thread) {
  std::vector<std::byte>& ring = rings_[thread].bytes;
  std::uint64_t bytes = 0;
  std::size_t place = rings_[thread].place;
  for (std::size_t i = thread; i < rows_.size(); i += rings_.size()) {
    const auto row = rows_[i];
    // A row stays in one piece, as in a batch.
    if (row.size() > ring.size() - place) place = 0;
    std::memcpy(ring.data() + place, row.data(), row.size());
    place += row.size();
    bytes += row.size();
  }
  rings_[thread].place = place;
  return bytes;
}

}  // namespace batchwright
