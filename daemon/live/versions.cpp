#include "daemon/live/versions.h"

#include <algorithm>

#include "formats/base/base.h"

namespace batchwright {

std::size_t Versions::last_line_with(std::uint64_t version) const {
  for (std::size_t line = tops_.size(); line > 0; --line) {
    if (tops_[line - 1] >= version) return line - 1;
  }
  must(false, "a line has reached each version that was announced");
  return 0;
}

Age Versions::age_of(const Origin& origin) const {
  // Along the way of training: back to where each later line begins, then on from there.
  std::uint64_t base = origin.version, extra = 0;
  for (std::size_t line = origin.line; line < restored_to_.size(); ++line) {
    if (restored_to_[line] >= base) continue;
    extra += base - restored_to_[line];
    base = restored_to_[line];
  }
  const auto least = static_cast<std::int64_t>(extra);
  return {static_cast<std::int64_t>(base) - least, least};
}

std::uint64_t Versions::staleness(const Age& age) const {
  return static_cast<std::uint64_t>(
      std::max(age.least, static_cast<std::int64_t>(current_) - age.since));
}

bool Versions::advance(std::uint64_t version, bool restored, bool replays) {
  const bool new_line = restored && version < current_ && !replays;
  if (new_line) {
    restored_to_.push_back(version);
    tops_.push_back(version);
  }
  current_ = restored ? version : std::max(current_, version);
  tops_.back() = std::max(tops_.back(), current_);
  highest_ = std::max(highest_, current_);
  return new_line;
}

}  // namespace batchwright
