#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/assembly/sources/epoch_source.h"
#include "daemon/assembly/threads/helper_thread.h"
#include "daemon/assembly/threads/thread_policy.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Requests of a feed that readahead remembers until it has looked up where their rows lie.
inline constexpr std::size_t kReadaheadCapacity = 256;

/// One disk, as readahead found it.
struct DiskFigures {
  std::uint64_t device = 0;                  ///< st_dev of the files on it.
  std::size_t under_way_bytes = 0;           ///< Asked for, and not there yet.
  std::size_t window_bytes = 0;              ///< Most that is under way at a time.
  double bytes_per_second = 0.0;             ///< Best recently; 0 before anything was read.
  std::chrono::duration<double> latency{0};  ///< Shortest of one read, recently.
  std::size_t readers = 0;                   ///< Threads that read or wait for work.
};

/// What readahead does for all feeds.
struct ReadaheadFigures {
  std::vector<DiskFigures> disks;  ///< By device.
  std::size_t ahead_bytes = 0;     ///< Brought in for batches that are not assembled yet.
  /// Left in memory behind the plan, where the datasets are larger than the memory for them.
  std::size_t kept_bytes = 0;
};

/// Brings the pages of batches into memory before they are assembled: keeps as many bytes under
/// way on each disk as it delivers in its latency (ReadWindow), shares a disk among feeds and reads
/// in the file's order (ReadQueue), and gives back what was used where the datasets are larger than
/// the memory (PageCachePolicy).
///
/// A thread a feed looks up where rows lie, and gives back what was used; up to kReaders threads a
/// disk read, each one read at a time, and wait for it. They start as they are needed, and end when
/// they have had nothing to do for a while. Or all is done on other threads, and none waits for a
/// read. Lifetime: an epoch is kept alive by what is being done for it, not by what waits. Threads:
/// will_need() and used() from one thread, neither of which blocks; figures() from any. Destruction
/// waits for the reads that are under way.
class Readahead {
 public:
  static constexpr std::size_t kReaders = 32;

  /// `memory_left` says how many bytes the page cache may take; by default what memory_room()
  /// finds, less under memory_pressure(). A reader ends after `patience` without work. `policy`
  /// are those of all its threads.
  explicit Readahead(std::function<std::size_t()> memory_left = nullptr,
                     std::chrono::milliseconds patience = std::chrono::seconds(10),
                     ThreadPolicy policy = {});
  /// Does all of it `elsewhere`, without a thread: the kernel is asked to read, and not waited for.
  explicit Readahead(HelperThread::Elsewhere elsewhere,
                     std::function<std::size_t()> memory_left = nullptr);
  ~Readahead();
  Readahead(const Readahead&) = delete;
  Readahead& operator=(const Readahead&) = delete;

  /// The batch is due soon, behind those that were asked for before. `times`, if any, takes the
  /// time of looking up, and what was brought in. The feed's oldest request is dropped when there
  /// are kReadaheadCapacity.
  void will_need(const std::string& feed, const std::shared_ptr<const EpochSource>& source,
                 BatchIndex index, std::shared_ptr<StageTimes> times = nullptr);

  /// The batch was assembled, or will not be: its pages are no longer needed for it.
  void used(const std::string& feed, const std::shared_ptr<const EpochSource>& source,
            BatchIndex index);

  ReadaheadFigures figures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace batchwright
