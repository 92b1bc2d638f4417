#include "client/library/link/search.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchwright {

bool Search::is_given_up(Clock::time_point now) const {
  return away_ && now - away_->since >= patience_;
}

Search::Clock::time_point Search::next_change(bool wants_attempt, Clock::time_point latest) const {
  auto next = latest;
  if (away_) next = std::min(next, away_->since + patience_);
  if (wants_attempt) next = std::min(next, next_attempt_);
  return next;
}

bool Search::met() {
  const bool came_back = away_.has_value();
  away_.reset();
  has_met_ = true;
  return came_back;
}

void Search::lost(const std::string& how, Clock::time_point now) {
  if (has_met_) away_ = Away{away_ ? away_->since : now, how};
}

void Search::note_obstacle(const std::string& what) {
  if (away_) away_->why = what;
}

std::string Search::text(Clock::time_point now) const {
  const auto gone = std::chrono::duration_cast<std::chrono::seconds>(now - away_->since);
  return fmt::format("has been gone for {} s ({})", gone.count(), away_->why);
}

}  // namespace batchwright
