#include "tests/simulation/world/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright::simulation {
namespace {

/// A daemon that stood still has less to do when it goes on.
constexpr std::uint64_t kMostAtOnce = 10'000;

}  // namespace

Duration Dice::time(Duration least, Duration most) {
  std::uint32_t doublings = 0;
  while (least * (std::int64_t{1} << doublings) < most) ++doublings;
  const Duration from = least * (std::int64_t{1} << (doublings == 0 ? 0 : below(doublings)));
  const auto spread = static_cast<std::uint64_t>(std::min(from, most - from).count());
  return from + Duration(spread == 0 ? 0 : static_cast<std::int64_t>(bits() % spread));
}

bool World::step(Time end) {
  const auto first = things_.begin();
  if (first == things_.end() || first->first.first > end) return false;
  at_once_ = first->first.first > now_ ? 0 : at_once_ + 1;
  if (at_once_ > kMostAtOnce) fail("the run turns in a circle, and no time passes");
  now_ = std::max(now_, first->first.first);
  const Thing thing = std::move(first->second);
  things_.erase(first);
  ++done_;
  thing();
  if (failure_) fail(*failure_);
  return true;
}

void World::note(std::string line) {
  constexpr std::size_t kMostBytes = 200;
  if (line.size() > kMostBytes) line.resize(kMostBytes);
  lines_.emplace_back(now_, std::move(line));
  if (lines_.size() > kLines) lines_.pop_front();
}

std::string World::last_lines() const {
  std::string text;
  for (const auto& [when, line] : lines_) {
    text +=
        fmt::format("{:12.6f}  {}\n", std::chrono::duration<double>(when - kBegin).count(), line);
  }
  return text;
}

}  // namespace batchwright::simulation
