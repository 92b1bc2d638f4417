#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace batchwright {

/// The times at which feeds that are not served are tried again, and whether a reason is new.
///
/// The pause doubles from kFirst to kLongest. A feed that was served for less than kSettled before
/// it failed again goes on with the pause it had: data that look whole and are not are not read
/// all the time.
/// Threads: one at a time. Time is an argument.
class Retries {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kFirst{250};
  static constexpr std::chrono::milliseconds kLongest{5'000};
  static constexpr std::chrono::minutes kSettled{1};

  /// The feed is opened for the first time: it is due, and nothing is reported of it yet.
  void begin(const std::string& feed, Time now);
  /// It is being tried: it is not due before the outcome is known.
  void trying(const std::string& feed);
  /// The feed is not served, for this reason. True when the reason differs from the one reported
  /// last, in more than its figures.
  bool failed(const std::string& feed, const std::string& reason, Time now);
  /// The feed is served; what it took since a reason was reported why it was not, in whole seconds.
  /// Empty: none was.
  std::optional<std::chrono::seconds> served(const std::string& feed, Time now);
  /// It could not be tried now, for a reason that is not its own.
  void put_off(const std::string& feed, Time now);
  /// These feeds alone are configured.
  void keep(const std::set<std::string>& feeds);

  bool waits(const std::string& feed) const;
  /// Feeds whose pause is over.
  std::vector<std::string> due(Time now) const;
  /// The time at which the next one is due; empty when none waits.
  std::optional<Time> next() const;

 private:
  struct Feed {
    std::string reason;
    Time since;                       ///< Time at which it ceased, or began, to be served.
    std::chrono::milliseconds pause;  ///< Before the next try.
    std::optional<Time> due;          ///< Empty: it is served. The end of time: it is being tried.
  };
  std::map<std::string, Feed> feeds_;
};

}  // namespace batchwright
