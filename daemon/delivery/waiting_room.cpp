#include "daemon/delivery/waiting_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace batchwright {

Result<void> WaitingRoom::let_in(const ClientInfo& client, const wire::Subscribe& request,
                                 Time now) {
  const SubscriptionKey key{client.session, SubscriptionNumber{request.subscription()}};
  if (key.number.value == 0 || guests_.contains(key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken; numbers start at 1", key.number.value)};
  }
  const auto mine = guests_.lower_bound({key.session, {}});
  const auto others = guests_.upper_bound({key.session, {UINT32_MAX}});
  if (std::distance(mine, others) >= std::ptrdiff_t{kMost}) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("a client has at most {} subscriptions that wait for a feed", kMost)};
  }
  Guest guest{client, {}, now};
  request.UnPackTo(&guest.request);
  guests_.emplace(key, std::move(guest));
  return {};
}

void WaitingRoom::release(const SubscriptionKey& key, std::span<const LeaseNumber> leases) {
  const auto found = guests_.find(key);
  if (found == guests_.end()) return;
  wire::SubscribeT& request = found->second.request;
  for (const LeaseNumber lease : leases) {
    if (std::erase(request.held, lease.value) != 0) request.released.push_back(lease.value);
  }
}

void WaitingRoom::note_question(const SubscriptionKey& key) {
  if (const auto guest = guests_.find(key); guest != guests_.end()) guest->second.said_so = true;
}

void WaitingRoom::remove_session(SessionId session) {
  guests_.erase(guests_.lower_bound({session, {}}), guests_.upper_bound({session, {UINT32_MAX}}));
}

const WaitingRoom::Guest* WaitingRoom::find(const SubscriptionKey& key) const {
  const auto found = guests_.find(key);
  return found == guests_.end() ? nullptr : &found->second;
}

template <class Leaves>
std::vector<WaitingRoom::Guest> WaitingRoom::take(Leaves leaves) {
  std::vector<Guest> all;
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (!leaves(guest->second)) {
      ++guest;
      continue;
    }
    all.push_back(std::move(guest->second));
    guest = guests_.erase(guest);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Guest& a, const Guest& b) { return a.since < b.since; });
  return all;
}

std::vector<WaitingRoom::Guest> WaitingRoom::all_for(std::string_view feed) {
  return take([feed](const Guest& guest) { return guest.request.feed == feed; });
}

std::vector<WaitingRoom::Guest> WaitingRoom::overdue(std::string_view feed, Time now,
                                                     std::chrono::milliseconds patience) {
  return take([=](const Guest& guest) {
    return guest.request.feed == feed && now - guest.since >= patience;
  });
}

std::vector<const WaitingRoom::Guest*> WaitingRoom::waiting_for(std::string_view feed) const {
  std::vector<const Guest*> all;
  for (const auto& [key, guest] : guests_) {
    if (guest.request.feed == feed) all.push_back(&guest);
  }
  return all;
}

}  // namespace batchwright
