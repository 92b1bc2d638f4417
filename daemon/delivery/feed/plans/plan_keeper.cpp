#include "daemon/delivery/feed/plans/plan_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace batchwright {
namespace {

/// Memory for the plans that one feed's subscribers may need at the same time, and what a plan
/// takes of it for each sequence.
constexpr std::uint64_t kPlanBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPlanBytesPerSequence = 8;

}  // namespace

void PlanKeeper::begin(const PlannedEpoch& first) {
  const EpochSource& source = *first.source;
  seconds_ = first.seconds;
  last_stood_in_ = source.epoch;
  if (!contents_.decide(source.epoch, source.fingerprint.data)) return;
  contents_.planned(source.epoch);
  epochs_.planned(first);
}

/// 8 of the largest datasets, 64 at most.
std::size_t PlanKeeper::room_for(std::uint64_t sequences) {
  return std::clamp<std::uint64_t>(kPlanBytes / (sequences * kPlanBytesPerSequence), 8, 64);
}

PlanTurns::Choice PlanKeeper::next(const PlanNeeds& needs, std::size_t room, Time now) {
  if (planning_) return {};
  auto choice = turns_.choose(
      needs, epochs_.numbers(), room,
      [this, now](Epoch epoch) { return failures_.is_pausing(epoch, now); }, now);
  if (choice.drop) epochs_.forget(*choice.drop);
  planning_ = choice.plan.has_value();
  if (planning_) return choice;
  if (const auto again = failures_.next_try(needs.next, now)) {
    choice.look_again = std::min(*again, choice.look_again.value_or(Time::max()));
  }
  return choice;
}

bool PlanKeeper::misses_any(const PlanNeeds& needs) const {
  return !std::all_of(needs.next.begin(), needs.next.end(),
                      [this](Epoch epoch) { return has(epoch); });
}

bool PlanKeeper::is_outdated(Epoch epoch, std::optional<std::uint64_t> made) {
  const auto decided = contents_.find(epoch);
  if (!decided || decided == made) return false;
  planning_ = false;
  return true;
}

bool PlanKeeper::made(PlannedEpoch planned, Time now) {
  const Epoch epoch = planned.source->epoch;
  planning_ = false;
  seconds_ = planned.seconds;
  turns_.made(epoch,
              std::chrono::duration_cast<PlanTurns::Duration>(
                  std::chrono::duration<double>(planned.seconds)),
              now);
  contents_.planned(epoch);
  epochs_.planned(std::move(planned));
  return failures_.clear(epoch);
}

void PlanKeeper::failed(Epoch epoch, const Error& error, Time now) {
  planning_ = false;
  failures_.add(epoch, error, now);
}

void PlanKeeper::data_gone(Epoch epoch) {
  planning_ = false;
  contents_.forget(epoch);
}

std::string PlanKeeper::reason_to_wait(Epoch epoch, std::size_t epochs, std::size_t room) const {
  if (const Error* error = failures_.find(epoch)) {
    return fmt::format("epoch {}, which cannot be planned now and is tried again: {}", epoch.value,
                       error->message);
  }
  if (epochs <= room) return fmt::format("epoch {} is being planned", epoch.value);
  return fmt::format(
      "the turn of epoch {}: clients stand in {} epochs, and {} plans are kept at a time",
      epoch.value, epochs, room);
}

std::string PlanKeeper::trouble(const std::set<Epoch>& stood_in) const {
  for (const Epoch epoch : stood_in) {
    const Error* error = failures_.find(epoch);
    if (error == nullptr || error->code == ErrorCode::infeasible || has(epoch)) continue;
    return fmt::format("epoch {} cannot be planned now: {}", epoch.value, error->message);
  }
  return {};
}

void PlanKeeper::decide_anew(Epoch epoch, std::uint64_t data) {
  contents_.replace(epoch, data);
  epochs_.forget(epoch);
}

std::set<Epoch> PlanKeeper::keep(const PlanNeeds& needs) {
  if (!needs.stood_in.empty()) last_stood_in_ = *needs.stood_in.begin();
  std::set<Epoch> kept = needs.next;
  if (std::none_of(kept.begin(), kept.end(), [this](Epoch epoch) { return has(epoch); })) {
    const auto other = has(last_stood_in_) ? last_stood_in_ : epochs_.last();
    if (other) kept.insert(*other);
  }
  epochs_.keep(kept);
  return kept;
}

std::vector<Epoch> PlanKeeper::forget_data(const std::function<bool(Epoch)>& in_use) {
  return contents_.tidy([&](Epoch epoch) { return has(epoch) || in_use(epoch); });
}

}  // namespace batchwright
