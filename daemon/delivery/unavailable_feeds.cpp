#include "daemon/delivery/unavailable_feeds.h"

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

using Clock = PendingSubscriptions::Time::clock;

/// The pause between two looks for requests that have waited long enough.
constexpr std::chrono::milliseconds kBetweenLooks{250};

}  // namespace

UnavailableFeeds::UnavailableFeeds(boost::asio::io_context& loop, std::chrono::milliseconds grace,
                                   GiveUp give_up)
    : grace_(grace),
      give_up_(std::move(give_up)),
      rounds_(loop, kBetweenLooks, [this] { return give_up_overdue(); }) {}

void UnavailableFeeds::set(UnavailableFeed feed) {
  const auto there =
      std::find_if(feeds_.begin(), feeds_.end(),
                   [&feed](const UnavailableFeed& each) { return each.name == feed.name; });
  if (there == feeds_.end()) {
    feeds_.push_back(std::move(feed));
    return;
  }
  if (!feed.arena) feed.arena = there->arena;
  *there = std::move(feed);
}

const UnavailableFeed* UnavailableFeeds::find(std::string_view name) const {
  const auto there =
      std::find_if(feeds_.begin(), feeds_.end(),
                   [name](const UnavailableFeed& each) { return each.name == name; });
  return there == feeds_.end() ? nullptr : &*there;
}

std::vector<UnavailableFeeds::Pending> UnavailableFeeds::take_out(std::string_view name) {
  std::erase_if(feeds_, [name](const UnavailableFeed& each) { return each.name == name; });
  return pending_.all_for(name);
}

Result<void> UnavailableFeeds::let_wait(const ClientInfo& client, const wire::Subscribe& request,
                                        const UnavailableFeed& feed) {
  // A daemon that starts is no reason to refuse: soon it is known whether there is one.
  if (!feed.opening && (!is_transient(feed.why.code) || !lets_wait())) return feed.told();
  if (auto in = pending_.let_in(client, request, Clock::now()); !in) return in;
  if (!rounds_.is_running()) rounds_.start();
  return {};
}

const UnavailableFeed* UnavailableFeeds::awaited_by(const SubscriptionKey& key) const {
  const Pending* const pending = pending_.find(key);
  return pending == nullptr ? nullptr : find(pending->request.feed);
}

bool UnavailableFeeds::give_up_overdue() {
  for (const UnavailableFeed& feed : feeds_) {
    const bool is_lost = !feed.opening && !is_transient(feed.why.code);
    // Where nothing waits for feeds, those that are being opened are waited for all the same.
    if (feed.opening && !lets_wait()) continue;
    const auto patience = is_lost ? std::chrono::milliseconds(0) : grace_;
    for (const Pending& pending : pending_.overdue(feed.name, Clock::now(), patience)) {
      give_up_(pending, feed.told());
    }
  }
  return !pending_.empty();
}

}  // namespace batchwright
