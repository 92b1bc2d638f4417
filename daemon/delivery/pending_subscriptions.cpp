#include "daemon/delivery/pending_subscriptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace batchwright {

Result<void> PendingSubscriptions::let_in(const ClientInfo& client, const wire::Subscribe& request,
                                          Time now) {
  const SubscriptionKey key{client.session, SubscriptionNumber{request.subscription()}};
  if (key.number.value == 0 || pending_.contains(key)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("subscription {} is taken; numbers start at 1", key.number.value)};
  }
  const auto mine = pending_.lower_bound({key.session, {}});
  const auto others = pending_.upper_bound({key.session, {UINT32_MAX}});
  if (std::distance(mine, others) >= std::ptrdiff_t{kMost}) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("a client has at most {} subscriptions that wait for a feed", kMost)};
  }
  Pending pending{client, {}, now};
  request.UnPackTo(&pending.request);
  pending_.emplace(key, std::move(pending));
  return {};
}

void PendingSubscriptions::release(const SubscriptionKey& key,
                                   std::span<const LeaseNumber> leases) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  wire::SubscribeT& request = found->second.request;
  for (const LeaseNumber lease : leases) {
    if (std::erase(request.held, lease.value) != 0) request.released.push_back(lease.value);
  }
}

void PendingSubscriptions::note_question(const SubscriptionKey& key) {
  if (const auto pending = pending_.find(key); pending != pending_.end())
    pending->second.said_so = true;
}

void PendingSubscriptions::remove_session(SessionId session) {
  pending_.erase(pending_.lower_bound({session, {}}),
                 pending_.upper_bound({session, {UINT32_MAX}}));
}

const PendingSubscriptions::Pending* PendingSubscriptions::find(const SubscriptionKey& key) const {
  const auto found = pending_.find(key);
  return found == pending_.end() ? nullptr : &found->second;
}

template <class Leaves>
std::vector<PendingSubscriptions::Pending> PendingSubscriptions::take(Leaves leaves) {
  std::vector<Pending> all;
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    if (!leaves(pending->second)) {
      ++pending;
      continue;
    }
    all.push_back(std::move(pending->second));
    pending = pending_.erase(pending);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Pending& a, const Pending& b) { return a.since < b.since; });
  return all;
}

std::vector<PendingSubscriptions::Pending> PendingSubscriptions::all_for(std::string_view feed) {
  return take([feed](const Pending& pending) { return pending.request.feed == feed; });
}

std::vector<PendingSubscriptions::Pending> PendingSubscriptions::overdue(
    std::string_view feed, Time now, std::chrono::milliseconds patience) {
  return take([=](const Pending& pending) {
    return pending.request.feed == feed && now - pending.since >= patience;
  });
}

std::vector<const PendingSubscriptions::Pending*> PendingSubscriptions::waiting_for(
    std::string_view feed) const {
  std::vector<const Pending*> all;
  for (const auto& [key, pending] : pending_) {
    if (pending.request.feed == feed) all.push_back(&pending);
  }
  return all;
}

}  // namespace batchwright
