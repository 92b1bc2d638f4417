#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/delivery/feed/live/joins/joined_rows.h"
#include "formats/formats.h"

// What clients ask of a live feed, as values.

namespace batchwright {

/// Bytes that stay as long as `memory`. Those of an area may change at any time.
struct SharedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> memory;
};

/// `area`: made for this producer, and its number; without bytes it has none.
struct ProduceAsked {
  wire::ProduceT request;
  SharedBytes area;
  ArenaNumber number;
};
/// `frame`: what came behind the message. `join`: where the rows come from that it names, or why
/// there are none; null where it names none.
struct PushAsked {
  wire::PushT push;
  SharedBytes frame;
  Result<std::shared_ptr<const Join>> join = std::shared_ptr<const Join>();
};
/// Of a message; `frame` is valid during the call, and copied.
inline PushAsked to_push_asked(const wire::Push& push, std::span<const std::byte> frame) {
  PushAsked asked;
  push.UnPackTo(&asked.push);
  if (push.framed()) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(frame.begin(), frame.end());
    asked.frame = {*kept, kept};
  }
  return asked;
}

using LiveRequest = std::variant<ProduceAsked, PushAsked, wire::ClaimT, wire::AbandonT,
                                 wire::CloseProducerT, wire::ListOutcomesT, wire::AdvanceT,
                                 wire::AwaitVersionT, wire::EndFeedT, wire::KeepFromT>;

}  // namespace batchwright
