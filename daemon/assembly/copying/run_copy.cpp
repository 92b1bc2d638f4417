#include "daemon/assembly/copying/run_copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "daemon/assembly/copying/cast_ways.h"

namespace batchwright {
namespace {

/// Bytes in front of the first whole line.
std::size_t head_of(const std::byte* to) {
  return -reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
}

/// Padding of one value for all bytes, which it mostly is: then memset() does it in one call.
void fill_plainly(std::span<std::byte> to, const Padding& padding) {
  if (to.empty()) return;
  const std::span element(padding.element.data(), padding.bytes);
  if (std::all_of(element.begin(), element.end(), [&](std::byte b) { return b == element[0]; })) {
    std::memset(to.data(), static_cast<int>(element[0]), to.size());
    return;
  }
  // One element, then what is there once more, and again: memcpy does the work in few calls.
  std::memcpy(to.data(), element.data(), std::min(element.size(), to.size()));
  for (std::size_t done = element.size(); done < to.size();) {
    const std::size_t more = std::min(done, to.size() - done);
    std::memcpy(to.data() + done, to.data(), more);
    done += more;
  }
}

/// The padding turned so that it goes on behind `bytes` of it.
Padding behind(const Padding& padding, std::size_t bytes) {
  Padding turned = padding;
  for (std::size_t i = 0; i < padding.bytes; ++i) {
    turned.element[i] = padding.element[(i + bytes) % padding.bytes];
  }
  return turned;
}

/// Casts less than a line, which is put together in one of its own: a line is what all ways cast.
std::uint64_t cast_piece(DType dtype, std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return 0;
  std::array<std::byte, 2 * kCacheLine> wide{};
  alignas(kCacheLine) std::array<std::byte, kCacheLine> narrow;
  std::memcpy(wide.data(), from.data(), from.size());
  const std::uint64_t overflows =
      best_cast_way().lines(dtype, false)(narrow.data(), wide.data(), 1);
  std::memcpy(to, narrow.data(), from.size() / 2);
  return overflows;
}

}  // namespace

void copy_run(const CopyWay& way, std::byte* to, std::span<const std::byte> from) {
  const std::size_t head = head_of(to);
  // A row that is all padding has no source, and memcpy() takes no null pointer.
  if (from.empty()) return;
  if (!way.streams() || from.size() < head + kCacheLine) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  std::memcpy(to, from.data(), head);
  const std::size_t lines = (from.size() - head) / kCacheLine;
  way.copy(to + head, from.data() + head, lines);
  const std::size_t done = head + lines * kCacheLine;
  std::memcpy(to + done, from.data() + done, from.size() - done);
}

std::uint64_t cast_run(const CopyWay& way, DType dtype, std::byte* to,
                       std::span<const std::byte> from) {
  const std::size_t bytes = from.size() / 2;
  const std::size_t head = std::min(head_of(to), bytes);
  std::uint64_t overflows = cast_piece(dtype, to, from.first(2 * head));
  const std::size_t lines = (bytes - head) / kCacheLine;
  if (lines > 0) {
    const CastLines cast = best_cast_way().lines(dtype, way.streams());
    overflows += cast(to + head, from.data() + 2 * head, lines);
  }
  const std::size_t done = head + lines * kCacheLine;
  return overflows + cast_piece(dtype, to + done, from.subspan(2 * done));
}

void fill_run(const CopyWay& way, std::span<std::byte> to, const Padding& padding) {
  const std::size_t head = head_of(to.data());
  if (!way.streams() || to.size() < head + kCacheLine) return fill_plainly(to, padding);
  fill_plainly(to.first(head), padding);
  // A line holds whole elements of any size, so that all lines are alike.
  alignas(kCacheLine) std::array<std::byte, kCacheLine> line;
  const Padding turned = behind(padding, head);
  fill_plainly(line, turned);
  const std::size_t lines = (to.size() - head) / kCacheLine;
  way.fill(to.data() + head, line.data(), lines);
  fill_plainly(to.subspan(head + lines * kCacheLine), turned);
}

}  // namespace batchwright
