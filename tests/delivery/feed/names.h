#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"

namespace batchwright::test {

constexpr std::chrono::steady_clock::time_point kNow{};

/// The subscription of the client with this session.
inline SubscriptionKey client(std::uint64_t session, std::uint32_t number = 1) {
  return {SessionId{session}, {number}};
}

inline BatchId batch(std::uint64_t index, std::uint64_t epoch = 0) {
  return {Epoch{epoch}, BatchIndex{index}};
}

}  // namespace batchwright::test
