#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// A file that the daemon appends to and that outlives it: a journal, or a ledger.
///
/// Bytes that write() has taken belong to the kernel, and survive the daemon's death at any moment.
/// It never syncs; a write() may wait where the machine has more unwritten pages than it allows.
/// Threads: one at a time; it may go from thread to thread.
class KeptFile {
 public:
  /// Opens the file, or begins it. `what` and the path name it in errors. Errors: io_error.
  static Result<std::unique_ptr<KeptFile>> open(const std::string& what, const std::string& path);
  /// The same, with a lock that ends with the file: the file is the one at `path` now, even if
  /// another daemon has just put it there. Errors: io_error; busy, when another has it locked.
  static Result<std::unique_ptr<KeptFile>> open_locked(const std::string& what,
                                                       const std::string& path);

  /// Appends all of it: by one call of the kernel where there is room. Errors: io_error; then a
  /// part may be there.
  Result<void> write(std::span<const std::byte> bytes);
  /// Reads from `offset`, up to the size of `into`.
  Result<std::size_t> read(std::span<std::byte> into, std::uint64_t offset) const;
  Result<std::uint64_t> size() const;
  Result<void> cut(std::uint64_t size);

  /// Whether there is room for more: asks the file system for some behind the end, and changes
  /// neither size nor content. True also where it cannot be asked. Errors: io_error (full).
  Result<void> check_room() const;

  int descriptor() const { return file_.get(); }
  const std::string& path() const { return path_; }
  std::string name() const { return what_ + " " + path_; }  ///< "journal PATH".
  /// It lies at another path now.
  void moved(const std::string& path) { path_ = path; }
  /// An error for the failed call, with errno's reason.
  Error failed(const char* doing) const;

 private:
  KeptFile(std::string what, std::string path, Descriptor file)
      : what_(std::move(what)), path_(std::move(path)), file_(std::move(file)) {}
  bool lies_at(const std::string& path) const;

  std::string what_;
  std::string path_;
  Descriptor file_;
};

}  // namespace batchwright
