#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Refusals that are sent later, one a second to each session: a client that asks again and again
/// for what it cannot have is slowed down, and keeps its session. Threads: one at a time.
class LateAnswers {
 public:
  struct Refusal {
    std::uint32_t subscription = 0;
    Error error;
  };

  /// Most refusals waiting for one session. A client that asks on without these answers floods us.
  static constexpr std::size_t kWaiting = 64;

  /// False when kWaiting wait already.
  bool add(SessionId session, Refusal refusal);
  /// Drops the refusals of a session that has ended.
  void forget(SessionId session) { waiting_.erase(session); }
  /// Takes out the refusals that are due now, the first of each session.
  std::vector<std::pair<SessionId, Refusal>> take_due();
  bool empty() const { return waiting_.empty(); }

 private:
  std::map<SessionId, std::deque<Refusal>> waiting_;  ///< None is empty.
};

}  // namespace batchwright
