#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "daemon/delivery/feed/core/events.h"

namespace batchwright {

/// Messages that may be sent only once the records before them are with the kernel. Those to one
/// subscription keep their order; nothing else waits. Threads: one at a time.
class HeldSends {
 public:
  struct Held {
    SubscriptionKey to;
    std::uint64_t record = 0;
    FeedAction action;  ///< A Send, or a SendBatch.
  };

  bool has_written(std::uint64_t record) const { return record <= written_; }
  /// Whether a message to this subscription that follows this record may be sent: the record is
  /// written, and no message to the subscription is held.
  bool lets_pass(const SubscriptionKey& to, std::uint64_t record) const {
    if (!holds_) return true;
    return has_written(record) && std::none_of(held_.begin(), held_.end(),
                                               [&to](const Held& held) { return held.to == to; });
  }
  /// One that only keeps its place in its subscription's order follows one that waits for a record,
  /// so records never go down from one to the next where that matters.
  void hold(Held held) { held_.push_back(std::move(held)); }
  /// The records up to this one are written. What may be sent by that, in order.
  std::vector<FeedAction> written(std::uint64_t upto) {
    written_ = std::max(written_, upto);
    std::vector<FeedAction> sends;
    while (!held_.empty() && has_written(held_.front().record)) {
      sends.push_back(std::move(held_.front().action));
      held_.pop_front();
    }
    return sends;
  }
  /// Lets all pass from now on: nothing is recorded any more. What was held, and is not sent.
  std::deque<Held> stop() {
    holds_ = false;
    return std::exchange(held_, {});
  }

 private:
  std::uint64_t written_ = 0;
  bool holds_ = true;
  std::deque<Held> held_;  ///< In the order of their records.
};

}  // namespace batchwright
