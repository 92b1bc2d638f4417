#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Casts so many lines of narrow floats to `to`, the start of a cache line, from twice as many
/// bytes of float32 at `from`, which may be anywhere. Returns how many finite values became
/// infinite.
using CastLines = std::uint64_t (*)(std::byte* to, const std::byte* from, std::size_t lines);

/// One set of instructions to cast by. All give the same bits.
struct CastWay {
  std::string_view name;
  bool (*runs_here)();
  CastLines float16;
  CastLines bfloat16;
  // The same past the cache: finish_streams() has to follow.
  CastLines float16_streamed;
  CastLines bfloat16_streamed;

  CastLines lines(DType to, bool streamed) const {
    if (to == DType::float16) return streamed ? float16_streamed : float16;
    return streamed ? bfloat16_streamed : bfloat16;
  }
};

/// Those of this architecture: the first runs everywhere, the last that runs here is the fastest.
std::span<const CastWay> cast_ways();

/// The fastest that runs here.
const CastWay& best_cast_way();

}  // namespace batchwright
