#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "daemon/delivery/repeating_timer.h"
#include "formats/formats.h"

namespace batchwright {

/// Refusals that are sent later, one to each session after each pause: a client that asks again and
/// again for what it cannot have is slowed down, and keeps its session.
///
/// Lifetime: destroyed when the loop no longer runs.
/// Threads: the event loop only.
class DelayedReplies {
 public:
  struct Refusal {
    SubscriptionNumber subscription;
    Error error;
  };

  /// Most refusals waiting for one session. A client that asks on without these answers floods us.
  static constexpr std::size_t kWaiting = 64;

  /// `send` is called on the loop, not from within a call, with each refusal that is due.
  DelayedReplies(boost::asio::io_context& loop, std::chrono::milliseconds pause,
                 std::function<void(SessionId, const Refusal&)> send);

  /// False when kWaiting wait already.
  bool add(SessionId session, Refusal refusal);
  /// Drops the refusals of a session that has ended.
  void forget(SessionId session) { waiting_.erase(session); }
  /// Takes out the refusals that are due now, the first of each session.
  std::vector<std::pair<SessionId, Refusal>> take_due();
  bool empty() const { return waiting_.empty(); }

 private:
  bool send_due();

  std::map<SessionId, std::deque<Refusal>> waiting_;  ///< None is empty.
  std::function<void(SessionId, const Refusal&)> send_;
  RepeatingTimer rounds_;
};

}  // namespace batchwright
