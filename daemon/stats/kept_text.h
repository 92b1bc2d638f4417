#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace batchwright {

/// A text that is kept for a moment, so that whoever asks for it again and again takes little of
/// the loop: it is made anew when it is asked for and the kept one is older than kKept.
///
/// Threads: the loop's only.
class KeptText {
 public:
  using Clock = std::chrono::steady_clock;
  /// Counted from the end of the making: dear ones leave the loop as much time as cheap ones.
  static constexpr std::chrono::milliseconds kKept{100};

  /// `make` must not ask for this text. What it throws goes through, and nothing is kept then.
  explicit KeptText(std::function<std::string()> make,
                    std::function<Clock::time_point()> now = Clock::now)
      : make_(std::move(make)), now_(std::move(now)) {}

  /// Valid until the next call.
  const std::string& text();

 private:
  std::function<std::string()> make_;
  std::function<Clock::time_point()> now_;
  std::string text_;
  Clock::time_point end_ = Clock::time_point::min();  ///< From here on it is made anew.
};

}  // namespace batchwright
