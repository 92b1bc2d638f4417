#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace batchwright {

/// A number with a meaning. Two of different meaning do not convert into each other.
template <class Tag, class Rep>
struct Strong {
  Rep value{};
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

using Ordinal = Strong<struct OrdinalTag, std::uint64_t>;        ///< Place of a sequence, from 0.
using FrameCount = Strong<struct FrameCountTag, std::uint32_t>;  ///< Length in frames.
using Epoch = Strong<struct EpochTag, std::uint64_t>;            ///< Epoch, from 0.
using Step = Strong<struct StepTag, std::uint64_t>;  ///< Global step of an epoch, from 0.
using BatchIndex = Strong<struct BatchIndexTag, std::uint64_t>;  ///< step * world + rank.
using SlotIndex = Strong<struct SlotIndexTag, std::uint32_t>;    ///< Part of an arena.
using SessionId = Strong<struct SessionIdTag, std::uint64_t>;    ///< One connected client.
/// One subscription of a session, from 1; the client chooses it.
using SubscriptionNumber = Strong<struct SubscriptionNumberTag, std::uint32_t>;
/// One batch in one client's hands; the daemon chooses it.
using LeaseNumber = Strong<struct LeaseNumberTag, std::uint64_t>;

/// The number by which clients ask for an arena. Its lower bits name the feed; those above them
/// count the feed's arenas, so that of two arenas of a feed the later one has the greater number.
/// With the highest bit it is the area of one of its producers.
struct ArenaNumber {
  std::uint32_t value = 0;

  static constexpr std::uint32_t kMostFeeds = 0xFFFF;
  static constexpr std::uint32_t kMostAreas = 0x7FFF;

  /// The feed's number, 1 to kMostFeeds.
  constexpr std::uint32_t feed() const { return value & kMostFeeds; }
  /// The number of the arena that takes this one's place; empty after 32,767 of them, for a number
  /// that comes again would stand for memory that a client has mapped.
  constexpr std::optional<ArenaNumber> next() const {
    if (value > INT32_MAX - kMostFeeds - 1) return std::nullopt;
    return ArenaNumber{value + kMostFeeds + 1};
  }
  /// The feed's area number `count`, 1 to kMostAreas.
  constexpr ArenaNumber area(std::uint32_t count) const {
    return {(0x8000U + count) << 16U | feed()};
  }
  constexpr bool is_area() const { return value > INT32_MAX; }

  friend constexpr auto operator<=>(const ArenaNumber&, const ArenaNumber&) = default;
};

/// The fingerprint of all that a plan depends on, in three parts so that a mismatch can name the
/// one that changed. Each part is a 64-bit hash: equal content gives equal parts, and a change goes
/// unnoticed with a chance of 2^-64. It is no defence against a forger.
struct Fingerprint {
  std::uint64_t data = 0;  ///< Content of the dataset, order of its shards included.
  std::uint64_t settings =
      0;                   ///< Planner's version, plan without its seed, layout, padding, fields.
  std::uint64_t seed = 0;  ///< The seed.
  friend constexpr auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

/// 48 hexadecimal digits in three groups: `data-settings-seed`.
std::string to_string(const Fingerprint& fingerprint);

/// Names the parts that differ, such as "data and seed"; empty when none does.
std::string describe_difference(const Fingerprint& a, const Fingerprint& b);

}  // namespace batchwright
