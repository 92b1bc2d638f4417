#pragma once

#include <boost/json/fwd.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/kept_file.h"
#include "daemon/delivery/feed/queue/record_writer.h"
#include "formats/formats.h"

namespace batchwright {

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
