#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// A lock on a file (flock), which goes with this object, and with the process however it ends.
class FileLock {
 public:
  enum class Kind : std::uint8_t { shared, exclusive };

  /// Takes the lock; the file is made where there is none. With `wait` it is waited for, else
  /// nothing is returned where another has it. Errors: io_error, naming the file; not_found: its
  /// folder is not there.
  static Result<std::optional<FileLock>> take(const std::filesystem::path& file, Kind kind,
                                              bool wait);

  /// Has the file say this, and nothing else. Errors: io_error.
  Result<void> write(std::string_view text) const;
  /// Removes the file; the lock is still held.
  void remove() const;

 private:
  FileLock(std::filesystem::path file, Descriptor descriptor)
      : file_(std::move(file)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path file_;
  Descriptor descriptor_;
};

/// What a file says whose lock another may hold; empty where there is none.
std::string read_small_file(const std::filesystem::path& file);

}  // namespace batchwright
