#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/library/memory/fault_table.h"
#include "formats/formats.h"

namespace batchwright {

/// An arena of the daemon, mapped read-only into this process.
///
/// Lifetime: each batch that is held shares it, so its bytes outlive connection and daemon.
/// Threads: any. What is mapped is immutable.
class Mapping {
 public:
  /// Maps and populates: a page costs 0.13 us here and 0.17 us when it is touched later.
  /// Errors: malformed_message (it is not of that size, or might shrink under us), io_error.
  static Result<std::shared_ptr<const Mapping>> map(const Descriptor& arena, std::uint64_t bytes);

  explicit Mapping(std::span<const std::byte> bytes)
      : bytes_(bytes), shown_(FaultTable::of_process().add(bytes)) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// A part of the arena. Errors: malformed_message when it lies outside.
  Result<std::span<const std::byte>> part(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::span<const std::byte> bytes_;
  FaultTable::Entry shown_;
};

/// A producer's area: memory that the daemon made for it, mapped here to be written to.
///
/// Lifetime: each room that is written there shares it, so that it outlives connection and daemon.
/// Threads: any; the owners agree on places.
class Area {
 public:
  /// Pages come when they are first written to. Errors: as Mapping::map().
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
