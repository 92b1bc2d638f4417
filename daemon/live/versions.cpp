#include "daemon/live/versions.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {

std::size_t Versions::last_line_with(std::uint64_t version) const {
  for (std::size_t line = state_.tops.size(); line > 0; --line) {
    if (state_.tops[line - 1] >= version) return line - 1;
  }
  must(false, "a line has reached each version that was announced");
  return 0;
}

Age Versions::age_of(const Origin& origin) const {
  // Along the way of training: back to where each later line begins, then on from there.
  std::uint64_t base = origin.version, extra = 0;
  for (std::size_t line = origin.line; line < state_.restored_to.size(); ++line) {
    if (state_.restored_to[line] >= base) continue;
    extra += base - state_.restored_to[line];
    base = state_.restored_to[line];
  }
  const auto least = static_cast<std::int64_t>(extra);
  return {static_cast<std::int64_t>(base) - least, least};
}

std::uint64_t Versions::staleness(const Age& age) const {
  return static_cast<std::uint64_t>(
      std::max(age.least, static_cast<std::int64_t>(state_.current) - age.since));
}

bool Versions::advance(std::uint64_t version, bool restored, bool replays) {
  const bool new_line = restored && version < state_.current && !replays;
  if (new_line) {
    state_.restored_to.push_back(version);
    state_.tops.push_back(version);
  }
  state_.current = restored ? version : std::max(state_.current, version);
  state_.tops.back() = std::max(state_.tops.back(), state_.current);
  state_.highest = std::max(state_.highest, state_.current);
  return new_line;
}

}  // namespace batchwright
