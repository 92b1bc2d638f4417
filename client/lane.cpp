#include "client/lane.h"

namespace batchwright {

Result<void> Lane::granted(const wire::Subscribed& answer) {
  const bool sharded = request_.mode == wire::Mode::sharded;
  if (answer.fingerprint() == nullptr || answer.world() == 0 || answer.batches_per_step() == 0 ||
      answer.batches_per_step() > answer.world() || answer.window() == 0) {
    return Error{ErrorCode::malformed_message, "feed \"" + feed() + "\": an impossible Subscribed"};
  }
  const wire::Fingerprint& plan = *answer.fingerprint();
  grant_ = bw_grant{{plan.data(), plan.settings(), plan.seed()},
                    answer.epoch(),
                    answer.step(),
                    answer.steps(),
                    answer.batches_per_step(),
                    answer.world(),
                    request_.rank,
                    request_.ranks,
                    answer.window()};
  arena_ = answer.arena();
  first_ = sharded ? request_.rank * answer.batches_per_step() : 0;
  const std::lock_guard lock(mutex_);
  epoch_ = answer.epoch();
  step_ = answer.step();
  return {};
}

Result<Lane::Next> Lane::next() {
  if (over_) return Next(NothingFollows{});
  if (inbox_.empty()) return *failure_;
  const Event& event = inbox_.front();
  if (const auto* ticket = std::get_if<Ticket>(&event)) return check(*ticket);
  const EpochEnded ended = std::get<EpochEnded>(event);
  inbox_.pop_front();
  return check(ended);
}

Result<Lane::Next> Lane::check(const Ticket& ticket) {
  if (ticket.epoch == epoch_ && ticket.index == expected_index()) return Next(ticket);
  return Error{ErrorCode::malformed_message,
               "feed \"" + feed() + "\": batch " + std::to_string(ticket.index) + " of epoch " +
                   std::to_string(ticket.epoch) + " came where batch " +
                   std::to_string(expected_index()) + " of epoch " + std::to_string(epoch_) +
                   " was due"};
}

Result<Lane::Next> Lane::check(const EpochEnded& ended) {
  if (ended.epoch != epoch_ || ended.steps != step_ || place_ != 0) {
    return Error{ErrorCode::malformed_message,
                 "feed \"" + feed() + "\": the end of epoch " + std::to_string(ended.epoch) +
                     " came after " + std::to_string(ended.steps) + " steps where batch " +
                     std::to_string(expected_index()) + " of epoch " + std::to_string(epoch_) +
                     " was due"};
  }
  const std::lock_guard lock(mutex_);
  over_ = ended.last;
  ++epoch_;
  step_ = 0;
  return Next(ended);
}

void Lane::advance() {
  inbox_.pop_front();
  const std::lock_guard lock(mutex_);
  if (++place_ < grant_->batches_per_step) return;
  place_ = 0;
  ++step_;
}

void Lane::fail(const Error& error) {
  if (!failure_) failure_ = error;
  std::size_t kept = 0;
  while (kept < inbox_.size() && std::holds_alternative<EpochEnded>(inbox_[kept])) ++kept;
  inbox_.resize(kept);
}

void Lane::refuse(const Error& error) {
  if (!failure_) failure_ = error;
}

bw_position Lane::position() const {
  const std::lock_guard lock(mutex_);
  return {grant_->fingerprint, epoch_, step_};
}

bw_position Lane::position_after(std::uint64_t epoch, std::uint64_t index) const {
  const std::uint64_t place = index % grant_->world;
  const bool completes = place + 1 == first_ + grant_->batches_per_step;
  return {grant_->fingerprint, epoch, index / grant_->world + (completes ? 1 : 0)};
}

std::uint64_t Lane::expected_index() const { return step_ * grant_->world + first_ + place_; }

}  // namespace batchwright
