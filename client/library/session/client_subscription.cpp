#include "client/library/session/client_subscription.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

/// Longer waits are reported: the daemon may keep back batches that it would give in reserve.
constexpr std::chrono::milliseconds kMinReported{1};
/// A program that takes a batch so soon after the last one gains by fewer messages, and with half
/// of its window unread a slower one does, too: a message wakes ZeroMQ's thread and the daemon's
/// loop. With a program that is slower still a release that waits would keep its slot for longer
/// than a message is worth.
constexpr std::chrono::milliseconds kFast{10};
constexpr std::chrono::milliseconds kFastWithHalfUnread{1000};

Error bad_message(const std::string& what) { return {ErrorCode::malformed_message, what}; }

}  // namespace

ClientSubscription::ClientSubscription(wire::SubscribeT request, bool writable)
    : memory_(writable ? std::make_shared<PrivateMemory>() : nullptr),
      expected_(std::move(request)),
      leases_(expected_.is_queue()) {}

Result<void> ClientSubscription::on(const wire::Subscribed& answer, Time /*now*/) {
  if (served_) return bad_message(fmt::format("feed \"{}\": a second Subscribed", feed()));
  if (auto started = expected_.start(answer); !started) {
    if (started.error().code == ErrorCode::malformed_message) return started;
    static_cast<void>(end(started.error()));
    return {};
  }
  served_ = true;
  arena_ = ArenaNumber{answer.arena()};
  window_ = answer.window();
  leases_.confirm_claims();
  if (grant_) return {};
  over_ = expected_.is_over_from_the_start();
  grant_ = Grant{expected_.first(), answer.steps(),         answer.batches_per_step(),
                 answer.world(),    expected_.asked().rank, expected_.asked().ranks,
                 answer.window()};
  return {};
}

Result<void> ClientSubscription::on(const wire::Delivery& delivery, const Payload& batch,
                                    bool comes_along, Time now) {
  if (failure_) return {};
  if (!served_) return bad_message("a batch came before its Subscribed");
  const bool whole = comes_along ? batch && batch.bytes.size() == delivery.size() : !batch;
  if (!whole) {
    return bad_message(fmt::format("a batch of {} bytes came with {} bytes as second frame",
                                   delivery.size(), batch.bytes.size()));
  }
  push(Ticket{LeaseNumber{delivery.lease()}, ArenaNumber{delivery.arena()}, delivery.offset(),
              delivery.size(), delivery.epoch(), delivery.step(), delivery.index(),
              delivery.rehearsal(), delivery.may_join(), delivery.attempt(), batch},
       now);
  return {};
}

Result<void> ClientSubscription::on(const wire::EpochEnd& ended, Time now) {
  push(EpochEnded{ended.epoch(), ended.steps(), ended.last()}, now);
  return {};
}

Result<void> ClientSubscription::on(const wire::EpochBegin& began, Time now) {
  push(EpochBegan{began.epoch(), began.steps(), from_wire(*began.fingerprint())}, now);
  return {};
}

Result<void> ClientSubscription::on(const wire::Waiting& waiting, Time /*now*/) {
  reason_ = waiting.reason()->str();
  return {};
}

/// An answer to an earlier question comes too late, and so does one after a loss: it speaks of what
/// was asked for before.
Result<void> ClientSubscription::on(const wire::Upcoming& answer, Time /*now*/) {
  if (!served_ || answer.question() != asked_upcoming_) return {};
  upcoming_.emplace();
  for (const Event& event : inbox_) {
    if (const auto* ticket = std::get_if<Ticket>(&event)) upcoming_->unread.push_back(*ticket);
  }
  for (const wire::UpcomingBatch* batch : *answer.batches()) upcoming_->planned.push_back(*batch);
  return {};
}

wire::ListUpcomingT ClientSubscription::ask_upcoming(std::uint32_t count) {
  upcoming_.reset();
  wire::ListUpcomingT question;
  question.subscription = number().value;
  question.question = ++asked_upcoming_;
  question.count = count;
  return question;
}

void ClientSubscription::push(Event event, Time now) {
  inbox_.push_back(std::move(event));
  waits_.end(now);
}

ClientSubscription::Look ClientSubscription::look() {
  while (has_news()) {
    if (over_) return std::optional(Coming::nothing);
    if (expected_.is_behind()) return std::optional(Coming::epoch_end);
    if (inbox_.empty()) return *failure_;
    auto found = std::visit([this](const auto& event) { return look_at(event); }, inbox_.front());
    if (!found) return failure_ ? *failure_ : end(found.error());
    if (found->has_value()) return found;
    inbox_.pop_front();
  }
  return std::optional<Coming>();
}

ClientSubscription::Look ClientSubscription::look_at(const Ticket& ticket) {
  const auto verdict = expected_.check(ticket);
  if (!verdict) return verdict.error();
  if (*verdict == ExpectedPosition::Verdict::hand_out) {
    return std::optional(ticket.rehearsal ? Coming::rehearsal : Coming::batch);
  }
  leases_.skip(ticket.lease);
  return std::optional<Coming>();
}

