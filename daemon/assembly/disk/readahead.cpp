#include "daemon/assembly/disk/readahead.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "daemon/assembly/arena/memory_pressure.h"
#include "daemon/assembly/arena/memory_room.h"
#include "daemon/assembly/disk/page_cache_policy.h"
#include "daemon/assembly/disk/read_queue.h"
#include "daemon/assembly/disk/read_window.h"
#include "daemon/assembly/row_parts.h"
#include "daemon/assembly/sources/epoch_source.h"
#include "daemon/assembly/thread_usage.h"
#include "formats/formats.h"

// Threads that wait, not io_uring: many systems forbid that, and a disk needs no more reads under
// way than there may be threads. Each asks the kernel for all of a read at once and then has it
// mapped, which returns when the pages are there: so it is known how long the disk took, and
// assembly meets no page fault.

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks at how much memory there is, which reads a few files of /proc.
constexpr std::chrono::seconds kBetweenLooks{1};

/// What the loop says of one batch.
struct Notice {
  enum class Kind : std::uint8_t { will_need, used };
  Kind kind = Kind::will_need;
  std::string feed;
  std::weak_ptr<const EpochSource> source;
  BatchId id;
  std::shared_ptr<StageTimes> times;
};

/// Of a record that is not wanted whole, only the record itself says where the rest lies. Without
/// readers, which wait for that, it is asked for as a whole where it is no larger than this.
constexpr std::size_t kMostForPart = std::size_t{1} << 20;

void ask_kernel(const Read& read, std::size_t most_for_part) {
  for (const WantedRow& row : read.rows) {
    if (row.whole || row.record.size() <= most_for_part) prefetch(row.record);
  }
}

/// Asks for all of it before the first is waited for, so that the disk sees it at once.
void carry_out(const Read& read, const EpochSource& source) {
  ask_kernel(read, 0);
  for (const WantedRow& row : read.rows) {
    row.whole ? bring_in(row.record) : source.prepare_part(row.row);
  }
}

std::size_t room_for_cache() {
  return room_under_pressure(memory_room().available, memory_pressure());
}

}  // namespace

struct Readahead::State {
  /// Threads, and what they read. All guarded by mutex.
  struct Disk {
    ReadQueue queue;
    ReadWindow window;
    Condition changed;
    std::vector<std::jthread> readers;
    std::vector<std::jthread> ended;  // have left; to be joined
    std::size_t idle = 0;
  };

  /// What one feed has told, and the thread that looks at it: a look-up waits for the file system,
  /// and other feeds do not wait for that. Readers are started by such a thread, or by each other,
  /// and take its policy on.
  struct Told {
    explicit Told(const State& of)
        : thread(of.elsewhere ? HelperThread(of.elsewhere)
                              : HelperThread(
                                    "bw-readahead", [&of] { adopt(of.policy); }, of.patience)) {}
    std::deque<Notice> notices;  // guarded by the mutex of State, as `looking` is
    bool looking = false;        // at them, or will be
    HelperThread thread;
  };

  State(std::function<std::size_t()> left, std::chrono::milliseconds idle_limit,
        ThreadPolicy wanted)
      : memory_left(left ? std::move(left) : room_for_cache),
        patience(idle_limit),
        policy(std::move(wanted)) {}

  State(HelperThread::Elsewhere others, std::function<std::size_t()> left)
      : memory_left(left ? std::move(left) : room_for_cache),
        patience(0),
        elsewhere(std::move(others)),
        waits_for_reads(false) {}

  ~State() {
    {
      const MutexLock lock(mutex);
      stopping = true;
      for (auto& [device, disk] : disks) disk.changed.notify_all();
    }
    for (auto& [feed, of] : told) of.thread.end();
    // Since they have ended and `stopping` is set, no reader starts another, and none leaves.
    for (auto& [device, disk] : disks) {
      disk.readers.clear();
      disk.ended.clear();
    }
  }

  void put(Notice notice) {
    MutexLock lock(mutex);
    Told& of = told.try_emplace(notice.feed, *this).first->second;  // never erased
    if (of.notices.size() == kReadaheadCapacity) of.notices.pop_front();
    cares = true;
    of.notices.push_back(std::move(notice));
    if (std::exchange(of.looking, true)) return;
    lock.unlock();
    of.thread.put([this, &of] {
      // For lack of memory: what is left is brought in by the look-up that needs it.
      const auto done = as_result(ErrorCode::busy, "", [this, &of]() -> Result<void> {
        look_at_notices(of);
        return {};
      });
      if (done) return;
      const MutexLock again(mutex);
      of.notices.clear();
      of.looking = false;
    });
  }

