// Feeds that cannot be served just now, and the clients that wait for them.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/delivery/server.h"

namespace batchwright {
namespace {

using Clock = WaitingRoom::Time::clock;

/// The pause between two looks for requests that have waited long enough.
constexpr std::chrono::milliseconds kBetweenLooks{250};

bool has_name(const AbsentFeed& feed, std::string_view name) { return feed.name == name; }

}  // namespace

void Server::set_absent(AbsentFeed feed) {
  const auto there = std::find_if(absent_.begin(), absent_.end(), [&feed](const AbsentFeed& each) {
    return has_name(each, feed.name);
  });
  if (there == absent_.end()) {
    absent_.push_back(std::move(feed));
    return;
  }
  if (!feed.arena) feed.arena = there->arena;
  *there = std::move(feed);
}

const AbsentFeed* Server::find_absent(std::string_view name) const {
  const auto there = std::find_if(absent_.begin(), absent_.end(),
                                  [name](const AbsentFeed& each) { return has_name(each, name); });
  return there == absent_.end() ? nullptr : &*there;
}

/// Its arena is given back before another one is made in its place.
void Server::put_away_failed() {
  for (auto place = feeds_.begin(); place != feeds_.end();) {
    const auto& failure = (*place)->failure();
    if (!failure || !is_passing(failure->code)) {
      ++place;
      continue;
    }
    auto feed = std::move(*place);
    place = feeds_.erase(place);
    const Error told = *failure;
    Error why = told;
    const std::string named = "feed " + feed->name() + " failed: ";
    if (why.message.starts_with(named)) why.message.erase(0, named.size());
    set_absent({feed->name(), feed->dataset().shards(), why, feed->arena_number()});
    const bool waits = settings_.feed_grace.count() != 0;
    // Clients treat `disconnected` as a pause: they ask again, and then wait.
    retire(std::move(feed), waits ? Error{ErrorCode::disconnected, told.message} : told);
  }
}

bool Server::put_away_soon() {
  if (settings_.feed_grace.count() == 0) return false;
  boost::asio::post(loop_, [this] { put_away_failed(); });
  return true;
}

Result<void> Server::await_feed(const Session& session, const wire::Subscribe& request,
                                const AbsentFeed& feed) {
  if (!is_passing(feed.why.code) || settings_.feed_grace.count() == 0) return feed.told();
  if (auto in = waiting_room_.let_in(session.client, request, Clock::now()); !in) return in;
  log_.note<Event::subscription_waits>(feed.name, session.id().value, feed.why.message);
  tell_reason(session.id(), request.subscription(), feed.told());
  if (!std::exchange(looking_at_waiting_, true)) look_at_waiting();
  return {};
}

void Server::ask_of_absent(const SubscriptionKey& key, bool quiet) {
  const auto* guest = waiting_room_.find(key);
  const AbsentFeed* feed = guest == nullptr ? nullptr : find_absent(guest->request.feed);
  waiting_room_.note_question(key);
  if (feed != nullptr && !quiet) tell_reason(key.session, key.number, feed->told());
}

void Server::tell_reason(SessionId session, std::uint32_t subscription, const Error& why) {
  wire::WaitingT answer;
  answer.subscription = subscription;
  answer.reason = why.message;
  send_to_session(session, encode(std::move(answer)));
}

void Server::look_at_waiting() {
  waiting_timer_.expires_after(kBetweenLooks);
  waiting_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& guest : waiting_room_.overdue(Clock::now(), settings_.feed_grace)) {
      const AbsentFeed* feed = find_absent(guest.request.feed);
      if (feed != nullptr) refuse_guest(guest, feed->told());
    }
    looking_at_waiting_ = !waiting_room_.empty();
    if (looking_at_waiting_) look_at_waiting();
  });
}

void Server::refuse_guest(const WaitingRoom::Guest& guest, const Error& why) {
  const auto session = sessions_.find(guest.client.session);
  if (session == sessions_.end()) return;
  log_.note<Event::subscription_refused>(guest.client.session.value, why.message);
  refuse(session->second.peer, why, guest.request.subscription);
}

/// A feed that is there now.
void Server::serve_guests(Feed& feed) {
  for (auto& guest : waiting_room_.all_for(feed.name())) {
    const auto bytes = encode(wire::SubscribeT(std::move(guest.request)));
    const auto message =
        ControlMessage::decode({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
    const auto* request = message ? message->as<wire::Subscribe>() : nullptr;
    if (request == nullptr) continue;  // it was one when it came
    if (auto done = feed.subscribe(guest.client, *request); !done) {
      guest.request.subscription = request->subscription();
      refuse_guest(guest, done.error());
    } else if (guest.said_so) {
      feed.waits({guest.client.session, request->subscription()}, 0);
    }
  }
}

void Server::refuse_guests(std::string_view feed, const Error& why) {
  for (const auto& guest : waiting_room_.all_for(feed)) refuse_guest(guest, why);
}

}  // namespace batchwright
