#include "daemon/live/trainers.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {

std::optional<std::uint64_t> Trainers::take(const LiveTake& take, std::uint64_t event) {
  started_ = true;
  if (take.trainer >= trainers_.size()) trainers_.resize(std::size_t{take.trainer} + 1);
  Trainer& trainer = trainers_[take.trainer];
  // Before the first step of a pool that goes on, it is one that had steps of the pool before.
  if (!trainer.known) trainer = {true, steps_ == resumed_ ? 0 : steps_, steps_};
  if (take.step && *take.step < trainer.position) return std::nullopt;
  if (trainer.position < steps_) return trainer.position++;
  const auto known = std::ranges::find(waiting_, take.trainer, &Take::trainer);
  if (known == waiting_.end()) {
    waiting_.push_back({take.trainer, event, take.prefetch});
  } else {
    loops_ -= known->prefetch ? 0 : 1;
    *known = {take.trainer, event, take.prefetch};
  }
  if (!take.prefetch) {
    ++loops_;
    // The loop has finished all that it got.
    while (!ahead_.empty() && ahead_.back().second >= trainer.joined) {
      const std::uint64_t first = std::max(ahead_.back().first, trainer.joined);
      ahead_count_ -= ahead_.back().second - first + 1;
      if (first == ahead_.back().first) {
        ahead_.pop_back();
      } else {
        ahead_.back().second = first - 1;
      }
    }
  }
  return std::nullopt;
}

std::vector<std::uint64_t> Trainers::end() {
  std::vector<std::uint64_t> events;
  for (const Take& take : waiting_) events.push_back(take.event);
  waiting_.clear();
  loops_ = 0;
  return events;
}

std::vector<std::uint64_t> Trainers::add_step(std::vector<SequenceId> sequences) {
  const std::uint64_t step = steps_++;
  if (!ahead_.empty() && ahead_.back().second + 1 == step) {
    ahead_.back().second = step;
  } else {
    ahead_.emplace_back(step, step);
  }
  ++ahead_count_;
  OpenStep& open = open_[step];
  open.sequences = std::move(sequences);
  for (TrainerId id = 0; id < trainers_.size(); ++id) {
    if (trainers_[id].known) open.holders.push_back(id);
  }
  for (const Take& take : waiting_) {
    must(trainers_[take.trainer].position == step, "who waits does so for the next step");
    ++trainers_[take.trainer].position;
  }
  return end();
}

void Trainers::resume(std::uint64_t steps, std::uint64_t first_ahead) {
  steps_ = resumed_ = steps;
  if (first_ahead >= steps) return;
  ahead_.emplace_back(first_ahead, steps - 1);
  ahead_count_ = steps - first_ahead;
}

void Trainers::keep(std::uint64_t step, std::vector<SequenceId> sequences, TrainerId holder) {
  if (holder >= trainers_.size()) trainers_.resize(std::size_t{holder} + 1);
  trainers_[holder].position = steps_;
  open_[step] = {{holder}, std::move(sequences)};
}

std::vector<SequenceId> Trainers::release(const LiveRelease& release) {
  const auto open = open_.find(release.step);
  if (open == open_.end()) return {};
  auto& holders = open->second.holders;
  const auto holder = std::ranges::find(holders, release.trainer);
  if (holder == holders.end() || trainers_[*holder].position <= release.step) return {};
  holders.erase(holder);
  if (!holders.empty()) return {};
  auto sequences = std::move(open->second.sequences);
  open_.erase(open);
  return sequences;
}

std::vector<SequenceId> Trainers::leave(TrainerId trainer) {
  if (trainer >= trainers_.size()) return {};
  trainers_[trainer] = {};
  const auto take = std::ranges::find(waiting_, trainer, &Take::trainer);
  if (take != waiting_.end()) {
    loops_ -= take->prefetch ? 0 : 1;
    waiting_.erase(take);
  }
  std::vector<SequenceId> sequences;
  for (auto step = open_.begin(); step != open_.end();) {
    std::erase(step->second.holders, trainer);
    if (!step->second.holders.empty()) {
      ++step;
      continue;
    }
    const auto& released = step->second.sequences;
    sequences.insert(sequences.end(), released.begin(), released.end());
    step = open_.erase(step);
  }
  return sequences;
}

void Trainers::trained(std::uint64_t count) {
  while (count > 0 && !ahead_.empty()) {
    auto& [first, last] = ahead_.front();
    const std::uint64_t some = std::min(count, last - first + 1);
    count -= some;
    ahead_count_ -= some;
    first += some;
    if (first > last) ahead_.pop_front();
  }
}

}  // namespace batchwright
