#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace batchwright {

inline constexpr std::size_t kCacheLine = 64;

/// One way to write whole cache lines of a slot. All ways write the same bytes.
struct CopyWay {
  std::string_view name;
  /// Whether this processor has the instructions; false for those of another architecture.
  bool (*runs_here)();
  /// Copies `lines` cache lines. `to` is the start of a line; `from` may be anywhere, and nothing
  /// outside of the lines is read. Null: std::memcpy().
  void (*copy)(std::byte* to, const std::byte* from, std::size_t lines);
  /// Writes the line at `line` `lines` times. Null where `copy` is.
  void (*fill)(std::byte* to, const std::byte* line, std::size_t lines);

  /// Whether it writes past the cache, so that finish_streams() has to follow.
  bool streams() const { return copy != nullptr; }
};

/// All ways, of every architecture. The first is std::memcpy(); the others follow from the least
/// demanding to the most.
std::span<const CopyWay> copy_ways();

/// std::memcpy(), which every processor can.
const CopyWay& plain_copy();

/// The way of that name; null where there is none.
const CopyWay* find_copy_way(std::string_view name);

/// Makes streamed lines visible to other threads, in front of whatever tells them of the lines.
void finish_streams();

}  // namespace batchwright
