#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

namespace batchwright {

/// How many bytes a disk is to have under way: a multiple of what it delivers in the time that it
/// takes for one read by itself (bandwidth x latency), as both were measured lately. With less the
/// disk idles between two requests; with much more, requests only wait in line, and those that are
/// needed first behind the others.
///
/// The bandwidth is the best of the last kSamples spans in which the window was full; the latency
/// is the shortest of one read in them, since a longer one contains the time in line. The gain lets
/// a disk that serves several reads at once show so: its bandwidth grows with the window, and the
/// window with the bandwidth.
/// Threads: one at a time. Time is an argument.
class ReadWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// Enough for any single disk to begin with.
  static constexpr std::size_t kLeastBytes = 2 << 20;
  static constexpr std::size_t kMostBytes = 64 << 20;
  static constexpr double kGain = 4.0;
  /// A span takes as long as this, and so many reads.
  static constexpr std::chrono::milliseconds kSpan{20};
  static constexpr unsigned kReads = 8;
  static constexpr std::size_t kSamples = 64;

  /// A read goes out, and comes back after `took`. `from_disk` is false where all of it was in
  /// memory already: that says nothing of the disk.
  void began(std::size_t bytes, Time now);
  void done(std::size_t bytes, Duration took, bool from_disk, Time now);
  /// A read was held back since the window is full.
  void was_full() { full_ = true; }

  /// Bytes that may be under way.
  std::size_t bytes() const;
  std::size_t under_way() const { return under_way_; }
  /// Whether a read of so many bytes may go out. One may always.
  bool has_room(std::size_t bytes) const {
    return under_way_ == 0 || under_way_ + bytes <= this->bytes();
  }

  double bytes_per_second() const;  ///< 0 before anything was measured.
  Duration latency() const;         ///< The same.

 private:
  struct Sample {
    double bytes_per_second;
    Duration latency;
  };
  void advance(Time now);
  void end_span();

  std::size_t under_way_ = 0;
  Time last_{};
  // The span that is being measured: time counts only while something is under way.
  Duration busy_{0};
  std::size_t read_bytes_ = 0;
  unsigned reads_ = 0;
  Duration shortest_ = Duration::max();
  bool full_ = false;
  std::deque<Sample> samples_;
};

}  // namespace batchwright
