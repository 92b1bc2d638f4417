#include "client/library/session/lease_book.h"

#include <algorithm>

namespace batchwright {

void LeaseBook::open(SubscriptionNumber subscription, bool queue) {
  const std::lock_guard lock(mutex_);
  accounts_[subscription].queue = queue;
}

void LeaseBook::forget(SubscriptionNumber subscription) {
  const std::lock_guard lock(mutex_);
  accounts_.erase(subscription);
}

std::optional<Lease> LeaseBook::take(SubscriptionNumber subscription, LeaseNumber number) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found == accounts_.end()) return std::nullopt;
  Account& account = found->second;
  if (account.queue) {
    const auto in = [number](const auto& list) {
      return std::find(list.begin(), list.end(), number) != list.end();
    };
    if (in(account.returned) || in(account.done) || in(account.claimed)) return std::nullopt;
    if (in(account.undone)) return std::nullopt;
    if (account.kept.contains(number)) return std::nullopt;
    if (!account.holding.insert(number).second) return std::nullopt;
  }
  ++account.held;
  ++held_;
  return Lease{subscription, session_, number};
}

void LeaseBook::give_back(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(lease.subscription);
  if (found == accounts_.end()) return;
  Account& account = found->second;
  const bool held = account.queue ? account.holding.erase(lease.number) != 0 ||
                                        account.kept.erase(lease.number) != 0
                                  : lease.session == session_;
  if (!held) return;
  account.returned.push_back(lease.number);
  --account.held;
  --held_;
}

void LeaseBook::give_back_undone(const Lease& lease) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = accounts_.find(lease.subscription);
    if (found == accounts_.end()) return;
    Account& account = found->second;
    if (account.holding.erase(lease.number) != 0) {
      account.undone.push_back(lease.number);
      --account.held;
      --held_;
      return;
    }
  }
  give_back(lease);  // of another mode, or done
}

void LeaseBook::let_return(bool can) {
  const std::lock_guard lock(mutex_);
  can_return_ = can;
}

void LeaseBook::done(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(lease.subscription);
  if (found == accounts_.end() || found->second.holding.erase(lease.number) == 0) return;
  found->second.kept.insert(lease.number);
  found->second.finished.push_back(lease.number);
}

void LeaseBook::skip(SubscriptionNumber subscription, LeaseNumber number) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found != accounts_.end()) found->second.returned.push_back(number);
}

void LeaseBook::let_wait(SubscriptionNumber subscription, std::size_t releases) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, account] : accounts_) {
    account.may_wait = number == subscription ? releases : 0;
  }
}

void LeaseBook::close(SubscriptionNumber subscription) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found != accounts_.end()) found->second.closed = true;
}

void LeaseBook::close_all() {
  const std::lock_guard lock(mutex_);
  all_closed_ = true;
}

void LeaseBook::end_session() {
  const std::lock_guard lock(mutex_);
  ++session_;
  held_ = 0;
  can_return_ = false;
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.closed; });
  for (auto& [subscription, account] : accounts_) {
    if (account.queue) {
      account.done.insert(account.done.begin(), account.claimed.begin(), account.claimed.end());
      account.claimed.clear();
      remember(account, account.finished);
      remember(account, account.returned);
      account.finished.clear();
      account.held -= account.kept.size();  // the slots went with the session
      account.kept.clear();
    } else {
      account.held = 0;
    }
    account.returned.clear();
    account.undone.clear();
    account.may_wait = 0;
    held_ += account.held;
  }
}

void LeaseBook::remember(Account& account, const std::vector<LeaseNumber>& leases) {
  account.done.insert(account.done.end(), leases.begin(), leases.end());
  while (account.done.size() > kRemembered) account.done.pop_front();
}

LeaseBook::Claims LeaseBook::claims(SubscriptionNumber subscription) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found == accounts_.end()) return {};
  Account& account = found->second;
  remember(account, account.finished);
  remember(account, account.returned);
  account.finished.clear();
  account.returned.clear();
  account.claimed.insert(account.claimed.end(), account.done.begin(), account.done.end());
  account.done.clear();
  return {{account.holding.begin(), account.holding.end()}, account.claimed};
}

void LeaseBook::noted(SubscriptionNumber subscription) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  if (found != accounts_.end()) found->second.claimed.clear();
}

bool LeaseBook::closed(SubscriptionNumber subscription) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  return found == accounts_.end() || found->second.closed;
}

bool LeaseBook::all_closed() const {
  const std::lock_guard lock(mutex_);
  return all_closed_;
}

std::size_t LeaseBook::held(SubscriptionNumber subscription) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(subscription);
  return found == accounts_.end() ? 0 : found->second.held;
}

bool LeaseBook::holds_any() const {
  const std::lock_guard lock(mutex_);
  return held_ != 0;
}

bool LeaseBook::has_news() const {
  const std::lock_guard lock(mutex_);
  if (may_say_goodbye()) return true;
  return std::any_of(accounts_.begin(), accounts_.end(), [this](const auto& entry) {
    const Account& account = entry.second;
    return has_releases(account) || has_rest(account) ||
           (!all_closed_ && account.closed && account.held == 0);
  });
}

LeaseBook::News LeaseBook::take_news() {
  const std::lock_guard lock(mutex_);
  News news;
  for (auto entry = accounts_.begin(); entry != accounts_.end();) {
    auto& [subscription, account] = *entry;
    if (!account.finished.empty()) {
      remember(account, account.finished);
      news.done.emplace_back(subscription, std::exchange(account.finished, {}));
    }
    if (!account.returned.empty() && has_releases(account)) {
      if (account.queue) remember(account, account.returned);
      news.releases.emplace_back(subscription, std::exchange(account.returned, {}));
    }
    if (can_return_ && !account.undone.empty()) {
      news.returns.emplace_back(subscription, std::exchange(account.undone, {}));
    }
    if (has_rest(account)) {
      account.rest_told = true;
      std::vector<LeaseNumber> rest(account.holding.begin(), account.holding.end());
      rest.insert(rest.end(), account.kept.begin(), account.kept.end());
      news.rests.emplace_back(subscription, std::move(rest));
    }
    if (!all_closed_ && account.closed && account.held == 0) {
      news.ended.push_back(subscription);
      entry = accounts_.erase(entry);
    } else {
      ++entry;
    }
  }
  news.goodbye = may_say_goodbye();
  goodbye_said_ = goodbye_said_ || news.goodbye;
  return news;
}

/// In queue mode a release is more than a credit: it is sent even where no credit is wanted.
bool LeaseBook::has_releases(const Account& account) const {
  if (!account.finished.empty() || (can_return_ && !account.undone.empty())) return true;
  if (account.queue) return !account.returned.empty();
  return account.returned.size() > account.may_wait && !account.closed && !all_closed_;
}

/// Whether its end waits for batches that are held, and the daemon is to know of which.
bool LeaseBook::has_rest(const Account& account) const {
  if (!account.queue || !can_return_ || account.rest_told) return false;
  return all_closed_ ? held_ != 0 : account.closed && account.held != 0;
}

bool LeaseBook::may_say_goodbye() const { return all_closed_ && held_ == 0 && !goodbye_said_; }

}  // namespace batchwright
