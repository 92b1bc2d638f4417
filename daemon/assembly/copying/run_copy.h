#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/assembly/copying/copy_choice.h"
#include "daemon/assembly/padding.h"

namespace batchwright {

/// Copies one run, of any length and alignment, by the way given.
void copy_run(const CopyWay& way, std::byte* to, std::span<const std::byte> from);

/// Casts one run of float32 at any alignment to float16 or bfloat16, past the cache where the way
/// streams. Returns how many finite values became infinite.
std::uint64_t cast_run(const CopyWay& way, DType dtype, std::byte* to,
                       std::span<const std::byte> from);

/// Fills one run with padding, by the way given. `to` starts with a whole element.
void fill_run(const CopyWay& way, std::span<std::byte> to, const Padding& padding);

}  // namespace batchwright
