#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "daemon/delivery/feed/ids.h"
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
  const std::string& name() const { return name_; }  ///< "journal PATH".
  /// It lies at another path now.
  void moved(const std::string& what, const std::string& path) { name_ = what + " " + path; }
  /// An error for the failed call, with errno's reason.
  Error failed(const char* doing) const;

 private:
  KeptFile(std::string name, Descriptor file) : name_(std::move(name)), file_(std::move(file)) {}
  bool lies_at(const std::string& path) const;

  std::string name_;  ///< The name used in errors.
  Descriptor file_;
};

/// Hands a feed's records to the kernel on a thread of their own, in the order in which they are
/// put, those that have gathered by one call; and holds the messages that may be sent only once the
/// records before them are with the kernel. Nothing else waits for it.
///
/// After a failure nothing more is written: a file with a gap would be worse than none. What is put
/// is bounded by the batches that clients hold, each of which has no more than three records.
/// Lifetime: `elsewhere` outlives it; at the end, what was put is written once its thread has
/// ended. Threads: the event loop only, except for the work that it has done elsewhere.
class RecordWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// How far the kernel has the records.
  struct Progress {
    std::uint64_t written = 0;
    std::optional<Error> failure = {};
  };
  /// Has `work` done on the thread of the files, in order. told() is for what it returns.
  using Elsewhere = std::function<void(std::function<Progress()> work)>;

  explicit RecordWriter(Elsewhere elsewhere);

  /// Work is done: sends what waited for its records. Whether it tells of the failure, for the
  /// first time.
  bool told(const Progress& progress);
  /// The failure of which told() has heard nothing. To be asked once the thread has ended.
  std::optional<Error> untold() const;

  void put(const std::shared_ptr<KeptFile>& file, std::string record);
  /// Does this on the same thread, behind what was put; `work` gets why a record before could not
  /// be written. `name`: what it is at.
  void run(const std::string& name, std::function<void(const std::optional<Error>& failure)> work);
  /// Closes the file there, as closing may wait for its file system, too.
  void close(std::shared_ptr<KeptFile> file);

  /// The number of the record that was put last; 0: none was.
  std::uint64_t last() const { return last_; }
  bool has_written(std::uint64_t record) const { return record <= written_; }
  /// What the thread is at, such as "journal PATH", and since when; empty: nothing.
  struct AtWork {
    std::string name;
    Time since;
  };
  std::optional<AtWork> at_work() const;

  /// Whether a message to this subscription, behind so many records, may be sent: those are
  /// written, and no message to the subscription is held.
  bool lets_pass(const SubscriptionKey& to, std::uint64_t record) const;
  /// Holds it until then, and sends it. One of `send` and `drop` is called, once.
  void hold(const SubscriptionKey& to, std::uint64_t record, std::function<void()> send,
            std::function<void()> drop);
  /// Drops what is held, and lets all pass from now on: nothing is noted any more.
  void stop_holding();

 private:
  struct Queue;
  struct Held {
    SubscriptionKey to;
    std::uint64_t record = 0;
    std::function<void()> send;
    std::function<void()> drop;
  };

  void push(std::shared_ptr<KeptFile> file, std::string record,
            std::function<void(const std::optional<Error>&)> work);

  Elsewhere elsewhere_;
  std::shared_ptr<Queue> queue_;
  std::uint64_t last_ = 0;
  std::uint64_t written_ = 0;
  bool holds_ = true;
  bool knows_failure_ = false;
  std::deque<Held> held_;  ///< In the order of their records.
};

}  // namespace batchwright
