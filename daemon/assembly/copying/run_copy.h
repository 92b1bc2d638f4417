#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/assembly/copying/copy_choice.h"
#include "daemon/assembly/padding.h"

namespace batchwright {

/// Asks the processor for the first lines of what is read soon, `most` bytes of them at most: they
/// are on pages of which nothing is in a cache yet, and no hardware foresees them. Reads nothing,
/// and so does not fault.
inline void prefetch_lines(std::span<const std::byte> bytes, std::size_t most) {
  for (std::size_t at = 0; at < std::min(bytes.size(), most); at += kCacheLine) {
    __builtin_prefetch(bytes.data() + at);
  }
}

/// Copies one run, of any length and alignment, by the way given.
void copy_run(const CopyWay& way, std::byte* to, std::span<const std::byte> from);

/// Casts one run of float32 at any alignment to float16 or bfloat16, past the cache where the way
/// streams. Returns how many finite values became infinite.
std::uint64_t cast_run(const CopyWay& way, DType dtype, std::byte* to,
                       std::span<const std::byte> from);

/// Fills one run with padding, by the way given. `to` starts with a whole element.
void fill_run(const CopyWay& way, std::span<std::byte> to, const Padding& padding);

}  // namespace batchwright
