#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "daemon/delivery/client_info.h"
#include "daemon/delivery/slot_generation.h"

namespace batchwright {

/// Slots of sessions that ended while their processes live. Such a process maps the arena and may
/// still read what it was given, so the slots stay held until its arena connection ends.
/// Threads: one at a time.
class HeldOver {
 public:
  /// Adds to what the client's session left.
  void keep(const ClientInfo& client, std::vector<SlotRef> slots);
  /// What the session left, to be given back; empty when it left nothing.
  std::vector<SlotRef> let_go(SessionId session);

  std::size_t slots_of(SessionId session) const;
  std::size_t slots() const;
  /// Who holds how many of them, as part of a sentence; empty when nobody does.
  std::string describe() const;

 private:
  struct Left {
    std::string client;
    std::vector<SlotRef> slots;
  };
  std::map<SessionId, Left> left_;
};

}  // namespace batchwright
