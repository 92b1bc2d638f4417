// A subscription to several daemons.

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include "client/library/session/round_robin.h"
#include "client/library/session/subscription.h"

namespace batchwright {
namespace {

Error at(const Session& session, const Error& error) {
  return {error.code, fmt::format("server {}: {}", session.link().endpoint(), error.message)};
}

const bw_feed* find_feed(const Session& session, const std::string& name) {
  for (std::size_t i = 0; i < session.link().feeds().size(); ++i) {
    if (session.link().feeds().at(i).name == name) return &session.link().feeds().at(i);
  }
  return nullptr;
}

/// Batches of one subscription look alike, wherever they come from.
Result<void> check_alike(const Subscription::Sessions& sessions, const std::string& name) {
  const bw_feed* first = find_feed(*sessions.front(), name);
  if (first == nullptr) return {};  // that server says it better
  for (const auto& session : sessions) {
    const bw_feed* feed = find_feed(*session, name);
    const std::string differs = feed != nullptr ? difference(*first, *feed) : "";
    if (differs.empty()) continue;
    return Error{
        ErrorCode::schema_mismatch,
        fmt::format("feed \"{}\" differs between {} and {}: {}", name,
                    sessions.front()->link().endpoint(), session->link().endpoint(), differs)};
  }
  return {};
}

/// The terms of all servers as one text.
std::string joined(const std::vector<std::string>& terms) {
  std::string text;
  for (std::size_t server = 0; server < terms.size(); ++server) {
    for (const std::string_view line : split_lines(terms[server])) {
      text += fmt::format("server {} {}\n", server, line);
    }
  }
  return text;
}

/// What servers said of themselves, each in its turn.
struct Survey {
  std::vector<Fingerprint> plans;
  std::vector<std::string> terms;
  std::vector<std::uint64_t> steps;
};

/// How many steps each server has in the epoch asked for, and by which plan: its word at the
/// epoch's start.
Result<Survey> survey(const Subscription::Sessions& sessions, wire::SubscribeT request) {
  Survey seen;
  request.step = 0;
  request.epochs = 1;
  request.window = 1;
  request.worst_first = 0;
  for (const auto& session : sessions) {
    const auto one = session->subscribe(request);
    if (!one) return at(*session, one.error());
    seen.plans.push_back((*one)->grant().first.plan);
    seen.terms.push_back((*one)->expected().terms());
    seen.steps.push_back((*one)->grant().steps);
    session->unsubscribe(**one);
  }
  return seen;
}

Result<void> check_plan(const wire::SubscribeT& request, const Fingerprint& plan,
                        const std::string& terms) {
  if (!request.expects_fingerprint) return {};
  const Terms wanted{from_wire(*request.fingerprint), request.terms};
  const std::string changes = describe_change(wanted, {plan, terms});
  if (changes.empty()) return {};
  return Error{
      ErrorCode::fingerprint_mismatch,
      fmt::format("feed \"{}\": the servers' plans together are not those expected, or the "
                  "list of servers has changed: {}",
                  request.feed, changes)};
}

/// A subscription to several daemons, merged by turns.
///
/// Step k of a merged epoch is the next step of the next server, in the order of the list, that
/// still has steps in this epoch; the merged epoch ends when all have ended. So the order depends
/// on the servers' plans alone, never on their speed. A server that fails, fails the whole.
class MergedSubscription final : public Subscription {
 public:
  /// Errors: those of subscribe(). Called once, before all else.
  Result<void> subscribe_all(const Sessions& sessions, const wire::SubscribeT& request,
                             bool writable);
  ~MergedSubscription() override;

  Result<Session::Event> next(std::chrono::milliseconds limit) override;
  Result<Session::Upcoming> upcoming(std::uint32_t /*count*/,
                                     std::chrono::milliseconds /*limit*/) override {
    return Error{ErrorCode::unsupported,
                 "which batches come next is not known of several servers together: ask a "
                 "connection to each"};
  }
  bool forked() const override { return parts_.front().session->link().forked(); }
  const Grant& grant() const override { return grant_; }
  const std::string& terms() const override { return terms_; }
  Position position() const override;
  std::uint64_t steps() const override;

