#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "daemon/delivery/feed/roster/client_info.h"
#include "daemon/delivery/feed/slots/slot_generation.h"

namespace batchwright {

/// Slots of sessions that ended while their processes live. Such a process maps the arena and may
/// still read what it was given, so the slots stay held until its arena connection ends.
/// Threads: one at a time.
class HeldOver {
 public:
  /// Adds a slot to those that the client's session left.
  void keep(const ClientInfo& client, std::vector<SlotRef> slots);
  /// The slots that the session left, to be given back; empty when it left none.
  std::vector<SlotRef> let_go(SessionId session);

  std::size_t slots_of(SessionId session) const;
  std::size_t slots() const;
  /// The holders and their numbers of slots, as part of a sentence; empty when there are none.
  std::string describe() const;

 private:
  struct Left {
    std::string client;
    std::vector<SlotRef> slots;
  };
  std::map<SessionId, Left> left_;
};

}  // namespace batchwright
