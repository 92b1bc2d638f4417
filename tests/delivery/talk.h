#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/delivery/raw_client.h"

namespace batchwright::test {

inline wire::ReleaseT release_of(const wire::DeliveryT& ticket) {
  wire::ReleaseT release;
  release.subscription = ticket.subscription;
  release.leases = {ticket.lease};
  return release;
}

inline wire::DeliveryT unpacked(const wire::Delivery& delivery) {
  wire::DeliveryT ticket;
  delivery.UnPackTo(&ticket);
  return ticket;
}

/// The next ticket, unpacked; empty when another message comes, or none.
inline std::optional<wire::DeliveryT> next_ticket(RawClient& client) {
  const auto message = client.receive();
  if (!message || message->as<wire::Delivery>() == nullptr) return {};
  return unpacked(*message->as<wire::Delivery>());
}

/// Reads on until a message of this kind comes; empty when none does.
template <class Table>
std::optional<ControlMessage> read_until(RawClient& client) {
  for (;;) {
    auto message = client.receive();
    if (!message || message->template as<Table>() != nullptr) return message;
  }
}

/// The indices of what is delivered until the counted epochs are over, each released at once.
inline std::vector<std::uint64_t> indices_to_the_end(RawClient& client) {
  std::vector<std::uint64_t> indices;
  while (auto message = client.receive()) {
    if (const auto* delivery = message->as<wire::Delivery>()) {
      indices.push_back(delivery->index());
      client.send(release_of(unpacked(*delivery)));
    }
    const auto* end = message->as<wire::EpochEnd>();
    if (end != nullptr && end->last()) break;
  }
  return indices;
}

}  // namespace batchwright::test
