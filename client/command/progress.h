#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace batchwright {

/// One line that tells how far the work is and how long it will take. On a terminal it is written
/// over itself; elsewhere it is a plain line, at most one in 5 seconds, and one in a minute or
/// with every tenth of the work.
///
/// Time is given, so that one clock reading serves line and rate alike.
class ProgressLine {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ProgressLine(std::FILE* out, Time start);  ///< Asks the system whether `out` is a terminal.
  ProgressLine(std::FILE* out, Time start, bool terminal);
  ~ProgressLine();  ///< Leaves no half line on a terminal.
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether print() would be welcome now.
  bool due(Time now, std::uint64_t done, std::uint64_t total) const;
  /// Writes "42 %  <text>  3 s left".
  void print(Time now, std::uint64_t done, std::uint64_t total, std::string_view text);

  double seconds(Time now) const;  ///< Time since the start.

 private:
  std::FILE* out_;
  Time start_;
  bool terminal_;
  bool printed_ = false;
  Time last_;
  std::uint64_t last_done_ = 0;
};

/// "3 s", "4 min 10 s" or "2 h 5 min".
std::string duration_text(double seconds);

}  // namespace batchwright
