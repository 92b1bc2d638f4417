#include "daemon/delivery/feed/plans/plan_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace batchwright {
namespace {

/// Memory for the plans that one feed's subscribers may need at the same time, and what a plan
/// takes of it for each sequence.
constexpr std::uint64_t kPlanBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPlanBytesPerSequence = 8;
/// Turns by which one may be longer.
constexpr std::uint64_t kMostLonger = 64;

/// The smallest of the numbers that an epoch's sessions have; 0: there is none, or one without.
std::uint64_t least_of(const std::map<SessionId, std::uint64_t>& numbers, const PlanNeeds& needs,
                       Epoch epoch) {
  const auto sessions = needs.sessions.find(epoch);
  if (sessions == needs.sessions.end()) return 0;
  std::uint64_t least = UINT64_MAX;
  for (const SessionId session : sessions->second) {
    const auto found = numbers.find(session);
    least = std::min(least, found == numbers.end() ? 0 : found->second);
  }
  return least;
}

}  // namespace

void PlanStore::begin(const PlannedEpoch& first) {
  const EpochOutline outline = first.outline();
  seconds_ = first.seconds;
  last_stood_in_ = outline.epoch;
  if (!decide(outline.epoch, outline.fingerprint.data)) return;
  add(first, 0, {}, {});
}

void PlanStore::add(PlannedEpoch epoch, std::uint64_t order, Time ends, Duration turn) {
  const EpochOutline outline = epoch.outline();
  const Epoch number = outline.epoch;
  if (const auto decided = decided_.find(number); decided != decided_.end()) {
    decided->second.planned = true;
  }
  Plan plan{std::move(epoch), std::vector<bool>(outline.batches), {}, order, ends, turn};
  planned_.insert_or_assign(number, std::move(plan));
}

/// 8 of the largest datasets, 64 at most.
std::size_t PlanStore::most_of(std::uint64_t sequences) {
  return std::clamp<std::uint64_t>(
      kPlanBytes / (std::max<std::uint64_t>(sequences, 1) * kPlanBytesPerSequence), 8, 64);
}

const PlannedEpoch* PlanStore::find(Epoch epoch) const {
  const auto found = planned_.find(epoch);
  return found == planned_.end() ? nullptr : &found->second.epoch;
}

std::uint64_t PlanStore::steps(Epoch epoch) const {
  const PlannedEpoch* const planned = find(epoch);
  return planned == nullptr ? 0 : planned->outline().steps();
}

std::set<Epoch> PlanStore::numbers() const {
  std::set<Epoch> numbers;
  for (const auto& [number, plan] : planned_) numbers.insert(number);
  return numbers;
}

std::vector<PlannedEpoch> PlanStore::all() const {
  std::vector<PlannedEpoch> epochs;
  for (const auto& [number, plan] : planned_) epochs.push_back(plan.epoch);
  return epochs;
}

PlanStore::Choice PlanStore::next(const PlanNeeds& needs, std::size_t most, Time now) {
  if (planning_) return {};
  note(needs, now);
  Choice choice = choose(needs, most, now);
  if (choice.plan) {
    if (choice.evict) planned_.erase(*choice.evict);
    planning_ = true;
    ++clock_;
    const auto sessions = needs.sessions.find(*choice.plan);
    if (sessions == needs.sessions.end()) return choice;
    for (const SessionId session : sessions->second) served_[session] = clock_;
    return choice;
  }
  for (const Epoch epoch : needs.next) {
    const Failure* const failure = pausing(epoch, now);
    if (failure == nullptr || failure->again == Time::max()) continue;
    choice.look_again = std::min(failure->again, choice.look_again.value_or(Time::max()));
  }
  return choice;
}

/// Which plans are missing, for which sessions, and which turns begin.
void PlanStore::note(const PlanNeeds& needs, Time now) {
  std::erase_if(missing_, [&](const auto& entry) {
    return has(entry.first) || !needs.stood_in.contains(entry.first);
  });
  for (const Epoch epoch : needs.stood_in) {
    if (!has(epoch) && !missing_.contains(epoch)) missing_.emplace(epoch, ++clock_);
  }
  for (auto& [epoch, plan] : planned_) {
    if (plan.order != 0) continue;
    plan.order = ++clock_;
    plan.turn = kLeastTurn;
    plan.turn_ends = now + kLeastTurn;
  }
  std::set<SessionId> here;
  for (const auto& [epoch, sessions] : needs.sessions) {
    here.insert(sessions.begin(), sessions.end());
  }
  std::erase_if(served_, [&](const auto& entry) { return !here.contains(entry.first); });
}

