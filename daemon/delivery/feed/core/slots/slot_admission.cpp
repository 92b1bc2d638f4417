#include "daemon/delivery/feed/core/slots/slot_admission.h"

#include <algorithm>

namespace batchwright {
namespace {

void add(std::size_t& figure, bool in, std::size_t by = 1) { in ? figure += by : figure -= by; }

/// Whether batches it holds beyond one may wait for other subscriptions.
bool is_tied(const AdmissionState& one) { return one.job.ranks > 1 && !one.remote; }

std::size_t reserve_of(const AdmissionState& one) {
  return is_tied(one) && one.holds > 1 ? one.holds - 1 : 0;
}

}  // namespace

/// Several jobs with the same numbers are counted together, so what is missing is missing of the
/// last one.
std::size_t SlotAdmission::Group::absent() const {
  return expected == 0 ? 0 : (expected - members % expected) % expected;
}

void SlotAdmission::change(const SubscriptionKey& key, const AdmissionState* before,
                           const AdmissionState* now) {
  if (before != nullptr) count(key, *before, false);
  if (now != nullptr) count(key, *now, true);
  if (now == nullptr) {
    std::erase_if(jobs_, [](const auto& entry) {
      return entry.second.members == 0 && entry.second.remote == 0;
    });
  }
  ++loosened_;
}

void SlotAdmission::set_aside(std::size_t slots) {
  aside_ = slots;
  ++loosened_;
}

void SlotAdmission::stop_expecting() {
  for (auto& [job, group] : jobs_) {
    if (job.ranks_here != 0) continue;
    to_come_ -= group.absent();
    group.expected = 0;
  }
  ++loosened_;
}

bool SlotAdmission::expects_unknown() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.first.ranks_here == 0 && entry.second.absent() != 0;
  });
}

void SlotAdmission::count(const SubscriptionKey& key, const AdmissionState& one, bool in) {
  if (one.job.ranks > 1) count_in_job(one, in);
  count_want(key, one, in);
  if (one.remote || (one.holds == 0 && one.over)) return;
  add(entitled_, in);
  if (one.job.ranks <= 1) add(loners_, in);
  add(reserves_, in, reserve_of(one));
  if (!one.served) add(fresh_, in);
  if (one.holds != 0 && !one.releases_first) add(keepers_, in);
}

/// An empty-handed subscription of a queue counts by itself: a batch's number stands for it.
void SlotAdmission::count_want(const SubscriptionKey& key, const AdmissionState& one, bool in) {
  if (!one.wants) return;
  Wanting& wanting = wanted_[*one.wants];
  const auto figure = [&](std::size_t& of_batch, std::size_t& ids) {
    if (one.takes_any) return add(ids, in);
    const std::size_t before = of_batch;
    add(of_batch, in);
    if (in ? before == 0 : of_batch == 0) add(ids, in);
  };
  if (one.holds == 0) {
    one.served ? figure(wanting.returning, returning_ids_)
               : figure(wanting.newcomers, newcomer_ids_);
  } else if (one.holds == 1 && one.spoke && !one.remote) {
    figure(wanting.last_in_hand, last_ids_);
  }
  if (in) {
    wanting.all.insert(key);
  } else {
    wanting.all.erase(key);
    if (wanting.all.empty()) wanted_.erase(*one.wants);
  }
}

/// A job is expected to be complete on this host if it said how many of its ranks are here,
/// otherwise until one of its ranks has given back more batches than a window: so many steps the
/// others can do with what they hold from a daemon before this one.
void SlotAdmission::count_in_job(const AdmissionState& one, bool in) {
  const auto [found, is_new] = jobs_.try_emplace(one.job);
  Group& group = found->second;
  if (is_new) group.expected = one.job.ranks_here != 0 ? one.job.ranks_here : one.job.ranks;
  to_come_ -= group.absent();
  add(one.remote ? group.remote : group.members, in);
  if (in && one.job.ranks_here == 0 && one.shows_job) group.expected = 0;
  if (!one.remote) {
    if (!one.served && one.wants) add(group.unserved, in);
    add(group.reserves, in, reserve_of(one));
  }
  to_come_ += group.absent();
}

bool SlotAdmission::may_take(const AdmissionState& one, std::size_t held, bool is_held) const {
  const std::size_t left = slots_ - std::min(held, slots_);
  if (one.remote && (one.holds == 0 || one.asks)) return is_held || left > 0;
  if (one.holds == 0 && !one.served) return newcomer_may_take(one, held, is_held);
  if (one.holds == 0 || one.asks) return is_held || left > 0;
  return (one.spoke || one.remote) && may_reserve(one, left + (is_held ? 1 : 0));
}

/// A newcomer leaves a slot for each earlier subscription that holds nothing at the moment, and one
/// that goes round among those that wait with a batch in hand.
bool SlotAdmission::newcomer_may_take(const AdmissionState& one, std::size_t held,
                                      bool is_held) const {
  if (held == 0) return true;
  const std::size_t left = slots_ - std::min(held, slots_) + (is_held ? 1 : 0);
  const auto job = jobs_.find(one.job);
  if (job != jobs_.end() && job->second.reserves != 0) return left > 0;
  const bool fits = reserves_ == 0 || usable() > reserves_ + entitled_ - fresh_ + to_come_ + 1;
  return fits && left > returning_ids_ + (keepers_ != 0 ? 1 : 0);
}

/// A batch that no client waits for may be given in reserve while slots are left for all that wait
/// or come, one that goes round, and one for a newcomer; a second in reserve once each has a first.
/// Ranks of a job may be left with their reserve when the job waits for another rank, and so never
/// take what that one will need.
bool SlotAdmission::may_reserve(const AdmissionState& one, std::size_t left) const {
  if (is_tied(one)) {
    const Group& group = jobs_.at(one.job);
    if (group.unserved != 0 || group.absent() != 0) return false;
    if (usable() <= reserves_ + entitled_ + to_come_ + 1) return false;
  }
  const std::size_t firsts = one.holds > 1 ? last_ids_ : 0;
  return left > newcomer_ids_ + returning_ids_ + to_come_ + firsts + 2;
}

std::size_t SlotAdmission::absent(const Job& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second.absent();
}

std::size_t SlotAdmission::slots_needed_for(const Job& job, std::size_t ranks) const {
  return ranks_beside(job) + loners() + std::max<std::size_t>(ranks, job.ranks_here) + 1;
}

std::size_t SlotAdmission::slots_needed_beside_jobs() const {
  const std::size_t ranks = ranks_beside({});
  return ranks == 0 ? 0 : ranks + loners() + 2;
}

/// Ranks of all other jobs that are here or still to come.
std::size_t SlotAdmission::ranks_beside(const Job& job) const {
  std::size_t ranks = 0;
  for (const auto& [other, group] : jobs_) {
    if (other == job || group.members == 0) continue;
    ranks += std::max<std::size_t>(group.members, other.ranks_here);
  }
  return ranks;
}

}  // namespace batchwright
