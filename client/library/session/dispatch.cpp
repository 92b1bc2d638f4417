// What is said to the daemon and by it, and what becomes of that.

#include <fmt/core.h>

#include <algorithm>

#include "client/library/reach.h"
#include "client/library/session/session.h"

namespace batchwright {

/// The messages that a daemon sends. Which of them are sound is checked when they are decoded
/// (formats/control.cpp).
constexpr Session::Handler Session::kHandlers[] = {
    {wire::Body::Delivery, &Session::on_delivery},
    {wire::Body::EpochEnd, &Session::on_news<wire::EpochEnd>},
    {wire::Body::EpochBegin, &Session::on_news<wire::EpochBegin>},
    {wire::Body::Waiting, &Session::on_news<wire::Waiting>},
    {wire::Body::Subscribed, &Session::on_news<wire::Subscribed>},
    {wire::Body::Refused, &Session::on_refused},
    {wire::Body::Welcome, &Session::on_welcome},
    {wire::Body::Bye, &Session::on_bye},
    {wire::Body::Upcoming, &Session::on_news<wire::Upcoming>},
    {wire::Body::Version, &Session::on_version},
    {wire::Body::Alive, nullptr},  // that it came is noted by the link
};

bool Session::handles(wire::Body kind) {
  return std::any_of(std::begin(kHandlers), std::end(kHandlers),
                     [kind](const Handler& handler) { return handler.kind == kind; });
}

void Session::dispatch(const DaemonSocket::Incoming& incoming) {
  const wire::Body kind = incoming.control.kind();
  const auto* handler = std::find_if(std::begin(kHandlers), std::end(kHandlers),
                                     [kind](const Handler& each) { return each.kind == kind; });
  if (handler == std::end(kHandlers)) {
    return fail({ErrorCode::malformed_message,
                 fmt::format("a message that no daemon sends: {}", wire::EnumNameBody(kind))});
  }
  if (handler->handle == nullptr) return;
  if (auto taken = (this->*handler->handle)(incoming); !taken) fail(taken.error());
}

Result<void> Session::on_welcome(const DaemonSocket::Incoming& incoming) {
  return link_.welcome(*incoming.control.as<wire::Welcome>());
}

Result<void> Session::on_delivery(const DaemonSocket::Incoming& incoming) {
  const auto& delivery = *incoming.control.as<wire::Delivery>();
  ClientSubscription* const subscription = find(delivery.subscription());
  if (subscription == nullptr) return {};
  return subscription->on(delivery, incoming.batch, link_.is_inline(), link_.now());
}

/// News of one subscription. Those of one that is closed are dropped: the daemon takes its batches
/// back when it hears of the end.
template <class Table>
Result<void> Session::on_news(const DaemonSocket::Incoming& incoming) {
  const auto& news = *incoming.control.as<Table>();
  ClientSubscription* const subscription = find(news.subscription());
  if (subscription == nullptr) return {};
  return subscription->on(news, link_.now());
}

Result<void> Session::on_refused(const DaemonSocket::Incoming& incoming) {
  const auto& refusal = *incoming.control.as<wire::Refused>();
  // 0 would be no error.
  const auto code =
      refusal.code() != 0 ? static_cast<ErrorCode>(refusal.code()) : ErrorCode::malformed_message;
  const Error error{code, refusal.message()->str()};
  if (refusal.subscription() != 0) {
    if (ClientSubscription* const subscription = find(refusal.subscription())) {
      refused(*subscription, error);
    }
  } else if (code == ErrorCode::disconnected) {
    lose(fmt::format("does not know this session: {}", error.message));
  } else {
    return error;
  }
  return {};
}

/// No call waits for an answer that came too late.
Result<void> Session::on_version(const DaemonSocket::Incoming& incoming) {
  const auto& version = *incoming.control.as<wire::Version>();
  if (version.question() == version_question_) version.UnPackTo(&version_answer_.emplace());
  return {};
}

Result<void> Session::on_bye(const DaemonSocket::Incoming& /*incoming*/) {
  lose("shut down");
  return {};
}

/// Null when there is none, or no longer.
ClientSubscription* Session::find(std::uint32_t number) const {
  const auto found = subscriptions_.find({number});
  const bool is_open = found != subscriptions_.end() && !found->second->leases().is_closed();
  return is_open ? found->second.get() : nullptr;
}

/// A feed that was replaced knows nothing of its subscriptions: it is asked to go on where the
/// program is, and refuses that itself when its plan is another.
void Session::refused(ClientSubscription& subscription, const Error& error) {
  const bool replaced = error.code == ErrorCode::disconnected;
  if (!replaced || !link_.reconnects_at_all()) return subscription.refuse(error);
  subscription.lost();
  if (link_.is_up() && subscription.wants_more()) request(subscription);
}

Result<void> Session::greet() {
  const MutexLock lock(link_mutex_);
  const auto limit = link_.settings().limit;
  const Deadline deadline = after(limit);
  const auto is_up = [this] { return link_.is_up(); };
  if (!pump_until(is_up, after(std::min(limit, DaemonLink::kOpensItsSocket)))) {
    if (const auto error = diagnose_endpoint(link_.endpoint())) return *error;
  }
  if (!pump_until(is_up, deadline)) return link_.no_welcome();
  if (failure_) return *failure_;
  return {};
}

bool Session::pump_until(const std::function<bool()>& done, const Deadline& deadline) {
  while (true) {
    pump(deadline);
    if (done() || failure_) return true;
    if (deadline.passed(link_.now())) return false;
    if (auto waited = link_.wait(deadline); !waited) fail(waited.error());
  }
}

/// Takes in all that has come, does what is due, and sends what is to be sent.
void Session::pump(const Deadline& deadline) {
  if (failure_) return;
  if (closed_) {
    static_cast<void>(send_outboxes());
    return fail({ErrorCode::disconnected, "bw_close ended the connection"});
  }
  if (auto tended = link_.tend(); !tended) return fail(tended.error());
  while (!failure_ && link_.is_linked()) {
    const auto incoming = link_.receive();
    if (!incoming) return fail(incoming.error());
    if (!incoming->has_value()) break;
    dispatch(**incoming);
  }
  if (!failure_ && link_.is_welcomed() && !link_.is_up()) arrive(deadline);
  if (failure_ || !link_.is_linked()) return;
  if (const char* how = link_.loss()) return lose(how);
  static_cast<void>(send_outboxes());
}

/// Welcome has come: binds the arenas' connection, and asks for all that the program wants.
void Session::arrive(const Deadline& deadline) {
  if (auto up = link_.come_up(deadline); !up) return arena_trouble(up.error());
  for (const auto& [number, subscription] : subscriptions_) {
    if (subscription->wants_more()) request(*subscription);
  }
}

/// A program that waits, or did when the daemon was lost, waits for this one.
void Session::request(ClientSubscription& subscription) {
  subscription.leases().begin_session(link_.has(Ability::returns));
  send(encode(subscription.request()));
  if (subscription.waits().again(link_.now())) say_waiting(subscription);
}

void Session::arena_trouble(const Error& error) {
  switch (link_.meaning_of(error)) {
    case DaemonLink::Trouble::daemon_gone: return lose(error.message);
    case DaemonLink::Trouble::fatal: return fail(error);
    case DaemonLink::Trouble::no_memory: break;
  }
  if (link_.go_inline(error.message, state_of_connection().holds_any)) lost();
}

/// The daemon is gone: from now on it is looked for, unless the program does not want that.
void Session::lose(const std::string& how) {
  if (failure_) return;
  if (link_.has_met() && (!link_.reconnects_at_all() || closed_)) return fail(link_.gone(how));
  if (link_.lose(how)) lost();
}

/// The session with a daemon is over.
void Session::lost() {
  for (const auto& [number, subscription] : subscriptions_) subscription->lost();
}

/// The first reason is the one that counts. Towards the daemon the conversation ends when the
/// last batch is released.
void Session::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  closed_ = true;
  for (const auto& [number, subscription] : subscriptions_) subscription->fail(error);
}