/// Of an epoch in which a batch could be taken now, or else of one in which a subscription stands,
/// or else of the next.
PlanStore::Choice PlanStore::choose(const PlanNeeds& needs, std::size_t most, Time now) const {
  const bool is_full = planned_.size() >= most;
  for (const auto* epochs : {&needs.now, &needs.stood_in}) {
    const auto missing = next_missing(needs, *epochs, now);
    if (missing) return is_full ? choose_instead(*missing, needs, now) : Choice{{}, missing, {}};
  }
  for (const Epoch epoch : needs.next) {
    if (!is_full && !has(epoch) && pausing(epoch, now) == nullptr) return {{}, epoch, {}};
  }
  return {};
}

std::optional<Epoch> PlanStore::next_missing(const PlanNeeds& needs, const std::set<Epoch>& epochs,
                                             Time now) const {
  using Rank = std::tuple<std::uint64_t, bool, std::uint64_t>;
  std::optional<Epoch> next;
  Rank best;
  for (const auto& [epoch, order] : missing_) {
    if (!epochs.contains(epoch) || pausing(epoch, now) != nullptr) continue;
    const Rank rank{least_of(served_, needs, epoch), !needs.read.contains(epoch), order};
    if (next && best < rank) continue;
    next = epoch;
    best = rank;
  }
  return next;
}

/// Evicts first a plan of an epoch without subscriptions, the latest of them; then, for an epoch
/// in which a batch could be taken, one in which none can; then the oldest of those whose turn is
/// over.
PlanStore::Choice PlanStore::choose_instead(Epoch wanted, const PlanNeeds& needs, Time now) const {
  for (auto plan = planned_.rbegin(); plan != planned_.rend(); ++plan) {
    if (!needs.stood_in.contains(plan->first)) return {plan->first, wanted, {}};
  }
  if (!needs.now.contains(wanted)) return {};
  BySession plans;
  for (const auto& [epoch, plan] : planned_) {
    if (!needs.now.contains(epoch)) return {epoch, wanted, {}};
    const auto sessions = needs.sessions.find(epoch);
    if (sessions == needs.sessions.end()) continue;
    for (const SessionId session : sessions->second) ++plans[session];
  }
  const std::uint64_t wanting = least_of(plans, needs, wanted);
  std::optional<Epoch> oldest;
  std::optional<Time> first_end;
  for (const auto& [epoch, plan] : planned_) {
    const std::uint64_t having = least_of(plans, needs, epoch);
    const std::uint64_t longer = std::min(wanting - std::min(wanting, having), kMostLonger);
    const Time end = plan.turn_ends + static_cast<Duration::rep>(longer) * plan.turn;
    first_end = std::min(end, first_end.value_or(end));
    if (end <= now && (!oldest || plan.order < planned_.at(*oldest).order)) oldest = epoch;
  }
  if (!oldest) return {{}, {}, first_end};
  return {oldest, wanted, {}};
}

bool PlanStore::misses_any(const PlanNeeds& needs) const {
  return !std::all_of(needs.next.begin(), needs.next.end(),
                      [this](Epoch epoch) { return has(epoch); });
}

bool PlanStore::made(PlannedEpoch planned, Time now) {
  const Epoch epoch = planned.outline().epoch;
  planning_ = false;
  seconds_ = planned.seconds;
  const auto took =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(planned.seconds));
  const auto turn = std::max<Duration>(kLeastTurn, 4 * took);
  add(std::move(planned), ++clock_, now + turn, turn);
  return failures_.erase(epoch) > 0;
}

/// Each time in a row an epoch fails the pause is twice as long.
void PlanStore::failed(Epoch epoch, const Error& error, Time now) {
  planning_ = false;
  const auto before = failures_.find(epoch);
  const auto pause =
      before == failures_.end() ? kFirstPause : std::min(2 * before->second.pause, kLongestPause);
  const bool for_good = error.code == ErrorCode::infeasible && !data_may_grow_;
  if (before == failures_.end() && failures_.size() >= kMostFailures) failures_.clear();
  failures_.insert_or_assign(epoch, Failure{error, pause, for_good ? Time::max() : now + pause});
}

void PlanStore::data_gone(Epoch epoch) {
  planning_ = false;
  decided_.erase(epoch);
}

/// Null when the epoch may be tried.
const PlanStore::Failure* PlanStore::pausing(Epoch epoch, Time now) const {
  const auto found = failures_.find(epoch);
  return found != failures_.end() && now < found->second.again ? &found->second : nullptr;
}

