#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/delivery/pending_subscriptions.h"
#include "formats/formats.h"

namespace batchwright::test {

/// A request to subscribe, as it comes over the wire.
class Request {
 public:
  Request(std::uint32_t number, const std::string& feed, std::vector<std::uint64_t> held = {}) {
    wire::SubscribeT request;
    request.subscription = number;
    request.feed = feed;
    request.held = std::move(held);
    bytes_ = encode(std::move(request));
    auto message =
        ControlMessage::decode({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()});
    message_.emplace(std::move(*message));
  }
  const wire::Subscribe& table() const { return *message_->as<wire::Subscribe>(); }

 private:
  flatbuffers::DetachedBuffer bytes_;
  std::optional<ControlMessage> message_;
};

inline ClientInfo client(std::uint64_t session) { return {SessionId{session}, 0, "job", 1, false}; }

}  // namespace batchwright::test
