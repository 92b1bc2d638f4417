#pragma once

#include <compare>
#include <cstdint>
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
