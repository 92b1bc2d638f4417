// What the daemon says, and what becomes of it: the receiving half of Session.

#include <poll.h>
#include <unistd.h>

#include <climits>

#include "client/library/session/session.h"

namespace batchwright {

bool Session::pump_until(const std::function<bool()>& done, const Deadline& deadline) {
  while (true) {
    pump(deadline);
    if (done() || failure_) return true;
    if (deadline.passed()) return false;
    wait(deadline);
  }
}

/// Takes in all that has come, does what is due, and sends what is to be sent.
void Session::pump(const Deadline& deadline) {
  if (failure_) return;
  if (book_.all_closed()) {
    tell_news();
    return fail({ErrorCode::disconnected, "bw_close ended the connection"});
  }
  tend();
  if (failure_ || !link_) return;
  const bool cut = link_->dealer->cut();  // asked first: what came before the end is still there
  receive();
  if (failure_ || !link_) return;
  if (link_->welcomed && !link_->up) arrive(deadline);
  if (failure_ || !link_) return;
  if (cut || (link_->arenas && !link_->arenas->alive())) return lose("closed the connection");
  tell_news();
}

void Session::receive() {
  while (!failure_ && link_) {
    const auto incoming = link_->dealer->receive();
    if (!incoming) return fail(incoming.error());
    if (!incoming->has_value()) return;
    link_->heard = Clock::now();
    dispatch((*incoming)->control, (*incoming)->batch);
  }
}

void Session::wait(const Deadline& deadline) {
  const auto limit = std::min(deadline.remaining(), until_next_chore());
  if (link_) {
    const int daemon = link_->arenas ? link_->arenas->descriptor() : alarm_.get();
    const auto waited = link_->dealer->wait({alarm_.get(), daemon}, limit);
    if (!waited) fail(waited.error());
  } else {
    pollfd alarm{alarm_.get(), POLLIN, 0};
    static_cast<void>(
        poll(&alarm, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), INT_MAX))));
  }
  std::uint64_t calls = 0;
  static_cast<void>(!read(alarm_.get(), &calls, sizeof calls));  // it does not block
}

void Session::dispatch(const ControlMessage& message, const Payload& batch) {
  if (const auto* delivery = message.as<wire::Delivery>()) {
    deliver(*delivery, batch);
  } else if (const auto* refusal = message.as<wire::Refused>()) {
    refused(*refusal);
  } else if (const auto* welcome = message.as<wire::Welcome>()) {
    if (auto done = welcomed(*welcome); !done) fail(done.error());
  } else if (message.as<wire::Bye>() != nullptr) {
    lose("said goodbye");
  } else if (message.as<wire::Alive>() == nullptr) {
    on_subscription(message);
  }
}

/// Handles news of one subscription. A subscription that was closed meanwhile is not found, and its
/// news are dropped.
void Session::on_subscription(const ControlMessage& message) {
  if (const auto* ended = message.as<wire::EpochEnd>()) {
    if (Lane* lane = find(ended->subscription())) {
      lane->push(EpochEnded{ended->epoch(), ended->steps(), ended->last()});
    }
  } else if (const auto* began = message.as<wire::EpochBegin>()) {
    if (began->fingerprint() == nullptr) {
      return fail({ErrorCode::malformed_message, "an EpochBegin without a fingerprint"});
    }
    if (Lane* lane = find(began->subscription())) {
      lane->push(EpochBegan{began->epoch(), began->steps(), from_wire(*began->fingerprint())});
    }
  } else if (const auto* waiting = message.as<wire::Waiting>()) {
    if (Lane* lane = find(waiting->subscription())) lane->set_reason(waiting->reason()->str());
  } else if (const auto* answer = message.as<wire::Subscribed>()) {
    subscribed(*answer);
  } else {
    fail({ErrorCode::malformed_message,
          std::string("a message that no daemon sends: ") + wire::EnumNameBody(message.kind())});
  }
}

Result<void> Session::welcomed(const wire::Welcome& welcome) {
  if (link_->welcomed) return Error{ErrorCode::malformed_message, "a second Welcome"};
  if (welcome.protocol() != kProtocolVersion) {
    return Error{ErrorCode::unsupported_version,
                 "the daemon speaks protocol " + std::to_string(welcome.protocol()) +
                     ", this client " + std::to_string(kProtocolVersion)};
  }
  link_->welcomed = true;
  link_->session = SessionId{welcome.session()};
  link_->shares_memory = welcome.arena_socket() != nullptr;
  if (feeds_) return {};  // the program has those of the first one
  auto feeds = Feeds::from(welcome);
  if (!feeds) return feeds.error();
  feeds_ = std::move(*feeds);
  return {};
}

void Session::subscribed(const wire::Subscribed& answer) {
  Lane* lane = find(answer.subscription());
  if (lane == nullptr) return;
  if (auto granted = lane->granted(answer); granted) {
    book_.noted(lane->number());
  } else if (granted.error().code == ErrorCode::malformed_message) {
    fail(granted.error());
  } else {
    end(*lane, granted.error());
  }
}

/// The batches of a subscription that was closed meanwhile are taken back when the daemon hears
/// of it.
void Session::deliver(const wire::Delivery& delivery, const Payload& batch) {
  Lane* lane = find(delivery.subscription());
  if (lane == nullptr || lane->failure()) return;
  if (!lane->is_served()) {
    return fail({ErrorCode::malformed_message, "a batch came before its Subscribed"});
  }
  const bool whole = is_inline() ? batch && batch.bytes.size() == delivery.size() : !batch;
  if (!whole) {
    return fail({ErrorCode::malformed_message,
                 "a batch of " + std::to_string(delivery.size()) + " bytes came with " +
                     std::to_string(batch.bytes.size()) + " bytes as second frame"});
  }
  Ticket ticket{delivery.lease(), delivery.arena(), delivery.offset(), delivery.size(),
                delivery.epoch(), delivery.step(),  delivery.index(),  delivery.rehearsal()};
  ticket.payload = batch;
  lane->push(std::move(ticket));
}

void Session::refused(const wire::Refused& refusal) {
  // 0 would be no error.
  const auto code = static_cast<ErrorCode>(refusal.code());
  const Error error{refusal.code() != 0 ? code : ErrorCode::malformed_message,
                    refusal.message()->str()};
  if (refusal.subscription() != 0) {
    if (Lane* lane = find(refusal.subscription())) refused(*lane, error);
  } else if (code == ErrorCode::disconnected) {
    lose("knows nothing of this session: " + error.message);
  } else {
    fail(error);
  }
}

/// A feed that was replaced knows nothing of its subscriptions: it is asked to go on where the
/// program is, and refuses that itself when its plan is another.
void Session::refused(Lane& lane, const Error& error) {
  const bool replaced = error.code == ErrorCode::disconnected;
  if (!replaced || settings_.reconnect.count() == 0) return lane.refuse(error);
  lane.lost();
  if (link_->up && !book_.closed(lane.number()) && lane.wants_more()) ask_for(lane);
}

Lane* Session::find(std::uint32_t subscription) {
  const auto found = lanes_.find(subscription);
  return found == lanes_.end() || book_.closed(subscription) ? nullptr : found->second.get();
}

}  // namespace batchwright
