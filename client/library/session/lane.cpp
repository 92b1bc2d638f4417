#include "client/library/session/lane.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

/// Longer waits are reported: the daemon may keep back batches that it would give in reserve.
constexpr std::chrono::milliseconds kWorthAWord{1};
/// A program that takes a batch so soon after the last one gains by fewer messages. With a slower
/// one a release that waits would keep its slot for longer than a message is worth.
constexpr std::chrono::milliseconds kFast{10};

}  // namespace

Taken NextBatch::take() && {
  lane_->take(ticket_);
  const Progress& progress = lane_->progress();
  const Position position = ticket_.rehearsal ? progress.first() : progress.position();
  return {std::move(ticket_), position};
}

EpochEnded NextEnd::take() && {
  lane_->take(ended_);
  return ended_;
}

Result<void> Lane::granted(const wire::Subscribed& answer) {
  if (served_) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("feed \"{}\": a second Subscribed", feed())};
  }
  if (auto started = progress_.start(answer); !started) return started;
  served_ = true;
  arena_ = ArenaNumber{answer.arena()};
  window_ = answer.window();
  if (grant_) return {};
  over_ = progress_.is_over_from_the_start();
  grant_ = Grant{progress_.first(), answer.steps(), answer.batches_per_step(),
                 answer.world(),    request_.rank,  request_.ranks,
                 answer.window()};
  return {};
}

void Lane::push(Event event) {
  inbox_.push_back(std::move(event));
  waits_.end();
}

void ProgramWaits::end() {
  when_lost_ = false;
  if (!since_) return;
  const auto until = told_ ? *told_ : std::chrono::steady_clock::now();
  // A wait that is untold is short, so nothing overflows before the sum is taken.
  untold_us_ += static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(until - *since_).count());
  since_.reset();
  told_.reset();
}

bool ProgramWaits::in_vain(Time now) {
  if (!since_) since_ = now;
  if (told_ || now - *since_ < kWorthAWord) return false;
  told_ = now;
  return true;
}

void ProgramWaits::lost() {
  when_lost_ = when_lost_ || since_.has_value();
  since_.reset();
  told_.reset();
  untold_us_ = 0;  // for that daemon
}

bool ProgramWaits::again(Time now) {
  if (!std::exchange(when_lost_, false)) return false;
  since_ = told_ = now;
  return true;
}

std::chrono::microseconds ProgramWaits::take_untold() {
  return std::chrono::microseconds(untold_us_.exchange(0));
}

std::size_t Lane::releases_may_wait(std::chrono::steady_clock::time_point now) {
  const auto before = std::exchange(took_, now);
  const bool fast = before && now - *before < kFast;
  const Ticket* next = coming();
  if (!fast || next == nullptr || !next->may_join || is_queue()) return 0;
  return std::max<std::uint32_t>(window_ / 2, 1) - 1;
}

Result<Lane::Next> Lane::look() {
  if (over_) return Next(NothingFollows{});
  if (progress_.is_behind()) {
    return Next(NextEnd(*this, {progress_.position().epoch, 0, false}));
  }
  if (inbox_.empty()) return *failure_;
  return std::visit([this](const auto& event) { return look_at(event); }, inbox_.front());
}

Result<Lane::Next> Lane::look_at(const Ticket& ticket) {
  const auto verdict = progress_.check(ticket);
  if (!verdict) return verdict.error();
  if (*verdict == Progress::Verdict::hand_out) return Next(NextBatch(*this, ticket));
  const Doubled doubled{ticket.lease};
  inbox_.pop_front();
  return Next(doubled);
}

Result<Lane::Next> Lane::look_at(const EpochEnded& ended) {
  const auto verdict = progress_.check(ended);
  if (!verdict) return verdict.error();
  if (*verdict == Progress::Verdict::hand_out) return Next(NextEnd(*this, ended));
  over_ = ended.last;
  inbox_.pop_front();
  return Next(Passed{});
}

Result<Lane::Next> Lane::look_at(const EpochBegan& began) {
  if (auto begun = progress_.begin(began); !begun) return begun.error();
  inbox_.pop_front();
  return Next(Passed{});
}

void Lane::take(const Ticket& ticket) {
  progress_.advance(ticket);
  inbox_.pop_front();
}

/// The next epoch's beginning is taken note of as well when it is at hand, so that a position has
/// its fingerprint.
void Lane::take(const EpochEnded& ended) {
  const bool was_behind = progress_.is_behind();
  over_ = progress_.advance(ended);
  if (was_behind) return;
  inbox_.pop_front();
  if (inbox_.empty() || !std::holds_alternative<EpochBegan>(inbox_.front())) return;
  const auto begun = progress_.begin(std::get<EpochBegan>(inbox_.front()));
  if (begun) inbox_.pop_front();  // else look() finds it, and says so
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

void Lane::lost() {
  served_ = false;
  waits_.lost();
  reason_.clear();
  if (memory_) memory_->forget_prepared();
  if (failure_) return fail(*failure_);  // what it had sent before it refused is void as well
  if (wants_more()) inbox_.clear();
}

bool Lane::wants_more() const {
  if (over_ || failure_) return false;
  const auto* ended = inbox_.empty() ? nullptr : std::get_if<EpochEnded>(&inbox_.front());
  return ended == nullptr || !ended->last;
}

wire::SubscribeT Lane::resume() {
  wire::SubscribeT request = request_;
  progress_.resume(request);
  return request;
}

}  // namespace batchwright
