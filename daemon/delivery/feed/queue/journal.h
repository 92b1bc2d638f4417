#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/record_writer.h"
#include "daemon/delivery/feed/queue/work_queue.h"
#include "formats/formats.h"

namespace batchwright {

/// A journal's file that has taken the place of the one before it, and begins with an epoch.
struct BegunJournal {
  std::unique_ptr<KeptFile> file;
  Fingerprint fingerprint;  ///< The plan that the epoch is begun with.
};

/// The file that lets a queue outlive the daemon: the batches given, their owners, and those done.
/// Layout: README.md. A record is with the kernel before its event can have an effect outside: it
/// is written at once, or by a RecordWriter, which tells when it is.
///
/// It survives the daemon's death at any moment. A power cut may lose what the kernel had not yet
/// written, and then those batches are delivered again. A file that is damaged in another way is
/// refused, and stays as it is.
/// Threads: one at a time. It has the file locked as long as it lives.
class QueueJournal {
 public:
  /// Brings a file's content to the disk, as ::fdatasync does. Waits for the disk.
  using Sync = std::function<int(int descriptor)>;

  /// Reads the file into `queue`, reserving everything that is out, and goes on behind the last
  /// sound record. An empty file, or none, begins with epoch 0. Waits for the disk.
  /// Errors: io_error, busy (another daemon has it), fingerprint_mismatch (it is of another plan;
  /// with `data_may_grow` the data may differ), corrupt_record (it is damaged, or no journal),
  /// unsupported_version.
  static Result<std::unique_ptr<QueueJournal>> open(const std::string& path,
                                                    const Fingerprint& fingerprint,
                                                    bool data_may_grow, WorkQueue& queue,
                                                    Sync sync = {});

  /// The same plan's settings in the form that fingerprints have today; the file gets it with the
  /// next epoch.
  void go_on_under(std::uint64_t settings) { fingerprint_.settings = settings; }

  /// From now on it writes records, and closes the file in the end. It outlives the journal.
  void write_by(RecordWriter* writer) { writer_ = writer; }
  /// Gives the file away, for no record follows.
  std::shared_ptr<KeptFile> hand_over() { return std::move(file_); }

  /// Errors: io_error, where no writer has them; then the queue must not go on.
  Result<void> given(LeaseNumber lease, BatchIndex index, QueueOwner owner);
  Result<void> done(LeaseNumber lease, QueueOwner owner);
  Result<void> returned(LeaseNumber lease, BatchIndex index, QueueOwner owner);
  Result<void> set_aside(LeaseNumber lease, QueueOwner owner);

  /// A function that begins the file anew with an epoch, for earlier epochs no longer matter. The
  /// call waits for the disk, so it is for another thread, and needs this journal no more;
  /// take_up() is for what it returns. It comes behind the records of the epoch before, which is
  /// done, and nothing is noted until take_up().
  std::function<Result<BegunJournal>()> beginning(Epoch epoch,
                                                  const Fingerprint& fingerprint) const;
  void take_up(BegunJournal begun);

  /// What the file had lost when it was opened, as in a power cut.
  struct Losses {
    std::uint64_t records = 0;
    std::uint64_t batches = 0;  ///< Given before the last one, without a sound record of it.
  };
  const Losses& losses() const { return losses_; }

  /// A number above that of every lease that was ever given.
  LeaseNumber next_lease() const { return next_lease_; }
  /// The plan that the current epoch was begun with.
  const Fingerprint& fingerprint() const { return fingerprint_; }
  const std::string& path() const { return path_; }

 private:
  QueueJournal(std::string path, std::unique_ptr<KeptFile> file, Sync sync);
  Result<void> read(WorkQueue& queue);
  void take_in(const JournalRecord& record, WorkQueue& queue);
  Result<void> write(const JournalRecord& record);

  std::string path_;
  std::shared_ptr<KeptFile> file_;
  RecordWriter* writer_ = nullptr;  ///< Null: records are written at once.
  Sync sync_;
  LeaseNumber next_lease_{1};
  Fingerprint fingerprint_;
  bool begun_ = false;     ///< The file has its plan and epoch.
  std::uint64_t end_ = 0;  ///< Of its last sound record when it was opened.
  Losses losses_;
};

/// The file that tells which sequence went to which client in which step: one JSON object a line,
/// in the order of the deliveries. Each line is with the kernel before its ticket is sent, so that
/// it is there whatever dies next. For proof and debugging.
/// Threads: one at a time.
class Ledger {
 public:
  struct Entry {
    const ClientInfo& client;
    SubscriptionNumber subscription;
    LeaseNumber lease;
    BatchId id;
    bool rehearsal;
  };

  /// Appends to the file, or begins it. A last line that the daemon's death has cut off stays as it
  /// is, on a line of its own: its ticket was never sent. Errors: io_error.
  static Result<std::unique_ptr<Ledger>> open(const std::string& path, const std::string& feed);
  /// As those of QueueJournal.
  void write_by(RecordWriter* writer) { writer_ = writer; }
  std::shared_ptr<KeptFile> hand_over() { return std::move(file_); }

  /// Errors: io_error, where no writer has the line.
  Result<void> delivered(const Entry& entry, const EpochPlan& plan);
  /// The client holds it no longer, or it is done: `what` says which.
  Result<void> ended(const ClientInfo& client, LeaseNumber lease, std::string_view what);

 private:
  Ledger(std::string feed, std::unique_ptr<KeptFile> file)
      : feed_(std::move(feed)), file_(std::move(file)) {}
  Result<void> write_object(const boost::json::object& object) const;
  Result<void> write_line(const std::string& line) const;

  std::string feed_;
  std::shared_ptr<KeptFile> file_;
  RecordWriter* writer_ = nullptr;
  std::vector<Row> rows_;
};

}  // namespace batchwright
