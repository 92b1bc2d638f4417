#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace batchwright {

/// When a daemon is looked for: the first one, and another one after a loss.
/// Threads: one at a time. Time is an argument.
class Search {
 public:
  using Clock = std::chrono::steady_clock;

  /// Between two attempts, so that a daemon that says goodbye at once is not asked all the time.
  static constexpr std::chrono::milliseconds kBetweenAttempts{50};

  /// A daemon that is gone for longer than `patience` is given up; 0: at once.
  explicit Search(std::chrono::milliseconds patience) : patience_(patience) {}

  bool has_patience() const { return patience_.count() != 0; }
  /// Whether some daemon was met.
  bool has_met() const { return has_met_; }
  /// Whether a daemon that was met is gone, and none was met since.
  bool is_away() const { return away_.has_value(); }
  bool is_given_up(Clock::time_point now) const;
  bool attempt_is_due(Clock::time_point now) const { return now >= next_attempt_; }
  /// The time of the next attempt, where one is wanted, or of giving up; `latest` at the latest.
  Clock::time_point next_change(bool wants_attempt, Clock::time_point latest) const;

  void attempted(Clock::time_point now) { next_attempt_ = now + kBetweenAttempts; }
  void hurry(Clock::time_point now) { next_attempt_ = now; }
  /// Whether it was one that came back.
  bool met();
  /// Counts from the first loss on until a daemon is met. Without effect before the first one is.
  void lost(const std::string& how, Clock::time_point now);
  /// What keeps a lost daemon from being met, where it is known.
  void note_obstacle(const std::string& what);

  /// "has been gone for 3 s (said goodbye)"; only while it is away.
  std::string text(Clock::time_point now) const;

 private:
  /// A daemon that was there and is not.
  struct Away {
    Clock::time_point since;
    std::string why;
  };

  std::chrono::milliseconds patience_;
  bool has_met_ = false;
  std::optional<Away> away_;
  Clock::time_point next_attempt_{};
};

}  // namespace batchwright