const Error* PlanStore::refusal(Epoch epoch, Time now) const {
  const Failure* const failure = pausing(epoch, now);
  if (failure == nullptr || failure->error.code != ErrorCode::infeasible) return nullptr;
  return &failure->error;
}

std::string PlanStore::reason_to_wait(Epoch epoch, std::size_t epochs, std::size_t most) const {
  if (const auto failure = failures_.find(epoch); failure != failures_.end()) {
    return fmt::format("epoch {}, which cannot be planned now and is tried again: {}", epoch.value,
                       failure->second.error.message);
  }
  if (epochs <= most) return fmt::format("epoch {} is being planned", epoch.value);
  return fmt::format(
      "the turn of epoch {}: clients stand in {} epochs, and {} plans are kept at a time",
      epoch.value, epochs, most);
}

std::string PlanStore::trouble(const std::set<Epoch>& stood_in) const {
  for (const Epoch epoch : stood_in) {
    const auto found = failures_.find(epoch);
    if (found == failures_.end() || has(epoch)) continue;
    const Error& error = found->second.error;
    if (error.code == ErrorCode::infeasible) continue;
    return fmt::format("epoch {} cannot be planned now: {}", epoch.value, error.message);
  }
  return {};
}

std::optional<std::uint64_t> PlanStore::data_of(Epoch epoch) const {
  const auto found = decided_.find(epoch);
  return found == decided_.end() ? std::nullopt : std::optional(found->second.data);
}

bool PlanStore::is_outdated(Epoch epoch, std::optional<std::uint64_t> data) const {
  const auto decided = data_of(epoch);
  return decided && decided != data;
}

bool PlanStore::decide(Epoch epoch, std::uint64_t data) {
  Decided& decided = decided_.try_emplace(epoch, Decided{data, false, 0}).first->second;
  decided.used = ++clock_;
  return decided.data == data;
}

void PlanStore::decide_again(Epoch epoch, std::uint64_t data) {
  decided_[epoch] = {data, false, ++clock_};
  planned_.erase(epoch);
}

std::set<Epoch> PlanStore::keep(const PlanNeeds& needs, std::vector<PlannedEpoch>& evicted) {
  if (!needs.stood_in.empty()) last_stood_in_ = *needs.stood_in.begin();
  std::set<Epoch> kept = needs.next;
  const bool has_any =
      std::any_of(kept.begin(), kept.end(), [this](Epoch epoch) { return has(epoch); });
  if (!has_any && !planned_.empty()) {
    kept.insert(has(last_stood_in_) ? last_stood_in_ : planned_.rbegin()->first);
  }
  for (auto plan = planned_.begin(); plan != planned_.end();) {
    if (kept.contains(plan->first)) {
      ++plan;
      continue;
    }
    evicted.push_back(std::move(plan->second.epoch));
    plan = planned_.erase(plan);
  }
  return kept;
}

std::vector<Epoch> PlanStore::forget_data(const std::function<bool(Epoch)>& in_use) {
  std::vector<Epoch> forgotten;
  std::vector<std::pair<std::uint64_t, Epoch>> idle;
  for (const auto& [epoch, decided] : decided_) {
    if (decided.planned && decided_.size() <= kMostIdle) continue;
    if (has(epoch) || in_use(epoch)) continue;
    if (decided.planned) {
      idle.emplace_back(decided.used, epoch);
    } else {
      forgotten.push_back(epoch);
    }
  }
  if (idle.size() > kMostIdle) {
    std::sort(idle.begin(), idle.end());
    idle.resize(idle.size() - kMostIdle);
    for (const auto& [used, epoch] : idle) forgotten.push_back(epoch);
  }
  for (const Epoch epoch : forgotten) decided_.erase(epoch);
  return forgotten;
}

bool PlanStore::mark_assembled(const BatchId& id) {
  const auto found = planned_.find(id.epoch);
  if (found == planned_.end()) return false;
  std::vector<bool>& assembled = found->second.assembled;
  if (id.index.value >= assembled.size()) assembled.resize(id.index.value + 1);  // it has grown
  const bool before = assembled[id.index.value];
  assembled[id.index.value] = true;
  return before;
}

std::uint64_t PlanStore::mark_lost(Epoch epoch, Ordinal ordinal) {
  const auto found = planned_.find(epoch);
  if (found == planned_.end()) return 0;
  found->second.lost.insert(ordinal);
  return found->second.lost.size();
}

std::uint64_t losses_allowed(double share, std::uint64_t sequences) {
  if (share == 0.0) return 0;
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(share * static_cast<double>(sequences)));
}

}  // namespace batchwright
