#pragma once

#include <cstdint>

#include "client/library/memory/payload.h"
#include "client/library/session/lease_book.h"
#include "client/library/session/position.h"

namespace batchwright {

/// A batch as the daemon announced it: where it lies, or what came along.
struct Ticket {
  LeaseNumber lease;
  ArenaNumber arena;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t index = 0;
  bool rehearsal = false;
  bool may_join = false;  ///< Releases may wait for each other.
  std::uint32_t attempt = 0;
  Payload payload{};  ///< Without an arena only.
};

/// A batch that the program has taken.
struct Taken {
  Ticket ticket;
  Position position;  ///< Where to resume when this batch was the last one finished.
};

struct EpochEnded {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;  ///< Steps that the epoch had.
  bool last = false;        ///< Nothing follows.
};

struct EpochBegan {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;
  Fingerprint plan;
};

}  // namespace batchwright
