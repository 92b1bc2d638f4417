#include "daemon/delivery/feed/plans/plan_failures.h"

#include <algorithm>

namespace batchwright {

void PlanFailures::add(Epoch epoch, const Error& error, Time now) {
  const auto before = entries_.find(epoch);
  const auto pause =
      before == entries_.end() ? kFirstPause : std::min(2 * before->second.pause, kLongestPause);
  const bool for_good = error.code == ErrorCode::infeasible && !data_may_grow_;
  if (before == entries_.end() && entries_.size() >= kMost) entries_.clear();
  entries_.insert_or_assign(epoch, Entry{error, pause, for_good ? Time::max() : now + pause});
}

const Error* PlanFailures::find(Epoch epoch) const {
  const auto found = entries_.find(epoch);
  return found == entries_.end() ? nullptr : &found->second.error;
}

const Error* PlanFailures::refusal(Epoch epoch, Time now) const {
  if (!is_pausing(epoch, now)) return nullptr;
  const Error* error = find(epoch);
  return error->code == ErrorCode::infeasible ? error : nullptr;
}

bool PlanFailures::is_pausing(Epoch epoch, Time now) const {
  const auto found = entries_.find(epoch);
  return found != entries_.end() && now < found->second.again;
}

std::optional<PlanFailures::Time> PlanFailures::next_try(const std::set<Epoch>& epochs,
                                                         Time now) const {
  std::optional<Time> next;
  for (const Epoch epoch : epochs) {
    if (!is_pausing(epoch, now)) continue;
    const Time again = entries_.at(epoch).again;
    if (again != Time::max() && (!next || again < *next)) next = again;
  }
  return next;
}

}  // namespace batchwright
