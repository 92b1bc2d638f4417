#include "client/library/session/expected_position.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace batchwright {
namespace {

Terms terms_of(const wire::Subscribed& answer) {
  const auto* text = answer.terms();
  return {from_wire(*answer.fingerprint()),
          text != nullptr ? text->string_view() : std::string_view()};
}

}  // namespace

ExpectedPosition::ExpectedPosition(wire::SubscribeT request) : asked_(std::move(request)) {
  rehearsals_.due = asked_.worst_first != 0;
  if (asked_.expects_fingerprint) terms_ = asked_.terms;
}

/// The daemon compares too; but whatever it makes of that, a program never goes on with other data
/// than it asked for. At an epoch's start newer ones are as good, and a queue that has gone on is
/// in another epoch.
Result<void> ExpectedPosition::start(const wire::Subscribed& answer) {
  if (answer.fingerprint() == nullptr || answer.world() == 0 || answer.batches_per_step() == 0 ||
      answer.batches_per_step() > answer.world() || answer.window() == 0) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("feed \"{}\": an impossible Subscribed", asked_.feed)};
  }
  if (started_) return go_on(answer);
  const Terms granted = terms_of(answer);
  if (asked_.expects_fingerprint && asked_.fingerprint) {
    Fingerprint had = from_wire(*asked_.fingerprint);
    const bool elsewhere = is_queue() && answer.epoch() != asked_.epoch;
    if (asked_.step == 0 || elsewhere) had.data = granted.fingerprint.data;
    if (auto same = check_plan(had, granted, "has another plan than was asked for"); !same) {
      return same;
    }
  }
  started_ = true;
  const std::uint32_t rank = asked_.mode == wire::Mode::sharded ? asked_.rank : 0;
  share_ = {answer.world(), rank * answer.batches_per_step(), answer.batches_per_step()};
  known_epoch_ = queue_.told_epoch = answer.epoch();
  first_ = {granted.fingerprint, answer.epoch(), answer.step()};
  terms_ = granted.text;
  const MutexLock lock(mutex_);
  place_ = {first_, answer.steps(), share_.before_step(answer.step())};
  return {};
}

/// The daemon may be another, but its plan and the place reached in it must be the same. An epoch
/// of which nothing was handed out yet may be planned again, from a dataset that has grown. A queue
/// may also have gone on; or be in an epoch that has ended here, as the releases that end it came
/// when the daemon was gone.
Result<void> ExpectedPosition::go_on(const wire::Subscribed& answer) {
  const Terms granted = terms_of(answer);
  const bool begun = has_begun(answer);
  Fingerprint had = here().next.plan;
  if (!begun) had.data = granted.fingerprint.data;
  if (auto same = check_plan(had, granted, "came back with another plan"); !same) return same;
  if (answer.world() != share_.world || answer.batches_per_step() != share_.count) {
    return not_due(fmt::format("a world of {}", answer.world()));
  }
  if (is_queue()) {
    queue_.told_epoch = std::max(queue_.told_epoch, answer.epoch());
    if (answer.epoch() < known_epoch_) return {};
    known_epoch_ = answer.epoch();
    take_up(granted.fingerprint, answer.steps());
    return {};
  }
  const Position due = resumption();
  if (answer.epoch() != due.epoch || answer.step() != due.step) {
    return not_due(fmt::format("step {} of epoch {}", answer.step(), answer.epoch()));
  }
  if (begun) return {};
  if (here().next.epoch == first_.epoch) first_.plan = granted.fingerprint;
  known_epoch_ = here().next.epoch;
  take_up(granted.fingerprint, answer.steps());
  return {};
}

/// Whether anything was handed out of the epoch that a new daemon goes on with.
bool ExpectedPosition::has_begun(const wire::Subscribed& answer) const {
  if (is_queue()) return answer.epoch() == known_epoch_ && queue_.taken_of == known_epoch_;
  return again_.end || here().taken != 0 || !rehearsals_.taken.empty();
}

void ExpectedPosition::take_up(const Fingerprint& plan, std::uint64_t steps) {
  const MutexLock lock(mutex_);
  place_.next.plan = plan;
  place_.steps = steps;
}

Result<void> ExpectedPosition::check_plan(const Fingerprint& had, const Terms& found,
                                          const char* whose) const {
  const std::string changes = describe_change({had, terms_}, found);
  if (changes.empty()) return {};
  return Error{ErrorCode::fingerprint_mismatch,
               fmt::format("feed \"{}\": the daemon {}: {}", asked_.feed, whose, changes)};
}

wire::SubscribeT ExpectedPosition::resume() {
  wire::SubscribeT request = asked_;
  if (!started_ || is_queue()) return request;
  again_ = {share_.taken_of_step(here().taken), here().next.epoch != known_epoch_};
  rehearsals_.repeated = 0;
  const Position due = resumption();
  request.epoch = due.epoch;
  request.step = due.step;
  if (asked_.epochs != 0) request.epochs = asked_.epochs - (due.epoch - first_.epoch);
  if (!rehearsals_.due) request.worst_first = 0;
  request.expects_fingerprint = true;
  request.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(due.plan));
  request.terms = terms_;
  return request;
}

Position ExpectedPosition::resumption() const {
  if (!again_.end) return here().next;
  return {here().next.plan, known_epoch_, here().steps};
}

