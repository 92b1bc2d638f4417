#include "client/library/session/lanes.h"

#include <fmt/core.h>

#include <utility>

namespace batchwright {

std::shared_ptr<Lane> Lanes::open(wire::SubscribeT request, bool writable) {
  std::erase_if(lanes_, [this](const auto& entry) { return book_.closed(entry.first); });
  request.subscription = ++last_number_.value;
  auto lane = std::make_shared<Lane>(std::move(request), writable);
  lanes_.emplace(lane->number(), lane);
  book_.open(lane->number(), lane->is_queue());
  return lane;
}

Lane* Lanes::find(SubscriptionNumber number) {
  const auto found = lanes_.find(number);
  return found == lanes_.end() || book_.closed(number) ? nullptr : found->second.get();
}

Result<void> Lanes::take_in(const ControlMessage& message) {
  if (const auto* ended = message.as<wire::EpochEnd>()) {
    if (Lane* lane = find({ended->subscription()})) {
      lane->push(EpochEnded{ended->epoch(), ended->steps(), ended->last()});
    }
  } else if (const auto* began = message.as<wire::EpochBegin>()) {
    if (began->fingerprint() == nullptr) {
      return Error{ErrorCode::malformed_message, "an EpochBegin without a fingerprint"};
    }
    if (Lane* lane = find({began->subscription()})) {
      lane->push(EpochBegan{began->epoch(), began->steps(), from_wire(*began->fingerprint())});
    }
  } else if (const auto* waiting = message.as<wire::Waiting>()) {
    if (Lane* lane = find({waiting->subscription()})) lane->set_reason(waiting->reason()->str());
  } else if (const auto* answer = message.as<wire::Subscribed>()) {
    return granted(*answer);
  } else {
    return Error{ErrorCode::malformed_message, fmt::format("a message that no daemon sends: {}",
                                                           wire::EnumNameBody(message.kind()))};
  }
  return {};
}

Result<void> Lanes::granted(const wire::Subscribed& answer) {
  Lane* lane = find({answer.subscription()});
  if (lane == nullptr) return {};
  auto granted = lane->granted(answer);
  if (granted) {
    book_.noted(lane->number());
  } else if (granted.error().code == ErrorCode::malformed_message) {
    return granted;
  } else {
    end(*lane, granted.error());
  }
  return {};
}

Result<void> Lanes::deliver(const wire::Delivery& delivery, const Payload& batch,
                            bool comes_along) {
  Lane* lane = find({delivery.subscription()});
  if (lane == nullptr || lane->failure()) return {};
  if (!lane->is_served()) {
    return Error{ErrorCode::malformed_message, "a batch came before its Subscribed"};
  }
  const bool whole = comes_along ? batch && batch.bytes.size() == delivery.size() : !batch;
  if (!whole) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("a batch of {} bytes came with {} bytes as second frame",
                             delivery.size(), batch.bytes.size())};
  }
  Ticket ticket{LeaseNumber{delivery.lease()},
                ArenaNumber{delivery.arena()},
                delivery.offset(),
                delivery.size(),
                delivery.epoch(),
                delivery.step(),
                delivery.index(),
                delivery.rehearsal(),
                delivery.may_join(),
                delivery.attempt()};
  ticket.payload = batch;
  lane->push(std::move(ticket));
  return {};
}

wire::SubscribeT Lanes::request_for(Lane& lane) {
  wire::SubscribeT request = lane.resume();
  if (lane.is_queue()) {
    const LeaseBook::Claims claims = book_.claims(lane.number());
    request.held = to_wire(claims.held);
    request.released = to_wire(claims.released);
  }
  return request;
}

std::vector<wire::SubscribeT> Lanes::requests() {
  std::vector<wire::SubscribeT> requests;
  for (const auto& [number, lane] : lanes_) {
    if (goes_on(*lane)) requests.push_back(request_for(*lane));
  }
  return requests;
}

bool Lanes::goes_on(const Lane& lane) const {
  return !book_.closed(lane.number()) && lane.wants_more();
}

void Lanes::lost() {
  book_.end_session();
  for (const auto& [number, lane] : lanes_) lane->lost();
}

void Lanes::fail(const Error& error) {
  for (const auto& [number, lane] : lanes_) lane->fail(error);
  book_.close_all();
}

Error Lanes::end(Lane& lane, const Error& error) {
  const std::string feed = fmt::format("feed \"{}\": ", lane.feed());
  const bool named = error.message.starts_with(feed);
  Error told{error.code, named ? error.message : feed + error.message};
  lane.fail(told);
  book_.close(lane.number());
  return told;
}

}  // namespace batchwright
