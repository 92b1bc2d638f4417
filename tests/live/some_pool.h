#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/live/live.h"

namespace batchwright::test {

/// Checked settings of a step of so many sequences.
inline LiveSettings steps_of(std::uint64_t sequences) {
  LiveSettings settings;
  settings.step = sequences;
  return settings;
}

/// A pool, and all that it has decided.
class SomePool {
 public:
  explicit SomePool(const LiveSettings& settings) : pool(checked(settings)) {}

  /// Returns the event's number.
  std::uint64_t at(std::uint64_t now_ms, const LiveEvent& event) {
    return pool.on(event, now_ms, results);
  }

  /// A sequence of ten frames, or as many as it says, and forty bytes, with the number that comes
  /// next.
  std::uint64_t push(std::uint64_t now_ms, ProducerId producer = 0, LivePush push = {}) {
    if (producer >= next_.size()) next_.resize(producer + 1);
    push.producer = producer;
    push.number = next_[producer]++;
    if (push.length == 0) push.length = 10;
    push.bytes = 40;
    return at(now_ms, push);
  }

  const LiveAnswer& last_answer() const {
    REQUIRE(!results.answers.empty());
    return results.answers.back();
  }

  /// The refusal of the last event, or nothing.
  std::string refusal(const LiveEvent& event) {
    const std::size_t before = results.answers.size();
    at(pool_time_, event);
    if (results.answers.size() == before) return "";
    const LiveAnswer& answer = last_answer();
    return answer.kind == LiveAnswer::Kind::refused ? answer.why : "";
  }

  LivePool pool;
  LiveResults results;

 private:
  static LiveSettings checked(const LiveSettings& settings) {
    auto done = check_live_settings(settings);
    REQUIRE(done);
    return *std::move(done);
  }

  std::vector<std::uint64_t> next_;
  std::uint64_t pool_time_ = 0;
};

}  // namespace batchwright::test
