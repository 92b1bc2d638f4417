#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace batchwright {

/// The bytes of a batch, and what keeps them where they are: an arena's mapping, or memory of our
/// own. Threads: immutable.
struct Payload {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;
  bool shared = false;  ///< The keeper is a Mapping, and others read the same bytes.
  std::span<const std::byte> memory{};  ///< All that the keeper keeps; empty: these bytes alone.

  explicit operator bool() const { return keeper != nullptr; }
};

}  // namespace batchwright
