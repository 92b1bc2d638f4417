#include "daemon/assembly/fair_queue.h"

#include <algorithm>
#include <utility>

namespace batchwright {

void FairQueue::put(const std::string& feed, Urgency urgency, Work work, Time now) {
  advance(now);
  const auto floor = least_used();  // before the lane counts as active
  Lane& lane = lanes_[feed];
  if (!lane.is_active()) catch_up(lane, floor);
  lane.last_put = now;
  auto& jobs = urgency == Urgency::demanded ? lane.demanded : lane.ahead;
  jobs.push_back(std::move(work));
}

std::optional<FairQueue::Taken> FairQueue::take(Time now) {
  advance(now);
  const bool no_long_job = !leaves_a_thread(now);
  auto next = lanes_.end();
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (!lane->second.can_go_on() || (no_long_job && lane->second.is_long())) continue;
    // At the same place the feed whose name comes first: its job then moves it back.
    if (next == lanes_.end() || lane->second.place() < next->second.place()) next = lane;
  }
  if (next == lanes_.end()) return std::nullopt;
  Lane& lane = next->second;
  // Within a feed, what a client waits for is always first.
  auto& jobs = lane.demanded.empty() ? lane.ahead : lane.demanded;
  Taken taken{next->first, std::move(jobs.front())};
  jobs.pop_front();
  ++lane.running;
  ++running_;
  return taken;
}

void FairQueue::done(const std::string& feed, Time now) {
  advance(now);
  Lane& lane = lanes_.at(feed);
  --lane.running;
  --running_;
  // A mean in which each job counts half as much as the one behind it.
  lane.job = (lane.job + (lane.used - std::exchange(lane.used_at_done, lane.used))) / 2;
}

void FairQueue::lose(const std::string& feed, Time now) {
  advance(now);
  Lane& lane = lanes_.at(feed);
  --lane.running;
  --running_;
  ++lane.lost;
}

void FairQueue::find(const std::string& feed, Time now) {
  advance(now);
  const auto floor = least_used();
  Lane& lane = lanes_.at(feed);
  --lane.lost;
  lane.used_at_done = lane.used;  // what it took until it was lost says nothing of other jobs
  if (lane.running == 0) catch_up(lane, floor);
}

/// Its share stays with the feed, of which figures only grow.
void FairQueue::rename(const std::string& feed, const std::string& name, Time now) {
  advance(now);
  auto before = lanes_.extract(feed);
  if (before.empty()) return;
  Lane& lane = lanes_[feed];
  lane.used = lane.used_at_done = before.mapped().used;
  lane.share = std::exchange(before.mapped().share, {});
  before.key() = name;
  lanes_.insert(std::move(before));
}

/// No credit for the time without work: it would shut out the others until it is spent.
void FairQueue::catch_up(Lane& lane, std::chrono::nanoseconds floor) {
  if (lane.used >= floor) return;
  lane.used_at_done += floor - lane.used;  // no job took that time
  lane.used = floor;
}

/// Whether one more long job would leave a thread to those whose jobs are short.
bool FairQueue::leaves_a_thread(Time now) const {
  if (threads_ < 2) return true;
  unsigned long_ones = 0;
  bool short_one_at_work = false;
  for (const auto& [feed, lane] : lanes_) {
    if (feed.empty()) continue;  // work on slots, for the feed whose they are
    if (lane.is_long()) {
      long_ones += lane.running;
    } else {
      short_one_at_work =
          short_one_at_work || lane.is_active() || now - lane.last_put < Time::duration(kAtWork);
    }
  }
  return !short_one_at_work || long_ones + 1 < threads_;
}

bool FairQueue::empty() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [](const auto& lane) { return lane.second.can_go_on(); });
}

std::map<std::string, FeedShare> FairQueue::shares(Time now) {
  advance(now);
  std::map<std::string, FeedShare> shares;
  for (const auto& [feed, lane] : lanes_) shares.emplace(feed, lane.share);
  return shares;
}

/// Charges the time since the last step to the feeds that had threads, and to those that waited.
void FairQueue::advance(Time now) {
  const auto passed = std::max(now - std::exchange(last_, now), Time::duration(0));
  const double seconds = std::chrono::duration<double>(passed).count();
  if (running_ == 0) return;  // what waits is about to be taken
  for (auto& [feed, lane] : lanes_) {
    lane.used += passed * lane.running;
    lane.share.busy_seconds += seconds * lane.running;
    if (!lane.can_go_on()) continue;
    lane.share.waiting_seconds += seconds;
    for (const auto& [other, at_work] : lanes_) {
      if (at_work.running == 0) continue;
      // Each feed with threads is blamed by its share of them.
      lane.share.waited_for[other] += seconds * at_work.running / running_;
    }
  }
}

/// The least time used among feeds that have something to do; 0 when none has.
std::chrono::nanoseconds FairQueue::least_used() const {
  std::optional<std::chrono::nanoseconds> least;
  for (const auto& [feed, lane] : lanes_) {
    if (lane.is_active() && (!least || lane.used < *least)) least = lane.used;
  }
  return least.value_or(std::chrono::nanoseconds(0));
}

}  // namespace batchwright
