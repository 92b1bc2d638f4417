#include "client/library/session/leases.h"

#include <algorithm>
#include <utility>

namespace batchwright {

std::optional<Lease> Leases::take(LeaseNumber number) {
  const MutexLock lock(mutex_);
  if (state_ == State::ended) return std::nullopt;
  if (queue_) {
    const auto in = [number](const auto& list) {
      return std::find(list.begin(), list.end(), number) != list.end();
    };
    if (in(returned_) || in(done_) || in(claimed_) || in(undone_) || in(kept_)) return std::nullopt;
    if (!holding_.insert(number).second) return std::nullopt;
  }
  ++held_;
  return Lease{session_, number};
}

void Leases::give_back(const Lease& lease) {
  const MutexLock lock(mutex_);
  if (state_ == State::ended) return;
  const bool is_held = queue_ ? holding_.erase(lease.number) + kept_.erase(lease.number) != 0
                              : lease.session == session_;
  if (!is_held) return;
  returned_.push_back(lease.number);
  --held_;
}

void Leases::give_back_undone(const Lease& lease) {
  {
    const MutexLock lock(mutex_);
    if (state_ != State::ended && holding_.erase(lease.number) != 0) {
      undone_.push_back(lease.number);
      --held_;
      return;
    }
  }
  give_back(lease);  // of another mode, or done
}

void Leases::mark_done(const Lease& lease) {
  const MutexLock lock(mutex_);
  if (state_ == State::ended || holding_.erase(lease.number) == 0) return;
  kept_.insert(lease.number);
  finished_.push_back(lease.number);
}

void Leases::skip(LeaseNumber number) {
  const MutexLock lock(mutex_);
  if (state_ != State::ended) returned_.push_back(number);
}

void Leases::let_wait(std::size_t releases) {
  const MutexLock lock(mutex_);
  may_wait_ = releases;
}

void Leases::close() {
  const MutexLock lock(mutex_);
  if (state_ == State::open) state_ = State::closed;
}

void Leases::end() {
  const MutexLock lock(mutex_);
  state_ = State::ended;
  held_ = 0;
}

bool Leases::is_closed() const {
  const MutexLock lock(mutex_);
  return state_ != State::open;
}

bool Leases::is_ended() const {
  const MutexLock lock(mutex_);
  return state_ == State::ended;
}

std::size_t Leases::held() const {
  const MutexLock lock(mutex_);
  return held_;
}

void Leases::begin_session(bool can_return) {
  const MutexLock lock(mutex_);
  can_return_ = can_return;
}

void Leases::end_session() {
  const MutexLock lock(mutex_);
  ++session_;
  can_return_ = false;
  may_wait_ = 0;
  if (state_ != State::open) state_ = State::ended;
  if (queue_ && state_ == State::open) {
    done_.insert(done_.begin(), claimed_.begin(), claimed_.end());
    claimed_.clear();
    remember(finished_);
    remember(returned_);
    kept_.clear();  // the slots went with the session
    held_ = holding_.size();
  } else {
    held_ = 0;
  }
  returned_.clear();
  undone_.clear();
}

/// Takes the leases out of the list.
void Leases::remember(std::vector<LeaseNumber>& leases) {
  done_.insert(done_.end(), leases.begin(), leases.end());
  leases.clear();
  while (done_.size() > kRemembered) done_.pop_front();
}

Leases::Claims Leases::claims() {
  const MutexLock lock(mutex_);
  remember(finished_);
  remember(returned_);
  claimed_.insert(claimed_.end(), done_.begin(), done_.end());
  done_.clear();
  return {{holding_.begin(), holding_.end()}, claimed_};
}

void Leases::confirm_claims() {
  const MutexLock lock(mutex_);
  claimed_.clear();
}

bool Leases::has_outbox(const Connection& connection) const {
  const MutexLock lock(mutex_);
  return has_releases(connection.closed) || has_rest(connection) || has_end(connection.closed);
}

Leases::Outbox Leases::take_outbox(const Connection& connection) {
  const MutexLock lock(mutex_);
  Outbox outbox;
  if (state_ == State::ended) return outbox;
  const bool releases = has_releases(connection.closed);
  outbox.done = finished_;
  remember(finished_);
  if (releases) {
    outbox.releases = returned_;
    if (queue_) remember(returned_);
    returned_.clear();
  }
  if (can_return_) outbox.returns = std::exchange(undone_, {});
  if (has_rest(connection)) {
    rest_told_ = true;
    outbox.rest.emplace(holding_.begin(), holding_.end());
    outbox.rest->insert(outbox.rest->end(), kept_.begin(), kept_.end());
  }
  outbox.ended = has_end(connection.closed);
  if (outbox.ended) state_ = State::ended;
  return outbox;
}

/// In queue mode a release is more than a credit: it is sent even where no credit is wanted.
bool Leases::has_releases(bool connection_closed) const {
  if (state_ == State::ended) return false;
  if (!finished_.empty() || (can_return_ && !undone_.empty())) return true;
  if (queue_) return !returned_.empty();
  return returned_.size() > may_wait_ && state_ == State::open && !connection_closed;
}

/// Whether its end waits for batches that are held, and the daemon is to know of which.
bool Leases::has_rest(const Connection& connection) const {
  if (!queue_ || !can_return_ || rest_told_ || state_ == State::ended) return false;
  return connection.closed ? connection.holds_any : state_ == State::closed && held_ != 0;
}

bool Leases::has_end(bool connection_closed) const {
  return !connection_closed && state_ == State::closed && held_ == 0;
}

}  // namespace batchwright
