#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/delivery/feed/ids.h"
#include "daemon/delivery/feed/queue/kept_file.h"
#include "formats/formats.h"

namespace batchwright {

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

  /// Work is done: sends what waited for its records.
  void told(const Progress& progress);

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
  std::deque<Held> held_;  ///< In the order of their records.
};

}  // namespace batchwright