Leases::Connection Session::state_of_connection() const {
  const bool holds_any =
      std::any_of(subscriptions_.begin(), subscriptions_.end(),
                  [](const auto& entry) { return entry.second->leases().held() != 0; });
  return {closed_, holds_any};
}

/// Called by a thread that has just unlocked the link, or changed leases without it.
void Session::send_outboxes_if_free() {
  while (untold_) {
    if (!link_mutex_.try_lock()) return link_.wake();  // its holder sends them
    const MutexLock lock(link_mutex_, std::adopt_lock);
    if (!send_outboxes()) return;
  }
}

/// Tells the daemon what is new of all leases. False when there is no daemon to tell; then it stays
/// until there is one.
bool Session::send_outboxes() {
  if (!link_.is_up() && !closed_) return false;
  untold_ = false;
  const Leases::Connection connection = state_of_connection();
  for (auto entry = subscriptions_.begin(); entry != subscriptions_.end();) {
    const auto& [number, subscription] = *entry;
    const Leases::Outbox outbox = subscription->leases().take_outbox(connection);
    if (link_.is_up()) send_outbox(*subscription, outbox);
    entry = subscription->leases().is_ended() ? subscriptions_.erase(entry) : std::next(entry);
  }
  const bool is_over = connection.closed && !connection.holds_any;
  if (is_over && !std::exchange(said_goodbye_, true)) link_.say_goodbye();
  return true;
}

void Session::send_outbox(ClientSubscription& subscription, const Leases::Outbox& outbox) {
  const auto tell = [&](const std::vector<LeaseNumber>& leases, bool keeps,
                        bool undone) REQUIRES(link_mutex_) {
    wire::ReleaseT release;
    release.subscription = subscription.number().value;
    release.leases = to_wire(leases);
    release.keeps = keeps;
    release.undone = undone;
    release.waited_us = static_cast<std::uint32_t>(subscription.waits().take_untold().count());
    send(encode(std::move(release)));
  };
  if (!outbox.done.empty()) tell(outbox.done, true, false);
  if (!outbox.releases.empty()) tell(outbox.releases, false, false);
  if (!outbox.returns.empty()) tell(outbox.returns, false, true);
  if (outbox.rest) tell(*outbox.rest, true, true);
  if (!outbox.ended) return;
  wire::UnsubscribeT unsubscribe;
  unsubscribe.subscription = subscription.number().value;
  send(encode(std::move(unsubscribe)));
}

void Session::send(const flatbuffers::DetachedBuffer& message) {
  if (auto sent = link_.send(message); !sent) fail(sent.error());
}

}  // namespace batchwright
