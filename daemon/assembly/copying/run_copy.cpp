#include "daemon/assembly/copying/run_copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

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
