#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "formats/formats.h"

namespace batchwright::test {

/// A control message, as it is when it has come.
template <class TableT>
ControlMessage received(TableT body) {
  const auto bytes = encode(std::move(body));
  return ControlMessage::decode(std::as_bytes(std::span(bytes.data(), bytes.size()))).value();
}

/// The daemon's answer to Subscribe: from this place on, of a plan of 3 steps an epoch.
inline ControlMessage subscribed(std::uint64_t epoch, std::uint64_t step, std::uint32_t world = 1,
                                 std::uint32_t per_step = 1, Fingerprint plan = {1, 2, 3}) {
  wire::SubscribedT answer;
  answer.subscription = 1;
  answer.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(plan));
  answer.epoch = epoch;
  answer.step = step;
  answer.steps = 3;
  answer.batches_per_step = per_step;
  answer.world = world;
  answer.window = 4;
  return received(std::move(answer));
}

inline wire::SubscribeT request_for(wire::Mode mode = wire::Mode::replica) {
  wire::SubscribeT request;
  request.subscription = 1;
  request.feed = "train";
  request.mode = mode;
  return request;
}

}  // namespace batchwright::test