 private:
  /// One server's share.
  struct Part {
    std::shared_ptr<Session> session;
    std::shared_ptr<ClientSubscription> subscription;
    bool ended = false;  ///< This merged epoch.
  };
  void note_grant(std::uint64_t step);

  Result<Session::Event> next_in_turn(const Deadline& deadline);
  Result<std::unique_ptr<bw_batch>> meet_epoch(const Deadline& deadline);
  Result<std::unique_ptr<bw_batch>> next_of(Part& part, const Deadline& deadline);
  Session::Event end_epoch();
  Fingerprint plan() const;

  std::vector<Part> parts_;
  Grant grant_;
  std::string terms_;
  std::atomic<bool> busy_ = false;
  // Used only by the thread that is in next().
  std::size_t turn_ = 0;
  bool met_ = false;   ///< Every server has begun this epoch, and its rehearsals are over.
  bool last_ = false;  ///< This epoch is the last.
  bool over_ = false;

  mutable Mutex mutex_;
  Position position_ GUARDED_BY(mutex_);
  std::uint64_t steps_ GUARDED_BY(mutex_) = 0;
};

MergedSubscription::~MergedSubscription() {
  for (const Part& part : parts_) part.session->unsubscribe(*part.subscription);
}

Result<void> MergedSubscription::subscribe_all(const Sessions& sessions,
                                               const wire::SubscribeT& request, bool writable) {
  const std::uint64_t step = request.step;
  wire::SubscribeT open = request;
  open.expects_fingerprint = false;
  open.fingerprint.reset();
  open.terms.clear();
  Survey seen;
  RoundRobin turns{std::vector<std::uint64_t>(sessions.size()), 0};
  if (step != 0) {
    auto surveyed = survey(sessions, open);
    if (!surveyed) return surveyed.error();
    seen = std::move(*surveyed);
    if (auto same = check_plan(request, combined(seen.plans), joined(seen.terms)); !same) {
      return same;
    }
    auto found = round_robin_after(step, seen.steps);
    if (!found) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("step {} of feed \"{}\": the servers have {} in that epoch", step,
                               request.feed, total_steps(seen.steps))};
    }
    turns = std::move(*found);
  }
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    open.step = turns.done[i];
    open.expects_fingerprint = !seen.plans.empty();
    if (open.expects_fingerprint) {
      open.terms = seen.terms[i];
      open.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(seen.plans[i]));
    }
    auto one = sessions[i]->subscribe(open, writable);
    if (!one) return at(*sessions[i], one.error());
    parts_.push_back({sessions[i], std::move(*one)});
  }
  turn_ = turns.next;
  note_grant(step);
  return check_plan(request, grant_.first.plan, terms_);
}

void MergedSubscription::note_grant(std::uint64_t step) {
  grant_ = parts_.front().subscription->grant();
  grant_.first.plan = plan();
  grant_.first.step = step;
  grant_.steps = 0;
  grant_.window = 0;
  std::vector<std::string> terms;
  for (const Part& part : parts_) {
    terms.push_back(part.subscription->expected().terms());
    grant_.steps += part.subscription->grant().steps;
    grant_.window += part.subscription->grant().window;
  }
  terms_ = joined(terms);
  const MutexLock lock(mutex_);
  position_ = grant_.first;
  steps_ = grant_.steps;
}

Fingerprint MergedSubscription::plan() const {
  std::vector<Fingerprint> plans;
  for (const Part& part : parts_) plans.push_back(part.subscription->expected().position().plan);
  return combined(plans);
}

