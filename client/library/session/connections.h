#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "client/library/session/subscription.h"
#include "formats/formats.h"

namespace batchwright {

/// The object behind a program's handle of a connection. Threads: immutable.
struct Connected {
  Subscription::Sessions sessions;  ///< One for each endpoint.
  std::vector<bw_feed> feeds;  ///< The common feeds; their pointers refer to the first session.
  std::vector<bw_absent_feed> absent;  ///< Their pointers refer to a session each.
};

/// The connections that a program has handles of.
///
/// A handle is a number and points nowhere. So a handle that was closed is known to be one, and is
/// never another connection's; and a call keeps what it has found while another thread closes it.
/// Threads: any. The lock is held across a fork, so that a child finds the list in order.
class Connections {
 public:
  /// Made when it is first needed, and never destroyed: a call may come during exit.
  static Connections& of_process();

  bw_connection* add(std::shared_ptr<const Connected> connection);
  /// Null when there is none, or no longer.
  std::shared_ptr<const Connected> find(const bw_connection* handle);
  /// The same, and from now on there is none.
  std::shared_ptr<const Connected> remove(const bw_connection* handle);

 private:
  Connections();

  Mutex mutex_;
  std::uintptr_t last_ GUARDED_BY(mutex_) = 0;
  std::map<std::uintptr_t, std::shared_ptr<const Connected>> open_ GUARDED_BY(mutex_);
};

}  // namespace batchwright
