#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "daemon/assembly/assembler.h"

namespace batchwright {

/// Puts the pages that the batch, or one row that is part of a sequence, is made of in place for
/// the assembly. Waits for the disk. What cannot be read is left to the assembly, which names it.
/// Threads: any.
void fetch_pages(const EpochSource& source, BatchIndex index);
void fetch_part(const EpochSource& source, const Row& row);

/// Whether the pages of a feed's batches are brought in before an assembly thread is given to
/// them. A feed is cold until kCalm batches in a row were there already, and again as soon as an
/// assembly thread had to wait.
/// Threads: one at a time.
class Warmth {
 public:
  static constexpr unsigned kCalm = 16;

  bool is_cold() const { return calm_ < kCalm; }
  /// The pages of one batch were brought in.
  void fetched(bool waited) { calm_ = waited ? 0 : calm_ + (calm_ < kCalm ? 1 : 0); }
  /// One batch was assembled.
  void assembled(bool waited) {
    if (waited) calm_ = 0;
  }

 private:
  unsigned calm_ = 0;
};

/// A thread for one feed, there while there is work for it: it waits for the disk in the place of
/// the assembly threads, which all feeds share.
/// Threads: put() from any. Destruction waits for all that was put.
class Fetcher {
 public:
  /// How long a thread without work stays.
  static constexpr std::chrono::seconds kLinger{10};

  explicit Fetcher(Manners manners = {}) : manners_(std::move(manners)) {}
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  void put(std::function<void()> work);

 private:
  void run();

  const Manners manners_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // guarded by mutex_
  bool running_ = false;                    // guarded by mutex_: the thread will look again
  bool stopping_ = false;                   // guarded by mutex_
  std::thread thread_;                      // guarded by mutex_, except for the last join
};

}  // namespace batchwright
