#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace batchwright {

/// A text that is kept for a moment, so that readers which ask again and again take little of the
/// loop: it is made again when it is asked for and the kept one is older than kKept.
///
/// Threads: the loop's only.
class CachedResponse {
 public:
  using Clock = std::chrono::steady_clock;
  /// Counted from the end of rendering, so that expensive pages do not starve the loop.
  static constexpr std::chrono::milliseconds kKept{100};

  /// `make` must not ask for this text. What it throws goes through, and nothing is kept then.
  explicit CachedResponse(std::function<std::string()> make,
                          std::function<Clock::time_point()> now = Clock::now)
      : make_(std::move(make)), now_(std::move(now)) {}

  /// Valid until the next call.
  const std::string& text();

 private:
  std::function<std::string()> make_;
  std::function<Clock::time_point()> now_;
  std::string text_;
  Clock::time_point end_ = Clock::time_point::min();  ///< The text is made again from then on.
};

}  // namespace batchwright
