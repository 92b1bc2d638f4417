// What is said to the daemon and by it, and what becomes of that.

#include <fmt/core.h>

#include "client/library/reach.h"
#include "client/library/session/session.h"

namespace batchwright {
namespace {

/// A daemon that starts makes its socket first, and opens it to its users after that.
constexpr std::chrono::milliseconds kOpensItsSocket{50};

}  // namespace

Result<void> Session::greet() {
  const std::lock_guard lock(link_mutex_);
  const auto limit = contact_.settings().limit;
  const Deadline deadline(limit);
  const auto is_up = [this] { return contact_.is_up(); };
  if (!pump_until(is_up, Deadline(std::min(limit, kOpensItsSocket)))) {
    if (const auto error = barred(contact_.endpoint())) return *error;
  }
  if (!pump_until(is_up, deadline)) return contact_.no_welcome();
  if (failure_) return *failure_;
  return {};
}

bool Session::pump_until(const std::function<bool()>& done, const Deadline& deadline) {
  while (true) {
    pump(deadline);
    if (done() || failure_) return true;
    if (deadline.passed()) return false;
    if (auto waited = contact_.wait(deadline); !waited) fail(waited.error());
  }
}

/// Takes in all that has come, does what is due, and sends what is to be sent.
void Session::pump(const Deadline& deadline) {
  if (failure_) return;
  if (book_.all_closed()) {
    tell_news();
    return fail({ErrorCode::disconnected, "bw_close ended the connection"});
  }
  if (auto tended = contact_.tend(); !tended) return fail(tended.error());
  if (!contact_.is_linked()) return;
  const bool cut = contact_.was_cut();  // asked first: what came before the end is still there
  receive();
  if (failure_ || !contact_.is_linked()) return;
  if (contact_.is_silent()) return lose("has been silent for 10 s");
  if (contact_.is_welcomed() && !contact_.is_up()) arrive(deadline);
  if (failure_ || !contact_.is_linked()) return;
  if (cut || contact_.lost_arenas()) return lose("closed the connection");
  tell_news();
}

void Session::receive() {
  while (!failure_ && contact_.is_linked()) {
    const auto incoming = contact_.receive();
    if (!incoming) return fail(incoming.error());
    if (!incoming->has_value()) return;
    dispatch((*incoming)->control, (*incoming)->batch);
  }
}

void Session::dispatch(const ControlMessage& message, const Payload& batch) {
  Result<void> taken;
  if (const auto* delivery = message.as<wire::Delivery>()) {
    taken = lanes_.deliver(*delivery, batch, contact_.is_inline());
  } else if (const auto* refusal = message.as<wire::Refused>()) {
    refused(*refusal);
  } else if (const auto* welcome = message.as<wire::Welcome>()) {
    taken = contact_.welcome(*welcome);
  } else if (message.as<wire::Bye>() != nullptr) {
    lose("said goodbye");
  } else if (message.as<wire::Alive>() == nullptr) {
    taken = lanes_.take_in(message);
  }
  if (!taken) fail(taken.error());
}

void Session::refused(const wire::Refused& refusal) {
  // 0 would be no error.
  const auto code = static_cast<ErrorCode>(refusal.code());
  const Error error{refusal.code() != 0 ? code : ErrorCode::malformed_message,
                    refusal.message()->str()};
  if (refusal.subscription() != 0) {
    if (Lane* lane = lanes_.find({refusal.subscription()})) refused(*lane, error);
  } else if (code == ErrorCode::disconnected) {
    lose(fmt::format("knows nothing of this session: {}", error.message));
  } else {
    fail(error);
  }
}

/// A feed that was replaced knows nothing of its subscriptions: it is asked to go on where the
/// program is, and refuses that itself when its plan is another.
void Session::refused(Lane& lane, const Error& error) {
  const bool replaced = error.code == ErrorCode::disconnected;
  if (!replaced || !contact_.search().has_patience()) return lane.refuse(error);
  lane.lost();
  if (contact_.is_up() && lanes_.goes_on(lane)) request(lanes_.request_for(lane));
}

/// Welcome has come: binds the arenas' connection, and asks for all that the program wants.
void Session::arrive(const Deadline& deadline) {
  if (auto opened = contact_.open_arenas(deadline); !opened) return arena_trouble(opened.error());
  contact_.come_up();
  book_.let_return(contact_.has(Ability::returns));
  for (wire::SubscribeT& wanted : lanes_.requests()) request(std::move(wanted));
}

/// A program that waited when the daemon was lost waits for this one.
void Session::request(wire::SubscribeT wanted) {
  Lane* const lane = lanes_.find({wanted.subscription});
  send(encode(std::move(wanted)));
  if (lane != nullptr && lane->waits().again(Deadline::Clock::now())) say_waiting(*lane);
}

void Session::arena_trouble(const Error& error) {
  switch (contact_.meaning_of(error)) {
    case Contact::Trouble::daemon_gone: return lose(error.message);
    case Contact::Trouble::fatal: return fail(error);
    case Contact::Trouble::no_memory: break;
  }
  if (contact_.go_inline(error.message, book_.holds_any())) lanes_.lost();
}

/// The daemon is gone: from now on it is looked for, unless the program does not want that.
void Session::lose(const std::string& how) {
  if (failure_) return;
  const Search& search = contact_.search();
  if (search.has_met() && (!search.has_patience() || book_.all_closed())) {
    return fail(contact_.gone(how));
  }
  if (contact_.lose(how)) lanes_.lost();
}

/// The first reason is the one that counts. Towards the daemon the conversation ends when the
/// last batch is released.
void Session::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  lanes_.fail(error);
}

/// Called by a thread that has just unlocked the link, so that news which came meanwhile are sent.
void Session::tell_news_if_free() {
  while (book_.has_news()) {
    const std::unique_lock lock(link_mutex_, std::try_to_lock);
    if (!lock || !tell_news()) return;
  }
}

/// False when there is no daemon to send to; the book keeps the news until there is one.
bool Session::tell_news() {
  const bool up = contact_.is_up();
  if (!up && !book_.all_closed()) return false;
  const LeaseBook::News news = book_.take_news();
  const auto tell = [&](const LeaseBook::Leases& told, bool keeps, bool undone) {
    for (const auto& [subscription, leases] : told) {
      if (!up) return;
      wire::ReleaseT release;
      release.subscription = subscription.value;
      release.leases = to_wire(leases);
      release.keeps = keeps;
      release.undone = undone;
      if (Lane* const lane = lanes_.find(subscription)) {
        release.waited_us = static_cast<std::uint32_t>(lane->waits().take_untold().count());
      }
      send(encode(std::move(release)));
    }
  };
  tell(news.done, true, false);
  tell(news.releases, false, false);
  tell(news.returns, false, true);
  tell(news.rests, true, true);
  for (const SubscriptionNumber subscription : news.ended) {
    wire::UnsubscribeT unsubscribe;
    unsubscribe.subscription = subscription.value;
    send(encode(std::move(unsubscribe)));
  }
  if (news.goodbye) contact_.say_goodbye();
  return true;
}

void Session::send(const flatbuffers::DetachedBuffer& message) {
  if (auto sent = contact_.send(message); !sent) fail(sent.error());
}

}  // namespace batchwright
