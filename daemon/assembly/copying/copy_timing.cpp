#include "daemon/assembly/copying/copy_timing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>

#include "daemon/assembly/copying/run_copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A batch's rows come from a map that no cache holds, and go to a slot that none holds either; nor
// does the processor remember where the pages of either lie. Some milliseconds are too few to fill
// memory that is larger than all caches. So a small piece of memory is taken, which a process sees
// at many addresses: lines are put out of the caches at the first of them, before each copy, and
// copied at the others, at each of which no page was looked at before.

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = std::size_t{256} << 10;  ///< Of each way, class and round.
constexpr std::size_t kPieces = 16;                     ///< Of so many bytes; copies take turns.
constexpr std::size_t kMemoryBytes = kPieces * kBytes;
/// Where the memory is seen. Each place is copied from, and to, only once: enough for all rounds.
constexpr std::size_t kViews = 12;
/// Records lie at no particular place, so rows are not aligned as slots are.
constexpr std::size_t kOffset = 16;
/// Enough that one of them is undisturbed; a quiet machine ends there.
constexpr int kMostRounds = 5;

struct Unmap {
  void operator()(std::byte* memory) const noexcept { ::munmap(memory, kViews * kMemoryBytes); }
};
using Views = std::unique_ptr<std::byte, Unmap>;

/// Pages of shared memory, as those of an arena and of a page cache, all in place, and seen at
/// kViews addresses one behind the other. Null where the system does not give that.
Views take_memory() {
  void* const room = ::mmap(nullptr, kViews * kMemoryBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  Views views(static_cast<std::byte*>(room));
  const Descriptor file(::memfd_create("batchwright-timing", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), kMemoryBytes) != 0) return nullptr;
  for (std::size_t i = 0; i < kViews; ++i) {
    void* const view = ::mmap(views.get() + i * kMemoryBytes, kMemoryBytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED | MAP_POPULATE, file.get(), 0);
    if (view == MAP_FAILED) return nullptr;
  }
  return views;
}

void put_out_of_caches([[maybe_unused]] std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) _mm_clflush(bytes.data() + at);
  _mm_mfence();
#elif defined(__aarch64__)
  for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) {
    asm volatile("dc civac, %0" : : "r"(bytes.data() + at) : "memory");
  }
  asm volatile("dsb ish" : : : "memory");
#endif
}

/// Copies `kBytes` in runs of one length, from places that lie apart, and returns bytes per second.
class Course {
 public:
  Course(std::byte* to, std::byte* from) : to_(to), from_(from) {}

  double run(const CopyWay& way, std::size_t run_bytes) {
    const std::size_t piece = turn_ % kPieces * kBytes;
    const std::size_t seen_at = (1 + turn_ / kPieces % (kViews - 1)) * kMemoryBytes + piece;
    ++turn_;
    put_out_of_caches({from_ + piece, kBytes});
    put_out_of_caches({to_ + piece, kBytes});
    const std::byte* const from = from_ + seen_at;
    std::byte* const to = to_ + seen_at;
    const std::size_t runs = kBytes / run_bytes;
    const auto start = Clock::now();
    for (std::size_t i = 0; i < runs; ++i) {
      // An odd step visits each run once, and no two that follow each other.
      const std::size_t source = i * 27 % runs;
      copy_run(way, to + i * run_bytes,
               {from + source * run_bytes + kOffset, run_bytes - kCacheLine});
    }
    finish_streams();
    const std::chrono::duration<double> taken = Clock::now() - start;
    return static_cast<double>(runs * (run_bytes - kCacheLine)) / std::max(taken.count(), 1e-9);
  }

 private:
  std::byte* to_;
  std::byte* from_;
  std::size_t turn_ = 0;
};

}  // namespace

std::vector<CopyRates> time_copies(Clock::duration most) {
  const auto end = Clock::now() + most;
  const Views to = take_memory();
  const Views from = take_memory();
  if (to == nullptr || from == nullptr) return {};
  std::vector<CopyRates> rates;
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) rates.push_back({&way, {}});
  }
  Course course(to.get(), from.get());
  for (int round = 0; round < kMostRounds && (round == 0 || Clock::now() < end); ++round) {
    for (std::size_t c = 0; c < kRunClasses; ++c) {
      for (CopyRates& each : rates) {
        double& best = each.bytes_per_second[c];
        best = std::max(best, course.run(*each.way, kRunClassRows[c].timed_bytes));
      }
    }
  }
  return rates;
}

}  // namespace batchwright