Result<Session::Event> MergedSubscription::next(std::chrono::milliseconds limit) {
  if (busy_.exchange(true, std::memory_order_acquire)) {
    return Error{ErrorCode::busy, "another thread is in bw_next on this subscription"};
  }
  const auto free = [](std::atomic<bool>* busy) { busy->store(false, std::memory_order_release); };
  const std::unique_ptr<std::atomic<bool>, decltype(free)> turn(&busy_, free);
  return next_in_turn(parts_.front().session->after(limit));
}

Result<Session::Event> MergedSubscription::next_in_turn(const Deadline& deadline) {
  while (!over_) {
    if (!met_) {
      auto rehearsal = meet_epoch(deadline);
      if (!rehearsal) return rehearsal.error();
      if (*rehearsal) return Session::Event{std::move(*rehearsal), std::nullopt};
    }
    if (std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.ended; })) {
      return end_epoch();
    }
    Part& part = parts_[turn_];
    if (part.ended) {
      turn_ = (turn_ + 1) % parts_.size();
      continue;
    }
    auto batch = next_of(part, deadline);
    if (!batch) return at(*part.session, batch.error());
    if (*batch) return Session::Event{std::move(*batch), std::nullopt};
  }
  return Session::Event{};
}

/// Sees what each server begins the epoch with. By then all have said by which plan, so that a
/// position is that of all; and rehearsals come before everything else.
Result<std::unique_ptr<bw_batch>> MergedSubscription::meet_epoch(const Deadline& deadline) {
  for (Part& part : parts_) {
    const auto coming = part.session->peek(*part.subscription, deadline);
    if (!coming) return at(*part.session, coming.error());
    if (*coming != Session::Coming::rehearsal) continue;
    auto event = part.session->next(part.subscription, deadline);
    if (!event) return at(*part.session, event.error());
    if (event->batch) event->batch->position = position();
    return std::move(event->batch);
  }
  met_ = true;
  std::uint64_t steps = 0;
  for (const Part& part : parts_) steps += part.subscription->expected().steps();
  const MutexLock lock(mutex_);
  position_.plan = plan();
  steps_ = steps;
  return std::unique_ptr<bw_batch>();
}

/// Empty when the server's epoch is over.
Result<std::unique_ptr<bw_batch>> MergedSubscription::next_of(Part& part,
                                                              const Deadline& deadline) {
  auto event = part.session->next(part.subscription, deadline);
  if (!event) return event.error();
  if (!event->batch) {
    part.ended = true;
    last_ = last_ || !event->ended || event->ended->last;
    return std::unique_ptr<bw_batch>();
  }
  const MutexLock lock(mutex_);
  if (!part.subscription->expected().within_step()) {
    ++position_.step;
    turn_ = (turn_ + 1) % parts_.size();
  }
  event->batch->position = position_;
  return std::move(event->batch);
}

Session::Event MergedSubscription::end_epoch() {
  over_ = last_;
  met_ = false;
  turn_ = 0;
  for (Part& part : parts_) part.ended = false;
  const MutexLock lock(mutex_);
  const EpochEnded ended{position_.epoch, position_.step, last_};
  ++position_.epoch;
  position_.step = 0;
  return {nullptr, ended};
}

Position MergedSubscription::position() const {
  const MutexLock lock(mutex_);
  return position_;
}

std::uint64_t MergedSubscription::steps() const {
  const MutexLock lock(mutex_);
  return steps_;
}

}  // namespace

Result<std::unique_ptr<Subscription>> Subscription::merge(const Sessions& sessions,
                                                          const wire::SubscribeT& request,
                                                          bool writable) {
  if (request.mode == wire::Mode::queue) {
    return Error{ErrorCode::invalid_argument,
                 "BW_QUEUE is for one endpoint: queues of several "
                 "servers have no order to be merged in"};
  }
  if (auto alike = check_alike(sessions, request.feed); !alike) return alike.error();
  auto made = std::make_unique<MergedSubscription>();
  if (auto all = made->subscribe_all(sessions, request, writable); !all) return all.error();
  return std::unique_ptr<Subscription>(std::move(made));
}

}  // namespace batchwright
