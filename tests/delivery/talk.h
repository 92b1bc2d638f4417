#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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
template <class Client>
std::optional<wire::DeliveryT> next_ticket(Client& client) {
  const std::optional<ControlMessage> message = client.receive();
  if (!message || message->as<wire::Delivery>() == nullptr) return {};
  return unpacked(*message->as<wire::Delivery>());
}

/// Reads on until a message of this kind comes; empty when none does.
template <class Table, class Client>
std::optional<ControlMessage> read_until(Client& client) {
  for (;;) {
    std::optional<ControlMessage> message = client.receive();
    if (!message || message->as<Table>() != nullptr) return message;
  }
}

/// Joins and subscribes; false when that is refused.
inline bool join(RawClient& client, const std::string& arena_socket, wire::SubscribeT subscribe) {
  client.join(arena_socket);
  client.send(std::move(subscribe));
  return read_until<wire::Subscribed>(client).has_value();
}

/// The indices of what is delivered until the counted epochs are over, each released at once.
template <class Client>
std::vector<std::uint64_t> indices_to_the_end(Client& client) {
  std::vector<std::uint64_t> indices;
  while (std::optional<ControlMessage> message = client.receive()) {
    if (const auto* delivery = message->as<wire::Delivery>()) {
      indices.push_back(delivery->index());
      client.send(release_of(unpacked(*delivery)));
    }
    const auto* end = message->as<wire::EpochEnd>();
    if (end != nullptr && end->last()) break;
  }
  return indices;
}

/// The text of a Refused with this code, if that comes next; else empty.
template <class Client>
std::string refusal(Client& client, ErrorCode code) {
  const std::optional<ControlMessage> message = client.receive_news();
  if (!message || message->as<wire::Refused>() == nullptr) return "";
  const auto* refused = message->as<wire::Refused>();
  return refused->code() == static_cast<std::uint16_t>(code) ? refused->message()->str() : "";
}

inline std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = first; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace batchwright::test