  void look_at_notices(Told& of) {
    MutexLock lock(mutex);
    // At the end what is left is only a hint, and is dropped.
    while (!stopping && !of.notices.empty()) {
      const Notice notice = std::move(of.notices.front());
      of.notices.pop_front();
      lock.unlock();
      look_at_memory(Clock::now());
      // Freed without the lock: it may be the last to hold its epoch.
      if (const auto source = notice.source.lock()) {
        notice.kind == Notice::Kind::will_need ? ask_for(notice, *source) : behind(notice, *source);
      }
      if (!waits_for_reads) ask_for_all();
      lock.lock();
    }
    of.looking = false;
  }

  void ask_for(const Notice& notice, const EpochSource& source) {
    const auto began = Clock::now();
    auto wanted = wanted_rows(source, notice.id.index);
    if (notice.times) notice.times->add(Stage::readahead, Clock::now() - began);
    add_to_residence(source.snapshot);
    const MutexLock lock(mutex);
    for (auto& [device, rows] : wanted) {
      Disk& disk = disks[device];
      disk.queue.put(notice.feed, {notice.id, notice.source, notice.times, std::move(rows)});
      disk.queue.set_limits(page_cache.ahead_limit(), disk.window.bytes());
      wake_reader(disk);
    }
  }

  /// Without the lock while it asks the file system, which may not answer.
  void add_to_residence(const std::shared_ptr<const Snapshot>& snapshot) {
    {
      const MutexLock lock(mutex);
      if (page_cache.has(snapshot.get())) return;
    }
    const std::uint64_t bytes = snapshot->file_bytes();
    const MutexLock lock(mutex);
    page_cache.add(snapshot, bytes, snapshot->sequences());
  }

  /// Gives back what neither the memory nor another batch has use for.
  void behind(const Notice& notice, const EpochSource& source) {
    std::vector<Row> go;
    {
      const MutexLock lock(mutex);
      for (auto& [device, disk] : disks) {
        disk.queue.used(notice.feed, notice.id);
        wake_reader(disk);  // there may be room to read ahead again
      }
      if (!page_cache.is_short()) {
        cares = !all_idle();
        return;
      }
    }
    source.plan.rows(notice.id.index, go);
    for (const Row& row : go) {
      // The other parts of a sequence are used by other batches.
      if (row.length != 0 && is_whole(row) && goes(source, row)) {
        source.snapshot->let_go(Ordinal{row.ordinal});
      }
    }
  }

  bool all_idle() const REQUIRES(mutex) {
    return std::all_of(told.begin(), told.end(),
                       [](const auto& of) { return of.second.notices.empty(); }) &&
           std::all_of(disks.begin(), disks.end(),
                       [](const auto& disk) { return disk.second.queue.is_idle(); });
  }

  bool goes(const EpochSource& source, const Row& row) {
    const auto place = source.snapshot->place(Ordinal{row.ordinal});
    if (!place) return false;
    const MutexLock lock(mutex);
    const auto disk = disks.find(place->device);
    if (disk != disks.end() && disk->second.queue.wants(place->bytes)) return false;
    return !page_cache.stays(source.snapshot.get(), row.ordinal, place->bytes.size());
  }

  void look_at_memory(Clock::time_point now) {
    {
      const MutexLock lock(mutex);
      if (now - looked < kBetweenLooks) return;
      looked = now;
    }
    const std::size_t room = memory_left();
    const MutexLock lock(mutex);
    page_cache.set_room(room);
  }

  /// Starts a thread where all are at work.
  void wake_reader(Disk& disk) REQUIRES(mutex) {
    if (stopping || disk.queue.empty() || !waits_for_reads) return;
    if (disk.idle != 0) return disk.changed.notify_one();
    disk.ended.clear();
    if (disk.readers.size() == kReaders) return;
    // Once it runs nothing may fail: it waits for the lock that is held here.
    disk.readers.reserve(kReaders);
    auto reader = start_thread("bw-read", [this, &disk](const auto&) { read(disk); });
    if (!reader) return;  // other readers bring it in, or the look-up that needs it
    disk.readers.push_back(std::move(*reader));
  }

  /// The last that a reader does with the lock. Until a thread is joined its stack stays in memory:
  /// of those that leave one after the other only the last one's does. Returns those before it, to
  /// be joined without the lock.
  std::vector<std::jthread> leave(Disk& disk) REQUIRES(mutex) {
    auto before = std::exchange(disk.ended, {});
    const auto self = std::find_if(disk.readers.begin(), disk.readers.end(), [](const auto& one) {
      return one.get_id() == std::this_thread::get_id();
    });
    disk.ended.push_back(std::move(*self));
    disk.readers.erase(self);
    return before;
  }

