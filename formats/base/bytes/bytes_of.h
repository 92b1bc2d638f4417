#pragma once

#include <cstddef>
#include <span>

namespace batchwright {

/// The bytes of what a text, a list or an encoded message holds. Valid as long as it is.
template <class Holder>
requires requires(const Holder& holder) { std::span(holder.data(), holder.size()); }
std::span<const std::byte> bytes_of(const Holder& holder) {
  return std::as_bytes(std::span(holder.data(), holder.size()));
}

}  // namespace batchwright
