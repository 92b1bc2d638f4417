#pragma once

#include "client/library/session/session.h"

namespace batchwright {

/// The right to subscribe and to take batches, and with it the link; taken by take_turn().
class BW_THREAD_SAFETY(scoped_lockable) Session::Turn {
 public:
  explicit Turn(Session& session) REQUIRES(session.turn_mutex_, session.link_mutex_)
      : session_(session),
        turn_(session.turn_mutex_, std::adopt_lock),
        link_(session.link_mutex_, std::adopt_lock) {}
  /// Tells the daemon of the leases: what this call has left, and once the link is free, what came
  /// from other threads that found it taken. The analysis does not know in here that it holds both.
  ~Turn() BW_THREAD_SAFETY(release_capability()) NO_THREAD_SAFETY_ANALYSIS {
    static_cast<void>(session_.send_outboxes());
    link_.unlock();
    turn_.unlock();
    session_.send_outboxes_if_free();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Session& session_;
  MutexLock turn_;
  MutexLock link_;
};

/// The error of a thread that does not get it.
inline Error busy() {
  return {ErrorCode::busy, "another thread is in bw_next or bw_subscribe on this connection"};
}

}  // namespace batchwright