  /// Without readers: asks for all that may be read now.
  void ask_for_all() {
    const auto next_of_any = [this]() -> std::optional<Read> {
      const MutexLock lock(mutex);
      for (auto& [device, disk] : disks) {
        if (auto next = disk.queue.take()) return next;
      }
      return {};
    };
    while (const auto next = next_of_any()) {
      if (const auto source = next->source.lock()) ask_kernel(*next, kMostForPart);
    }
  }

  std::optional<Read> take(Disk& disk) REQUIRES(mutex) {
    if (disk.queue.empty()) return {};
    if (disk.window.has_room(ReadQueue::kStretchBytes)) return disk.queue.take();
    disk.window.was_full();
    return {};
  }

  /// A reader goes on where memory lacks for a moment.
  void read(Disk& disk) {
    constexpr std::chrono::milliseconds kLack{10};
    while (!as_result(ErrorCode::busy, "", [&]() -> Result<void> {
      read_while_needed(disk);
      return {};
    })) {
      std::this_thread::sleep_for(kLack);
    }
  }

  void read_while_needed(Disk& disk) {
    MutexLock lock(mutex);
    while (!stopping) {
      const auto next = take(disk);
      if (!next) {
        ++disk.idle;
        const auto woken = disk.changed.wait_for(lock, patience);
        --disk.idle;
        if (woken == std::cv_status::timeout && disk.queue.empty() && !stopping) {
          const auto before = leave(disk);
          lock.unlock();
          return;
        }
        continue;
      }
      disk.window.began(next->bytes, Clock::now());
      if (disk.window.has_room(ReadQueue::kStretchBytes)) wake_reader(disk);
      lock.unlock();
      const auto [took, from_disk] = as_result(ErrorCode::busy, "", [&]() -> Result<Outcome> {
                                       return timed(*next);
                                     }).value_or(Outcome{{}, false});
      lock.lock();
      disk.window.done(next->bytes, took, from_disk, Clock::now());
    }
  }

  struct Outcome {
    Clock::duration took;
    bool from_disk;
  };
  static Outcome timed(const Read& read) {
    const auto source = read.source.lock();
    if (!source) return {{}, false};
    const ThreadUsage watch;
    carry_out(read, *source);
    if (read.times && watch.page_faults() != 0) read.times->add_brought_in(read.bytes);
    return {watch.taken(), watch.disk_bytes() != 0 || watch.waited() >= ThreadUsage::kDisk};
  }

  const std::function<std::size_t()> memory_left;
  const std::chrono::milliseconds patience;
  const ThreadPolicy policy = {};
  const HelperThread::Elsewhere elsewhere;
  const bool waits_for_reads = true;  // by readers; else the kernel is asked, and that is all
  mutable Mutex mutex;
  std::map<std::uint64_t, Disk> disks GUARDED_BY(mutex);  // never erased from
  PageCachePolicy page_cache GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;
  std::atomic<bool> cares = false;  // for batches that were used; written with the mutex
  Clock::time_point looked GUARDED_BY(mutex){};        // at the memory
  std::map<std::string, Told> told GUARDED_BY(mutex);  // but the threads; last: they use the others
};

Readahead::Readahead(std::function<std::size_t()> memory_left, std::chrono::milliseconds patience,
                     ThreadPolicy policy)
    : state_(std::make_unique<State>(std::move(memory_left), patience, std::move(policy))) {}
Readahead::Readahead(HelperThread::Elsewhere elsewhere, std::function<std::size_t()> memory_left)
    : state_(std::make_unique<State>(std::move(elsewhere), std::move(memory_left))) {}
Readahead::~Readahead() = default;

void Readahead::will_need(const std::string& feed, const std::shared_ptr<const EpochSource>& source,
                          BatchIndex index, std::shared_ptr<StageTimes> times) {
  state_->put({Notice::Kind::will_need, feed, source, {source->epoch, index}, std::move(times)});
}

void Readahead::used(const std::string& feed, const std::shared_ptr<const EpochSource>& source,
                     BatchIndex index) {
  // Once all pages are in place for good, batches go by without a word.
  if (!state_->cares) return;
  state_->put({Notice::Kind::used, feed, source, {source->epoch, index}, nullptr});
}

ReadaheadFigures Readahead::figures() const {
  const MutexLock lock(state_->mutex);
  ReadaheadFigures figures;
  for (const auto& [device, disk] : state_->disks) {
    figures.disks.push_back({device, disk.window.under_way(), disk.window.bytes(),
                             disk.window.bytes_per_second(), disk.window.latency(),
                             disk.readers.size()});
    figures.ahead_bytes += disk.queue.ahead_bytes();
  }
  figures.kept_bytes = state_->page_cache.kept_bytes();
  return figures;
}

}  // namespace batchwright
