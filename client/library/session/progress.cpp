#include "client/library/session/progress.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {
namespace {

Terms terms_of(const wire::Subscribed& answer) {
  const auto* text = answer.terms();
  return {from_wire(*answer.fingerprint()),
          text != nullptr ? text->string_view() : std::string_view()};
}

}  // namespace

Progress::Progress(const wire::SubscribeT& request)
    : asked_{request.feed, request.mode == wire::Mode::queue, request.epochs, request.until_epoch,
             request.mode == wire::Mode::sharded ? request.rank : 0},
      rehearsals_(request.worst_first) {
  if (!request.expects_fingerprint || !request.fingerprint) return;
  expected_ = {from_wire(*request.fingerprint), request.epoch, request.step};
  terms_ = request.terms;
}

Result<void> Progress::start(const wire::Subscribed& answer) {
  if (answer.fingerprint() == nullptr || answer.world() == 0 || answer.batches_per_step() == 0 ||
      answer.batches_per_step() > answer.world() || answer.window() == 0) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("feed \"{}\": an impossible Subscribed", asked_.feed)};
  }
  if (started_) return go_on(answer);
  if (auto same = check_expected(answer); !same) return same;
  const Terms granted = terms_of(answer);
  started_ = true;
  share_ = {answer.world(), answer.batches_per_step(), asked_.rank * answer.batches_per_step()};
  known_epoch_ = queue_.told_epoch = answer.epoch();
  first_ = {granted.fingerprint, answer.epoch(), answer.step()};
  terms_ = granted.text;
  const std::lock_guard lock(mutex_);
  place_ = {first_, answer.steps(), 0};
  return {};
}

/// The daemon compares too; but whatever it makes of that, a program never goes on with other data
/// than it asked for. At an epoch's start newer ones are as good, and a queue that has gone on is
/// in another epoch.
Result<void> Progress::check_expected(const wire::Subscribed& answer) const {
  if (!expected_) return {};
  const Terms granted = terms_of(answer);
  Fingerprint had = expected_->plan;
  const bool elsewhere = asked_.queue && answer.epoch() != expected_->epoch;
  if (expected_->step == 0 || elsewhere) had.data = granted.fingerprint.data;
  const std::string changes = describe_change({had, terms_}, granted);
  if (changes.empty()) return {};
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("feed \"{}\": the daemon has another plan than was asked for: {}",
                           asked_.feed, changes)};
}

/// The daemon may be another, but its plan and the place reached in it must be the same. An epoch
/// of which nothing was handed out yet may be planned anew, from a dataset that has grown. A queue
/// may also have gone on; or be in an epoch that has ended here, as the releases that end it came
/// when the daemon was gone.
Result<void> Progress::go_on(const wire::Subscribed& answer) {
  const Terms granted = terms_of(answer);
  const bool begun = has_begun(answer);
  Fingerprint had = place_.next.plan;
  if (!begun) had.data = granted.fingerprint.data;
  if (auto same = check_plan(had, granted); !same) return same;
  if (answer.world() != share_.world || answer.batches_per_step() != share_.per_step) {
    return not_due(fmt::format("a world of {}", answer.world()));
  }
  if (asked_.queue) {
    queue_.told_epoch = std::max(queue_.told_epoch, answer.epoch());
    if (answer.epoch() < known_epoch_) return {};
    known_epoch_ = answer.epoch();
    take_up(granted.fingerprint, answer.steps());
    return {};
  }
  const Position due = resumption();
  if (answer.epoch() == due.epoch && answer.step() == due.step) {
    if (!begun) begin_anew(granted.fingerprint, answer.steps());
    return {};
  }
  return not_due(fmt::format("step {} of epoch {}", answer.step(), answer.epoch()));
}

/// Whether anything was handed out of the epoch that a new daemon goes on with.
bool Progress::has_begun(const wire::Subscribed& answer) const {
  if (asked_.queue) return answer.epoch() == known_epoch_ && queue_.taken_of == known_epoch_;
  return again_.end || place_.next.step != 0 || place_.taken != 0 || rehearsals_.any_taken();
}

/// Takes up another plan of the epoch that is due from its start.
void Progress::begin_anew(const Fingerprint& plan, std::uint64_t steps) {
  if (place_.next.epoch == first_.epoch) first_.plan = plan;
  known_epoch_ = place_.next.epoch;
  take_up(plan, steps);
}

void Progress::take_up(const Fingerprint& plan, std::uint64_t steps) {
  const std::lock_guard lock(mutex_);
  place_.next.plan = plan;
  place_.steps = steps;
}

Result<void> Progress::check_plan(const Fingerprint& had, const Terms& found) const {
  const std::string changes = describe_change({had, terms_}, found);
  if (changes.empty()) return {};
  return Error{
      ErrorCode::fingerprint_mismatch,
      fmt::format("feed \"{}\": the daemon came back with another plan: {}", asked_.feed, changes)};
}

void Progress::resume(wire::SubscribeT& request) {
  if (!started_ || asked_.queue) return;
  again_ = {place_.taken, place_.next.epoch != known_epoch_};
  rehearsals_.begin_again();
  const Position due = resumption();
  request.epoch = due.epoch;
  request.step = due.step;
  if (asked_.epochs != 0) request.epochs = asked_.epochs - (due.epoch - first_.epoch);
  if (!rehearsals_.are_due()) request.worst_first = 0;
  request.expects_fingerprint = true;
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(due.plan));
  request.terms = terms_;
}

