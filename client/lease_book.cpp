#include "client/lease_book.h"

#include <algorithm>
#include <utility>

namespace batchwright {

void LeaseBook::open(std::uint32_t subscription) {
  const std::lock_guard lock(mutex_);
  accounts_.try_emplace(subscription);
}

void LeaseBook::take(std::uint32_t subscription) {
  const std::lock_guard lock(mutex_);
  ++accounts_[subscription].held;
  ++held_;
}

void LeaseBook::give_back(std::uint32_t subscription, std::uint64_t lease) {
  const std::lock_guard lock(mutex_);
  Account& account = accounts_[subscription];
  account.returned.push_back(lease);
  --account.held;
  --held_;
}

void LeaseBook::close(std::uint32_t subscription) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found != accounts_.end()) found->second.closed = true;
}

void LeaseBook::close_all() {
  const std::lock_guard lock(mutex_);
  all_closed_ = true;
}

bool LeaseBook::closed(std::uint32_t subscription) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  return found == accounts_.end() || found->second.closed;
}

bool LeaseBook::all_closed() const {
  const std::lock_guard lock(mutex_);
  return all_closed_;
}

std::size_t LeaseBook::held(std::uint32_t subscription) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  return found == accounts_.end() ? 0 : found->second.held;
}

bool LeaseBook::has_news() const {
  const std::lock_guard lock(mutex_);
  if (all_closed_) return may_say_goodbye();
  return std::any_of(accounts_.begin(), accounts_.end(), [](const auto& entry) {
    const Account& account = entry.second;
    return account.closed ? account.held == 0 : !account.returned.empty();
  });
}

LeaseBook::News LeaseBook::take_news() {
  const std::lock_guard lock(mutex_);
  News news;
  if (all_closed_) {
    news.goodbye = may_say_goodbye();
    goodbye_said_ = goodbye_said_ || news.goodbye;
    return news;
  }
  for (auto entry = accounts_.begin(); entry != accounts_.end();) {
    auto& [subscription, account] = *entry;
    if (account.closed && account.held == 0) {
      news.ended.push_back(subscription);
      entry = accounts_.erase(entry);
      continue;
    }
    if (!account.closed && !account.returned.empty()) {
      news.releases.emplace_back(subscription, std::exchange(account.returned, {}));
    }
    ++entry;
  }
  return news;
}

bool LeaseBook::may_say_goodbye() const { return all_closed_ && held_ == 0 && !goodbye_said_; }

}  // namespace batchwright
