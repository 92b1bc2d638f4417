#include "daemon/delivery/absent_feeds.h"

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

using Clock = WaitingRoom::Time::clock;

/// The pause between two looks for requests that have waited long enough.
constexpr std::chrono::milliseconds kBetweenLooks{250};

}  // namespace

AbsentFeeds::AbsentFeeds(boost::asio::io_context& loop, std::chrono::milliseconds grace,
                         GiveUp give_up)
    : grace_(grace),
      give_up_(std::move(give_up)),
      rounds_(loop, kBetweenLooks, [this] { return give_up_overdue(); }) {}

void AbsentFeeds::set(AbsentFeed feed) {
  const auto there = std::find_if(feeds_.begin(), feeds_.end(), [&feed](const AbsentFeed& each) {
    return each.name == feed.name;
  });
  if (there == feeds_.end()) {
    feeds_.push_back(std::move(feed));
    return;
  }
  if (!feed.arena) feed.arena = there->arena;
  *there = std::move(feed);
}

const AbsentFeed* AbsentFeeds::find(std::string_view name) const {
  const auto there = std::find_if(feeds_.begin(), feeds_.end(),
                                  [name](const AbsentFeed& each) { return each.name == name; });
  return there == feeds_.end() ? nullptr : &*there;
}

std::vector<AbsentFeeds::Guest> AbsentFeeds::take_out(std::string_view name) {
  std::erase_if(feeds_, [name](const AbsentFeed& each) { return each.name == name; });
  return guests_.all_for(name);
}

Result<void> AbsentFeeds::let_wait(const ClientInfo& client, const wire::Subscribe& request,
                                   const AbsentFeed& feed) {
  // A daemon that starts is no reason to refuse: soon it is known whether there is one.
  if (!feed.opening && (!is_passing(feed.why.code) || !lets_wait())) return feed.told();
  if (auto in = guests_.let_in(client, request, Clock::now()); !in) return in;
  if (!rounds_.is_running()) rounds_.start();
  return {};
}

const AbsentFeed* AbsentFeeds::awaited_by(const SubscriptionKey& key) const {
  const Guest* const guest = guests_.find(key);
  return guest == nullptr ? nullptr : find(guest->request.feed);
}

bool AbsentFeeds::give_up_overdue() {
  for (const AbsentFeed& feed : feeds_) {
    const bool is_lost = !feed.opening && !is_passing(feed.why.code);
    // Where nothing waits for feeds, those that are being opened are waited for all the same.
    if (feed.opening && !lets_wait()) continue;
    const auto patience = is_lost ? std::chrono::milliseconds(0) : grace_;
    for (const Guest& guest : guests_.overdue(feed.name, Clock::now(), patience)) {
      give_up_(guest, feed.told());
    }
  }
  return !guests_.empty();
}

}  // namespace batchwright