ClientSubscription::Look ClientSubscription::look_at(const EpochEnded& ended) {
  const auto verdict = expected_.check(ended);
  if (!verdict) return verdict.error();
  if (*verdict == ExpectedPosition::Verdict::hand_out) return std::optional(Coming::epoch_end);
  over_ = ended.last;
  return std::optional<Coming>();
}

ClientSubscription::Look ClientSubscription::look_at(const EpochBegan& began) {
  if (auto begun = expected_.begin(began); !begun) return begun.error();
  return std::optional<Coming>();
}

Position ClientSubscription::take_batch() {
  const Ticket& ticket = std::get<Ticket>(inbox_.front());
  const bool rehearsal = ticket.rehearsal;
  expected_.advance(ticket);
  inbox_.pop_front();
  return rehearsal ? expected_.first() : expected_.position();
}

/// The next epoch's beginning is taken note of as well when it is at hand, so that a position has
/// its fingerprint.
EpochEnded ClientSubscription::take_end() {
  if (expected_.is_behind()) {
    const EpochEnded ended{expected_.position().epoch, 0, false};
    over_ = expected_.advance(ended);
    return ended;
  }
  const EpochEnded ended = std::get<EpochEnded>(inbox_.front());
  inbox_.pop_front();
  over_ = expected_.advance(ended);
  const auto* began = inbox_.empty() ? nullptr : std::get_if<EpochBegan>(&inbox_.front());
  if (began != nullptr && expected_.begin(*began)) inbox_.pop_front();  // otherwise look() says why
  return ended;
}

std::size_t ClientSubscription::releases_may_wait(Time now) {
  const auto before = std::exchange(took_, now);
  const Ticket* next = coming();
  if (!before || next == nullptr || is_queue()) return 0;
  const Ticket* newest = nullptr;
  std::size_t unread = 0;
  for (const Event& event : inbox_) {
    const auto* ticket = std::get_if<Ticket>(&event);
    unread += ticket != nullptr ? 1 : 0;
    newest = ticket != nullptr ? ticket : newest;
  }
  if (!next->may_join || !newest->may_join) return 0;
  const auto fast = 2 * unread >= window_ ? kFastWithHalfUnread : kFast;
  return now - *before < fast ? std::max<std::uint32_t>(window_ / 2, 1) - 1 : 0;
}

Error ClientSubscription::end(const Error& error) {
  const std::string prefix = fmt::format("feed \"{}\": ", feed());
  const bool is_named = error.message.starts_with(prefix);
  const Error told{error.code, is_named ? error.message : prefix + error.message};
  fail(told);
  leases_.close();
  return told;
}

void ClientSubscription::fail(const Error& error) {
  refuse(error);
  std::size_t kept = 0;
  while (kept < inbox_.size() && std::holds_alternative<EpochEnded>(inbox_[kept])) ++kept;
  inbox_.resize(kept);
}

void ClientSubscription::refuse(const Error& error) {
  if (!failure_) failure_ = error;
}

void ClientSubscription::lost() {
  served_ = false;
  leases_.end_session();
  upcoming_.reset();
  waits_.lost();
  reason_.clear();
  if (memory_) memory_->forget_prepared();
  if (failure_) return fail(*failure_);  // what it had sent before it refused is void as well
  if (!over_ && !has_last_end()) inbox_.clear();
}

/// Whether the end of all that was asked for is next in line.
bool ClientSubscription::has_last_end() const {
  const auto* ended = inbox_.empty() ? nullptr : std::get_if<EpochEnded>(&inbox_.front());
  return ended != nullptr && ended->last;
}

bool ClientSubscription::wants_more() const {
  return !over_ && !failure_ && !leases_.is_closed() && !has_last_end();
}

wire::SubscribeT ClientSubscription::request() {
  wire::SubscribeT request = expected_.resume();
  if (is_queue()) {
    const Leases::Claims claims = leases_.claims();
    request.held = to_wire(claims.held);
    request.released = to_wire(claims.released);
  }
  return request;
}

bool ProgramWaits::in_vain(Time now) {
  if (!since_) since_ = now;
  if (told_ || now - *since_ < kMinReported) return false;
  told_ = now;
  return true;
}

void ProgramWaits::end(Time now) {
  when_lost_ = false;
  if (!since_) return;
  // A wait that is untold is short, so nothing overflows before the sum is taken.
  untold_us_ += static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(told_.value_or(now) - *since_).count());
  since_.reset();
  told_.reset();
}

void ProgramWaits::lost() {
  when_lost_ = when_lost_ || since_.has_value();
  since_.reset();
  told_.reset();
  untold_us_ = 0;  // for that daemon
}

bool ProgramWaits::again(Time now) {
  if (!std::exchange(when_lost_, false) && !since_) return false;
  since_ = told_ = now;
  return true;
}

std::chrono::microseconds ProgramWaits::take_untold() {
  return std::chrono::microseconds(untold_us_.exchange(0));
}

}  // namespace batchwright