Result<ExpectedPosition::Verdict> ExpectedPosition::check(const Ticket& ticket) {
  if (ticket.rehearsal) return check_rehearsal(ticket);
  if (is_queue()) return Verdict::hand_out;
  if (again_.end || ticket.epoch != here().next.epoch || ticket.step != here().next.step ||
      ticket.index != expected_index().value) {
    return not_due(fmt::format("batch {} of epoch {}", ticket.index, ticket.epoch));
  }
  known_epoch_ = here().next.epoch;  // begun without a word: it has the last one's plan
  if (again_.batches == 0) return Verdict::hand_out;
  --again_.batches;
  return Verdict::pass;
}

Result<void> ExpectedPosition::check(const Ticket& ticket, const wire::Batch& batch) const {
  const Fingerprint plan = from_wire(*batch.fingerprint());
  Fingerprint due = ticket.rehearsal ? first_.plan : here().next.plan;
  // A queue may be in an epoch whose data this side has not heard of.
  if (is_queue() && ticket.epoch != known_epoch_) due.data = plan.data;
  const std::string what = describe_change({due, {}}, {plan, {}});
  if (batch.feed()->string_view() == asked_.feed && what.empty()) return {};
  const std::string why = what.empty()
                              ? fmt::format("it is of feed \"{}\"", batch.feed()->string_view())
                              : fmt::format("of its plan {}", what);
  return Error{ErrorCode::malformed_message,
               fmt::format("feed \"{}\": batch {} of epoch {} is not what was subscribed to: {}",
                           asked_.feed, ticket.index, ticket.epoch, why)};
}

/// Those that were handed out come again in their order, and then the rest, each once.
Result<ExpectedPosition::Verdict> ExpectedPosition::check_rehearsal(const Ticket& ticket) {
  Rehearsals& all = rehearsals_;
  if (!all.due || ticket.epoch != first_.epoch) return not_due("a rehearsal");
  if (all.repeated < all.taken.size()) {
    if (all.taken[all.repeated++] == ticket.index) return Verdict::pass;
    return not_due(fmt::format("rehearsal {}", ticket.index));
  }
  const bool is_twice =
      std::find(all.taken.begin(), all.taken.end(), ticket.index) != all.taken.end();
  if (is_twice || all.taken.size() >= asked_.worst_first) return not_due("one more rehearsal");
  return Verdict::hand_out;
}

Result<ExpectedPosition::Verdict> ExpectedPosition::check(const EpochEnded& ended) {
  const Position& next = here().next;
  if (is_queue()) return ended.epoch < next.epoch ? Verdict::pass : Verdict::hand_out;
  if (again_.end && ended.epoch == known_epoch_ && ended.steps == here().steps) {
    again_.end = false;
    return Verdict::pass;
  }
  if (again_.end || ended.epoch != next.epoch || ended.steps != next.step || within_step()) {
    return not_due(fmt::format("the end of epoch {} after {} steps", ended.epoch, ended.steps));
  }
  return Verdict::hand_out;
}

Result<void> ExpectedPosition::begin(const EpochBegan& began) {
  Fingerprint due = here().next.plan;
  due.data = began.plan.data;  // a dataset may grow with an epoch; all else stays
  const Terms found{began.plan, {}};
  if (auto same = check_plan(due, found, "came back with another plan"); !same) return same;
  if (is_queue()) {
    if (began.epoch < queue_.told_epoch) return {};
    queue_.told_epoch = began.epoch;
  } else if (again_.end || began.epoch != here().next.epoch || here().taken != 0) {
    return not_due(fmt::format("the beginning of epoch {}", began.epoch));
  }
  known_epoch_ = began.epoch;
  take_up(began.plan, began.steps);
  return {};
}

void ExpectedPosition::advance(const Ticket& ticket) {
  if (ticket.rehearsal) {
    rehearsals_.taken.push_back(ticket.index);
    rehearsals_.repeated = rehearsals_.taken.size();
    return;
  }
  rehearsals_.due = false;
  const MutexLock lock(mutex_);
  if (is_queue()) {
    place_.next.step = ticket.step;
    queue_.taken_of = ticket.epoch;
    return;
  }
  place_.next.step = share_.step_after(++place_.taken);
}

/// In queue mode the daemon counts from where the queue was when it was asked again.
bool ExpectedPosition::advance(const EpochEnded& ended) {
  const MutexLock lock(mutex_);
  Position& next = place_.next;
  if (next.epoch == known_epoch_ && !is_behind()) place_.steps = ended.steps;
  ++next.epoch;
  next.step = 0;
  place_.taken = 0;
  if (ended.last || !is_queue()) return ended.last;
  return (asked_.until_epoch != 0 && next.epoch >= asked_.until_epoch) ||
         (asked_.epochs != 0 && next.epoch - first_.epoch >= asked_.epochs);
}

Position ExpectedPosition::position() const {
  const MutexLock lock(mutex_);
  return place_.next;
}

std::uint64_t ExpectedPosition::steps() const {
  const MutexLock lock(mutex_);
  return place_.steps;
}

Error ExpectedPosition::not_due(const std::string& what) const {
  const std::string due =
      again_.end ? fmt::format("the end of epoch {}", known_epoch_)
                 : fmt::format("batch {} of epoch {}", expected_index().value, here().next.epoch);
  return {ErrorCode::malformed_message,
          fmt::format("feed \"{}\": {} came where {} was due", asked_.feed, what, due)};
}

}  // namespace batchwright
