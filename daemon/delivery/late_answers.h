#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// Refusals that are told later, one a second to each session: a client that asks again and again
/// for what it cannot have is slowed down, and keeps its session. Threads: one at a time.
class LateAnswers {
 public:
  struct Refusal {
    std::uint32_t subscription = 0;
    Error error;
  };

  /// Refusals that wait for one session. Who asks on without an answer to that many is a flood.
  static constexpr std::size_t kWaiting = 64;

  /// False when kWaiting wait already.
  bool add(SessionId session, Refusal refusal);
  /// The session's end: nothing is told any more.
  void forget(SessionId session) { waiting_.erase(session); }
  /// What is due now: the first of each session's, which are taken out.
  std::vector<std::pair<SessionId, Refusal>> take_due();
  bool empty() const { return waiting_.empty(); }

 private:
  std::map<SessionId, std::deque<Refusal>> waiting_;  ///< None is empty.
};

}  // namespace batchwright
