#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/delivery/work_queue.h"
#include "formats/formats.h"

namespace batchwright {

/// The file that lets a queue outlive the daemon: what was given to whom, and what is done. Layout:
/// README.md. A record is written before what it tells of can have an effect outside.
///
/// It survives the daemon's death at any moment. A power cut may lose what the kernel had not yet
/// written, and then those batches are delivered again.
/// Threads: one at a time. It has the file locked as long as it lives.
class QueueJournal {
 public:
  /// Reads what is there into `queue`, everything that is out being kept, and goes on behind
  /// the last whole record. A new file begins with epoch 0.
  /// Errors: io_error, busy (another daemon has it), fingerprint_mismatch (it is of another plan;
  /// with `data_may_grow` the data may differ), corrupt_record (it is no journal).
  static Result<std::unique_ptr<QueueJournal>> open(const std::string& path,
                                                    const Fingerprint& fingerprint,
                                                    bool data_may_grow, WorkQueue& queue);
  ~QueueJournal();
  QueueJournal(const QueueJournal&) = delete;
  QueueJournal& operator=(const QueueJournal&) = delete;

  /// Errors: io_error; then the queue must not go on.
  Result<void> given(std::uint64_t lease, BatchIndex index, QueueOwner owner);
  Result<void> done(std::uint64_t lease, QueueOwner owner);
  /// Begins the file anew, for nothing of the epochs before matters any more.
  Result<void> begin(Epoch epoch, const Fingerprint& fingerprint);

  /// A number above that of every lease that was ever given.
  std::uint64_t next_lease() const { return next_lease_; }
  /// The plan that the epoch at hand was begun with.
  const Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  QueueJournal(std::string path, int descriptor) : path_(std::move(path)), file_(descriptor) {}
  Result<void> read(WorkQueue& queue);
  Error failed(const char* doing) const;

  std::string path_;
  int file_;
  std::uint64_t next_lease_ = 1;
  Fingerprint fingerprint_;
  bool begun_ = false;  ///< The file told its plan and epoch.
};

}  // namespace batchwright
