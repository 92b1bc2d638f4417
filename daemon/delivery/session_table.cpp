#include "daemon/delivery/session_table.h"

#include <algorithm>
#include <random>
#include <utility>

namespace batchwright {
namespace {

SessionId new_session_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (std::uint64_t{device()} << 32) | device();
  return SessionId{id};
}

}  // namespace

Session& SessionTable::add(Session session) {
  const SessionId id = new_session_id();
  session.client.session = id;
  by_peer_[session.peer] = id;
  producers_ += session.client.produces ? 1 : 0;
  return all_[id] = std::move(session);
}

std::optional<Session> SessionTable::take(SessionId id) {
  auto taken = all_.extract(id);
  if (taken.empty()) return std::nullopt;
  by_peer_.erase(taken.mapped().peer);
  producers_ -= taken.mapped().client.produces ? 1 : 0;
  deadlines_.erase(id);
  return std::move(taken.mapped());
}

Session* SessionTable::bind(SessionId id) {
  Session* const session = find(id);
  if (session == nullptr || session->bound || session->client.inline_batches) return nullptr;
  session->bound = true;
  deadlines_.erase(id);
  return session;
}

void SessionTable::set_deadline(SessionId id, std::chrono::milliseconds after,
                                std::function<void()> then) {
  auto& timer = deadlines_[id] = std::make_unique<boost::asio::steady_timer>(loop_, after);
  // A time that is over may stand in the loop's queue already, where taking the timer away does not
  // stop it: so it counts only while the timer is still the session's.
  timer->async_wait([this, id, own = timer.get(),
                     then = std::move(then)](const boost::system::error_code& error) {
    const auto found = deadlines_.find(id);
    if (!error && found != deadlines_.end() && found->second.get() == own) then();
  });
}

Session* SessionTable::find(SessionId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

Session* SessionTable::find(const PeerName& peer) {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : find(found->second);
}

Session* SessionTable::find_token(std::uint64_t token) {
  const auto found = std::find_if(all_.begin(), all_.end(), [token](const auto& entry) {
    return token != 0 && entry.second.client.token == token;
  });
  return found == all_.end() ? nullptr : &found->second;
}

}  // namespace batchwright
