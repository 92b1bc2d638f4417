#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "daemon/delivery/feed/kept_file.h"
#include "daemon/delivery/feed/queue/queue_service.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "formats/formats.h"

namespace batchwright {

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