Position Progress::resumption() const {
  if (!again_.end) return place_.next;
  return {place_.next.plan, known_epoch_, place_.steps};
}

Result<Progress::Verdict> Progress::check(const Ticket& ticket) {
  if (ticket.rehearsal) return check_rehearsal(ticket);
  if (asked_.queue) return Verdict::hand_out;
  if (again_.end || ticket.epoch != place_.next.epoch || ticket.index != expected_index() ||
      ticket.step != place_.next.step) {
    return not_due(fmt::format("batch {} of epoch {}", ticket.index, ticket.epoch));
  }
  known_epoch_ = place_.next.epoch;  // begun without a word: it has the last one's plan
  if (again_.batches == 0) return Verdict::hand_out;
  --again_.batches;
  return Verdict::pass;
}

Result<void> Progress::check(const Ticket& ticket, const wire::Batch& batch) const {
  const Fingerprint plan = from_wire(*batch.fingerprint());
  Fingerprint due = ticket.rehearsal ? first_.plan : place_.next.plan;
  // A queue may be in an epoch whose data this side has not heard of.
  if (asked_.queue && ticket.epoch != known_epoch_) due.data = plan.data;
  const std::string what = describe_change({due, {}}, {plan, {}});
  if (batch.feed()->string_view() == asked_.feed && what.empty()) return {};
  const std::string why = what.empty()
                              ? fmt::format("it is of feed \"{}\"", batch.feed()->string_view())
                              : fmt::format("of its plan {}", what);
  return Error{ErrorCode::malformed_message,
               fmt::format("feed \"{}\": batch {} of epoch {} is not what was subscribed to: {}",
                           asked_.feed, ticket.index, ticket.epoch, why)};
}

Result<Progress::Verdict> Progress::check_rehearsal(const Ticket& ticket) {
  if (!rehearsals_.are_due() || ticket.epoch != first_.epoch) return not_due("a rehearsal");
  switch (rehearsals_.check(ticket.index)) {
    case Rehearsals::Verdict::fresh: return Verdict::hand_out;
    case Rehearsals::Verdict::repeated: return Verdict::pass;
    case Rehearsals::Verdict::astray: return not_due(fmt::format("rehearsal {}", ticket.index));
    case Rehearsals::Verdict::surplus: break;
  }
  return not_due("one more rehearsal");
}

Result<Progress::Verdict> Progress::check(const EpochEnded& ended) {
  const Position& next = place_.next;
  if (asked_.queue) return ended.epoch < next.epoch ? Verdict::pass : Verdict::hand_out;
  if (again_.end && ended.epoch == known_epoch_ && ended.steps == place_.steps) {
    again_.end = false;
    return Verdict::pass;
  }
  if (again_.end || ended.epoch != next.epoch || ended.steps != next.step || place_.taken != 0) {
    return not_due(fmt::format("the end of epoch {} after {} steps", ended.epoch, ended.steps));
  }
  return Verdict::hand_out;
}

Result<void> Progress::begin(const EpochBegan& began) {
  Fingerprint due = place_.next.plan;
  due.data = began.plan.data;  // a dataset may grow with an epoch; all else stays
  if (auto same = check_plan(due, {began.plan, {}}); !same) return same;
  if (asked_.queue) {
    if (began.epoch < queue_.told_epoch) return {};
    queue_.told_epoch = began.epoch;
  } else if (again_.end || began.epoch != place_.next.epoch || place_.taken != 0 ||
             place_.next.step != 0) {
    return not_due(fmt::format("the beginning of epoch {}", began.epoch));
  }
  known_epoch_ = began.epoch;
  take_up(began.plan, began.steps);
  return {};
}

void Progress::advance(const Ticket& ticket) {
  if (ticket.rehearsal) return rehearsals_.take(ticket.index);
  rehearsals_.end();
  const std::lock_guard lock(mutex_);
  if (asked_.queue) {
    place_.next.step = ticket.step;
    queue_.taken_of = ticket.epoch;
    return;
  }
  if (++place_.taken < share_.per_step) return;
  place_.taken = 0;
  ++place_.next.step;
}

bool Progress::advance(const EpochEnded& ended) {
  const std::lock_guard lock(mutex_);
  Position& next = place_.next;
  if (next.epoch == known_epoch_ && !is_behind()) place_.steps = ended.steps;
  ++next.epoch;
  next.step = 0;
  return ended.last || counted_out(next.epoch);
}

/// In queue mode the daemon counts from where the queue was when it was asked again.
bool Progress::counted_out(std::uint64_t next_epoch) const {
  if (!asked_.queue) return false;
  if (asked_.until_epoch != 0 && next_epoch >= asked_.until_epoch) return true;
  return asked_.epochs != 0 && next_epoch - first_.epoch >= asked_.epochs;
}

Position Progress::position() const {
  const std::lock_guard lock(mutex_);
  return place_.next;
}

std::uint64_t Progress::steps() const {
  const std::lock_guard lock(mutex_);
  return place_.steps;
}

std::uint64_t Progress::expected_index() const {
  return share_.index_at(place_.next.step, place_.taken) - again_.batches;
}

Error Progress::not_due(const std::string& what) const {
  const std::string due =
      again_.end ? fmt::format("the end of epoch {}", known_epoch_)
                 : fmt::format("batch {} of epoch {}", expected_index(), place_.next.epoch);
  return {ErrorCode::malformed_message,
          fmt::format("feed \"{}\": {} came where {} was due", asked_.feed, what, due)};
}

}  // namespace batchwright
