#include "client/library/session/progress.h"

#include <algorithm>

namespace batchwright {

std::string describe_change(const bw_fingerprint& had, std::string_view had_terms,
                            const bw_fingerprint& found, std::string_view found_terms) {
  return describe_change(Terms{{had.data, had.settings, had.seed}, had_terms},
                         Terms{{found.data, found.settings, found.seed}, found_terms});
}

namespace {

std::string_view terms_of(const wire::Subscribed& answer) {
  return answer.terms() != nullptr ? answer.terms()->string_view() : std::string_view();
}

}  // namespace

Progress::Progress(const wire::SubscribeT& request)
    : feed_(request.feed),
      queue_(request.mode == wire::Mode::queue),
      epochs_(request.epochs),
      rank_(request.mode == wire::Mode::sharded ? request.rank : 0),
      rehearsals_(request.worst_first) {
  if (!request.expects_fingerprint || !request.fingerprint) return;
  const wire::Fingerprint& plan = *request.fingerprint;
  expected_ = {{plan.data(), plan.settings(), plan.seed()}, request.epoch, request.step};
  terms_ = request.terms;
}

Result<void> Progress::start(const wire::Subscribed& answer) {
  if (answer.fingerprint() == nullptr || answer.world() == 0 || answer.batches_per_step() == 0 ||
      answer.batches_per_step() > answer.world() || answer.window() == 0) {
    return Error{ErrorCode::malformed_message, "feed \"" + feed_ + "\": an impossible Subscribed"};
  }
  if (started_) return go_on(answer);
  if (auto same = check_expected(answer); !same) return same;
  started_ = true;
  world_ = answer.world();
  per_step_ = answer.batches_per_step();
  first_ = rank_ * per_step_;
  known_epoch_ = told_epoch_ = answer.epoch();
  rehearsing_ = rehearsals_ != 0;
  const wire::Fingerprint& plan = *answer.fingerprint();
  start_ = {{plan.data(), plan.settings(), plan.seed()}, answer.epoch(), answer.step()};
  terms_ = terms_of(answer);
  const std::lock_guard lock(mutex_);
  plan_ = start_.fingerprint;
  steps_ = answer.steps();
  epoch_ = answer.epoch();
  step_ = answer.step();
  return {};
}

/// The daemon compares too; but whatever it makes of that, a program never goes on with other data
/// than it asked for. At an epoch's start newer ones are as good, and a queue that has gone on is
/// in another epoch.
Result<void> Progress::check_expected(const wire::Subscribed& answer) const {
  if (!expected_) return {};
  const wire::Fingerprint& plan = *answer.fingerprint();
  bw_fingerprint had = expected_->fingerprint;
  const bool elsewhere = queue_ && answer.epoch() != expected_->epoch;
  if (expected_->step == 0 || elsewhere) had.data = plan.data();
  const std::string changes =
      describe_change(had, terms_, {plan.data(), plan.settings(), plan.seed()}, terms_of(answer));
  if (changes.empty()) return {};
  return Error{
      ErrorCode::fingerprint_mismatch,
      "feed \"" + feed_ + "\": the daemon has another plan than was asked for: " + changes};
}

/// The daemon may be another, but its plan and the place reached in it must be the same. An epoch
/// of which nothing was handed out yet may be planned anew, from a dataset that has grown. A queue
/// may also have gone on; or be in an epoch that has ended here, as the releases that end it came
/// when the daemon was gone.
Result<void> Progress::go_on(const wire::Subscribed& answer) {
  const wire::Fingerprint& wire_plan = *answer.fingerprint();
  const bw_fingerprint plan{wire_plan.data(), wire_plan.settings(), wire_plan.seed()};
  bw_fingerprint had = plan_;
  const bool begun = queue_ ? answer.epoch() == known_epoch_ && taken_of_ == known_epoch_
                            : end_again_ || step_ != 0 || place_ != 0 || !rehearsed_.empty();
  if (!begun) had.data = plan.data;
  if (auto same = check_plan(had, plan, terms_of(answer)); !same) return same;
  if (answer.world() != world_ || answer.batches_per_step() != per_step_) {
    return not_due("a world of " + std::to_string(answer.world()));
  }
  if (queue_) {
    told_epoch_ = std::max(told_epoch_, answer.epoch());
    if (answer.epoch() < known_epoch_) return {};
    known_epoch_ = answer.epoch();
    const std::lock_guard lock(mutex_);
    plan_ = plan;
    steps_ = answer.steps();
    return {};
  }
  const std::uint64_t epoch = end_again_ ? known_epoch_ : epoch_;
  const std::uint64_t step = end_again_ ? steps_ : step_;
  if (answer.epoch() == epoch && answer.step() == step) {
    if (!begun) begin_anew(plan, answer.steps());
    return {};
  }
  return not_due("step " + std::to_string(answer.step()) + " of epoch " +
                 std::to_string(answer.epoch()));
}

/// Takes up another plan of the epoch that is due from its start.
void Progress::begin_anew(const bw_fingerprint& plan, std::uint64_t steps) {
  if (epoch_ == start_.epoch) start_.fingerprint = plan;
  known_epoch_ = epoch_;
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  steps_ = steps;
}

Result<void> Progress::check_plan(const bw_fingerprint& had, const bw_fingerprint& found,
                                  std::string_view terms) const {
  const std::string changes = describe_change(had, terms_, found, terms);
  if (changes.empty()) return {};
  return Error{ErrorCode::fingerprint_mismatch,
               "feed \"" + feed_ + "\": the daemon came back with another plan: " + changes};
}

void Progress::resume(wire::SubscribeT& request) {
  if (!started_ || queue_) return;
  again_ = place_;
  end_again_ = epoch_ != known_epoch_;
  rehearsed_again_ = 0;
  request.epoch = end_again_ ? known_epoch_ : epoch_;
  request.step = end_again_ ? steps_ : step_;
  if (epochs_ != 0) request.epochs = epochs_ - (request.epoch - start_.epoch);
  if (!rehearsing_) request.worst_first = 0;
  request.expects_fingerprint = true;
  request.fingerprint = std::make_unique<wire::Fingerprint>(plan_.data, plan_.settings, plan_.seed);
  request.terms = terms_;
}

Result<Progress::Verdict> Progress::check(const Ticket& ticket) {
  if (ticket.rehearsal) return check_rehearsal(ticket);
  if (queue_) return Verdict::hand_out;
  if (end_again_ || ticket.epoch != epoch_ || ticket.index != expected_index() ||
      ticket.step != step_) {
    return not_due("batch " + std::to_string(ticket.index) + " of epoch " +
                   std::to_string(ticket.epoch));
  }
  known_epoch_ = epoch_;  // begun without a word: it has the last one's plan
  if (again_ == 0) return Verdict::hand_out;
  --again_;
  return Verdict::pass;
}

Result<void> Progress::check(const Ticket& ticket, const wire::Batch& batch) const {
  const wire::Fingerprint& plan = *batch.fingerprint();
  bw_fingerprint due = ticket.rehearsal ? start_.fingerprint : plan_;
  // A queue may be in an epoch whose data this side has not heard of.
  if (queue_ && ticket.epoch != known_epoch_) due.data = plan.data();
  const std::string what =
      describe_change(due, {}, {plan.data(), plan.settings(), plan.seed()}, {});
  if (batch.feed()->string_view() == feed_ && what.empty()) return {};
  const std::string why =
      what.empty() ? "it is of feed \"" + batch.feed()->str() + "\"" : "of its plan " + what;
  return Error{ErrorCode::malformed_message,
               "feed \"" + feed_ + "\": batch " + std::to_string(ticket.index) + " of epoch " +
                   std::to_string(ticket.epoch) + " is not what was subscribed to: " + why};
}

Result<Progress::Verdict> Progress::check_rehearsal(const Ticket& ticket) {
  if (!rehearsing_ || ticket.epoch != start_.epoch) return not_due("a rehearsal");
  if (rehearsed_again_ < rehearsed_.size()) {
    if (rehearsed_[rehearsed_again_++] == ticket.index) return Verdict::pass;
    return not_due("rehearsal " + std::to_string(ticket.index));
  }
  const bool twice =
      std::find(rehearsed_.begin(), rehearsed_.end(), ticket.index) != rehearsed_.end();
  if (twice || rehearsed_.size() >= rehearsals_) return not_due("one more rehearsal");
  return Verdict::hand_out;
}

Result<Progress::Verdict> Progress::check(const EpochEnded& ended) {
  if (queue_) return ended.epoch < epoch_ ? Verdict::pass : Verdict::hand_out;
  if (end_again_ && ended.epoch == known_epoch_ && ended.steps == steps_) {
    end_again_ = false;
    return Verdict::pass;
  }
  if (end_again_ || ended.epoch != epoch_ || ended.steps != step_ || place_ != 0) {
    return not_due("the end of epoch " + std::to_string(ended.epoch) + " after " +
                   std::to_string(ended.steps) + " steps");
  }
  return Verdict::hand_out;
}

Result<void> Progress::begin(const EpochBegan& began) {
  bw_fingerprint due = plan_;
  due.data = began.plan.data;  // a dataset may grow with an epoch; all else stays
  if (auto same = check_plan(due, began.plan, {}); !same) return same;
  if (queue_) {
    if (began.epoch < told_epoch_) return {};
    told_epoch_ = began.epoch;
  } else if (end_again_ || began.epoch != epoch_ || place_ != 0 || step_ != 0) {
    return not_due("the beginning of epoch " + std::to_string(began.epoch));
  }
  known_epoch_ = began.epoch;
  const std::lock_guard lock(mutex_);
  plan_ = began.plan;
  steps_ = began.steps;
  return {};
}

void Progress::advance(const Ticket& ticket) {
  if (ticket.rehearsal) {
    rehearsed_.push_back(ticket.index);
    rehearsed_again_ = rehearsed_.size();
    return;
  }
  rehearsing_ = false;
  const std::lock_guard lock(mutex_);
  if (queue_) {
    step_ = ticket.step;
    taken_of_ = ticket.epoch;
    return;
  }
  if (++place_ < per_step_) return;
  place_ = 0;
  ++step_;
}

bool Progress::advance(const EpochEnded& ended) {
  const std::lock_guard lock(mutex_);
  if (epoch_ == known_epoch_ && !is_behind()) steps_ = ended.steps;
  ++epoch_;
  step_ = 0;
  return ended.last || counted_out(epoch_);
}

/// In queue mode the daemon counts from where the queue was when it was asked again.
bool Progress::counted_out(std::uint64_t next_epoch) const {
  return queue_ && epochs_ != 0 && next_epoch - start_.epoch >= epochs_;
}

bw_position Progress::position() const {
  const std::lock_guard lock(mutex_);
  return {plan_, epoch_, step_};
}

std::uint64_t Progress::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

std::uint64_t Progress::expected_index() const { return step_ * world_ + first_ + place_ - again_; }

Error Progress::not_due(const std::string& what) const {
  const std::string due = end_again_ ? "the end of epoch " + std::to_string(known_epoch_)
                                     : "batch " + std::to_string(expected_index()) + " of epoch " +
                                           std::to_string(epoch_);
  return {ErrorCode::malformed_message,
          "feed \"" + feed_ + "\": " + what + " came where " + due + " was due"};
}

}  // namespace batchwright
