#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "storage/features/frontend/lengths.h"

namespace batchwright {

/// How many values more or fewer than frames an aligned field may have.
inline constexpr std::uint32_t kDefaultLabelSlack = 2;

/// What happened to the frames that an aligned field goes along with. Splices, masks and deltas
/// leave it alone.
struct AlignedSteps {
  std::uint64_t unperturbed = 0;  ///< T1: frames of the sequence at speed 1.
  std::uint64_t frames = 0;       ///< T2: frames that it has at the speed drawn.
  std::variant<Stacking, KeepOne> reduced;
  LabelDelay delay;
};

/// Which value of an aligned field belongs to each frame after all steps.
/// Threads: any.
class AlignedRows {
 public:
  /// `values` is how many the field has. The steps pass their check().
  /// Errors: corrupt_record: more than `slack` values too many or too few, or none for some frames.
  static Result<AlignedRows> create(const AlignedSteps& steps, std::uint64_t values,
                                    std::uint32_t slack);

  /// Values after all steps.
  std::uint64_t size() const;
  /// The place of the value at frame t; nothing where the delay has put none.
  std::optional<std::uint64_t> source(std::uint64_t t) const;

  /// Copies values of row_bytes each: `out` has size() of them. `ignored` is the value, of as many
  /// bytes, where there is none; number_bytes() makes it of a number.
  void copy(std::span<const std::byte> values, std::size_t row_bytes,
            std::span<const std::byte> ignored, std::span<std::byte> out) const;

 private:
  AlignedRows(const AlignedSteps& steps, std::uint64_t values) : steps_(steps), values_(values) {}

  AlignedSteps steps_;
  std::uint64_t values_;
};

}  // namespace batchwright
