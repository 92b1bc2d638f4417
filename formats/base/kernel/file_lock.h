#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "formats/base/kernel/descriptor.h"
#include "formats/base/result.h"

namespace batchwright {

/// A lock on a file (flock), which goes with this object, and with the process however it ends.
/// Threads: one at a time.
class FileLock {
 public:
  enum class Kind : std::uint8_t { shared, exclusive };

  /// Takes the lock; the file is made where there is none. It never waits: nothing is returned
  /// where another has it.
  /// Errors: io_error, naming the file; not_found: its folder is not there; unsupported: its file
  /// system has no locks.
  static Result<std::optional<FileLock>> take(const std::filesystem::path& file, Kind kind);

  /// Has the file say this, and nothing else. Errors: io_error.
  Result<void> write(std::string_view text) const;
  /// Whether the path still leads to the file that is locked. Without it the lock keeps no process
  /// out.
  bool is_there() const;
  /// Removes the file, unless another has taken its place; the lock is still held.
  void remove() const;

 private:
  FileLock(std::filesystem::path file, Descriptor descriptor)
      : file_(std::move(file)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path file_;
  Descriptor descriptor_;
};

}  // namespace batchwright
