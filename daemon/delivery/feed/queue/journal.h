#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/delivery/feed/queue/work_queue.h"
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

/// Brings a file's content to the disk, as ::fdatasync does, which it is where none is given. Waits
/// for the disk.
using Sync = std::function<int(int descriptor)>;

/// Notes in `queue` what a sound record says of it. Returns the number of batches before a given
/// one that have none.
std::uint64_t take_record(const JournalRecord& record, WorkQueue& queue);

/// The file that lets a queue outlive the daemon: the batches given, their owners, and those done.
/// Layout: README.md.
///
/// It survives the daemon's death at any moment. A power cut may lose what the kernel had not yet
/// written, and then those batches are delivered again. A file that is damaged in another way is
/// refused, and stays as it is.
struct OpenedJournal {
  JournalState state;
  std::unique_ptr<KeptFile> file;  ///< Locked as long as it lives.
};
/// Reads the file into `queue`, reserving everything that is out, and goes on behind the last sound
/// record. An empty file, or none, begins with epoch 0. Waits for the disk.
/// Errors: io_error, busy (another daemon has it), fingerprint_mismatch (it is of another plan;
/// with `data_may_grow` the data may differ), corrupt_record (it is damaged, or no journal),
/// unsupported_version.
Result<OpenedJournal> open_journal(const std::string& path, const Fingerprint& fingerprint,
                                   bool data_may_grow, WorkQueue& queue, const Sync& sync = {});
/// A new file with the epoch, which has taken the place of the one at `path`. Waits for the disk.
/// Errors: io_error, busy (another daemon begins it).
Result<std::unique_ptr<KeptFile>> begin_journal(const std::string& path, const BeginJournal& begin,
                                                const Sync& sync = {});

/// The file that tells which sequence went to which client in which step: one JSON object a line,
/// in the order of the deliveries. For proof and debugging. Appends to the file, or begins it. A
/// last line that the daemon's death has cut off stays as it is, on a line of its own: its ticket
/// was never sent. Errors: io_error.
Result<std::unique_ptr<KeptFile>> open_ledger(const std::string& path);

}  // namespace batchwright
