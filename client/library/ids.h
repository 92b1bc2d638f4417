#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "formats/formats.h"

namespace batchwright {

// Values that link, session and memory share: places, leases, and what a daemon announces.

/// A place in the epochs of a plan: the step that comes next.
struct Position {
  Fingerprint plan;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
};

/// What was asked for and granted, in numbers.
struct Grant {
  Position first;           ///< Where the subscription began.
  std::uint64_t steps = 0;  ///< Steps of that epoch.
  std::uint32_t batches_per_step = 0;
  std::uint32_t world = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t window = 0;
};

/// The right to a batch of a subscription, to be given back. Except for a queue's, the same number
/// means another batch in another session.
struct Lease {
  std::uint64_t session = 0;  ///< The subscription's own count of sessions.
  LeaseNumber number;
};

/// The bytes of a batch, and what keeps them where they are: an arena's mapping, or memory of our
/// own. Threads: immutable.
struct Payload {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;
  bool shared = false;  ///< The keeper is a Mapping, and others read the same bytes.
  std::span<const std::byte> memory{};  ///< All that the keeper keeps; empty: these bytes alone.

  explicit operator bool() const { return keeper != nullptr; }
};

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
