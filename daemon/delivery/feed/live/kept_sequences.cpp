#include "daemon/delivery/feed/live/kept_sequences.h"

#include <algorithm>
#include <utility>

namespace batchwright {

void KeptSequences::add(std::shared_ptr<const PushedSequence> sequence, ProducerId producer,
                        bool in_area) {
  const std::uint64_t arrival = sequence->arrival;
  bytes_ += sequence->bytes();
  all_.emplace(arrival, Kept{std::move(sequence), producer, true, in_area, false, 0});
}

void KeptSequences::leave_pool(std::uint64_t arrival) {
  const auto found = all_.find(arrival);
  if (found == all_.end() || !std::exchange(found->second.in_pool, false)) return;
  if (found->second.steps != 0) count_beside(found->second, true);
  free_if_unused(found);
}

void KeptSequences::add_step(std::uint64_t step, std::vector<std::uint64_t> arrivals) {
  std::sort(arrivals.begin(), arrivals.end());
  arrivals.erase(std::unique(arrivals.begin(), arrivals.end()), arrivals.end());
  for (const std::uint64_t arrival : arrivals) ++all_.at(arrival).steps;
  steps_.emplace(step, std::move(arrivals));
}

void KeptSequences::keep_from(std::uint64_t step) {
  while (!steps_.empty() && steps_.begin()->first < step) {
    for (const std::uint64_t arrival : steps_.begin()->second) {
      const auto found = all_.find(arrival);
      Kept& kept = found->second;
      if (--kept.steps == 0 && !kept.in_pool) count_beside(kept, false);
      free_if_unused(found);
    }
    steps_.erase(steps_.begin());
  }
}

void KeptSequences::let_go(std::uint64_t arrival) {
  const auto found = all_.find(arrival);
  found->second.held = false;
  free_if_unused(found);
}

void KeptSequences::count_beside(const Kept& kept, bool in) {
  const std::uint64_t bytes = kept.sequence->bytes();
  in ? beside_pool_ += bytes : beside_pool_ -= bytes;
  has_grown_ = has_grown_ || in;
  if (!kept.in_area) return;
  if (kept.producer >= of_areas_.size()) of_areas_.resize(std::size_t{kept.producer} + 1);
  std::uint64_t& of_area = of_areas_[kept.producer];
  in ? of_area += bytes : of_area -= bytes;
}

void KeptSequences::free_if_unused(std::map<std::uint64_t, Kept>::iterator of) {
  const Kept& kept = of->second;
  if (kept.in_pool || kept.held || kept.steps != 0) return;
  bytes_ -= kept.sequence->bytes();
  freed_(kept.producer, *kept.sequence, kept.in_area);
  all_.erase(of);
}

}  // namespace batchwright
