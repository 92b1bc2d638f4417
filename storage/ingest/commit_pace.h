#pragma once

#include <chrono>
#include <cstdint>

namespace batchwright {

/// When an ingest into a new dataset commits before the writer's limit makes it do so.
///
/// Records that are committed while a processor's cache has them are written faster than those of
/// the writer's 64 MiB, and a killed ingest loses less. But each commit waits for the disk: so the
/// next comes once commits take at most a tenth of the time.
/// Threads: one at a time.
class CommitPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::uint64_t kLeastBytes = std::uint64_t{4} << 20;

  bool is_due(std::uint64_t pending_bytes, Time now) const {
    return pending_bytes >= kLeastBytes && now - ended_ >= kTimes * took_;
  }
  void committed(Time began, Time ended) {
    took_ = ended - began;
    ended_ = ended;
  }

 private:
  static constexpr int kTimes = 9;  ///< The pause after a commit, in multiples of its duration.

  Time ended_{};
  Time::duration took_{};
};

}  // namespace batchwright
