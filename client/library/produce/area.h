#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "formats/formats.h"

namespace batchwright {

/// A producer's area: memory that the daemon made for it, mapped here to be written to.
///
/// Lifetime: whoever writes there shares it, so that it outlives connection and daemon.
/// Threads: any; who writes where is the owners' to agree.
class Area {
 public:
  /// Pages come when they are first written to. Errors: malformed_message (it is not of that size,
  /// or might shrink under us), io_error.
  static Result<std::shared_ptr<const Area>> map(const Descriptor& area, std::uint64_t bytes);

  explicit Area(std::span<std::byte> bytes) : bytes_(bytes) {}
  ~Area();
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  const std::span<std::byte> bytes_;
};

}  // namespace batchwright
