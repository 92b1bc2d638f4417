#include "client/library/session/rehearsals.h"

#include <algorithm>

namespace batchwright {

Rehearsals::Verdict Rehearsals::check(std::uint64_t index) {
  if (repeated_ < taken_.size()) {
    return taken_[repeated_++] == index ? Verdict::repeated : Verdict::astray;
  }
  const bool twice = std::find(taken_.begin(), taken_.end(), index) != taken_.end();
  return twice || taken_.size() >= wanted_ ? Verdict::surplus : Verdict::fresh;
}

void Rehearsals::take(std::uint64_t index) {
  taken_.push_back(index);
  repeated_ = taken_.size();
}

}  // namespace batchwright
