#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchwright {

/// The model that made a sequence: its version, and the line of training that the version is of.
struct Origin {
  std::uint64_t version = 0;
  std::size_t line = 0;
};

/// How stale something is, as a function of v: v - since, and at least `least`. It holds until a
/// restore begins another line.
struct Age {
  std::int64_t since = 0;
  std::int64_t least = 0;

  friend auto operator<=>(const Age&, const Age&) = default;
  /// That of a group: always the staleness of its stalest member.
  friend Age stalest(const Age& a, const Age& b) {
    return {a.since < b.since ? a.since : b.since, a.least > b.least ? a.least : b.least};
  }
};

/// What the versions amount to, as plain values.
struct VersionsState {
  std::uint64_t current = 0;
  std::uint64_t highest = 0;
  std::vector<std::uint64_t> restored_to;  ///< Of each line but the first.
  std::vector<std::uint64_t> tops{0};      ///< The highest version of each line.
};

/// The versions that trainers announced, and the lines that restores have begun.
class Versions {
 public:
  Versions() = default;
  explicit Versions(VersionsState state) : state_(std::move(state)) {}
  const VersionsState& state() const { return state_; }

  /// v: the highest version announced, unless a restore has lowered it.
  std::uint64_t current() const { return state_.current; }
  bool was_announced(std::uint64_t version) const { return version <= state_.highest; }
  std::size_t line() const { return state_.restored_to.size(); }
  /// The last line that has reached a version that was announced.
  std::size_t last_line_with(std::uint64_t version) const;

  Age age_of(const Origin& origin) const;
  std::uint64_t staleness(const Age& age) const;

  /// A version was announced. Returns whether another line has begun: all ages are others then.
  bool advance(std::uint64_t version, bool restored, bool replays);

 private:
  VersionsState state_;
};

}  // namespace batchwright
