#include "daemon/assembly/copying/copy_timing.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <span>

#include "daemon/assembly/copying/run_copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// A batch's rows come from a map that no cache holds, and go to a slot that none holds either. Some
// milliseconds are too few to fill memory that is larger than all caches; so a small piece of
// memory is taken, and its lines are put out of the caches before each copy.

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMapBytes = std::size_t{4} << 20;
/// Records lie at no particular place, so rows are not aligned as slots are.
constexpr std::size_t kOffset = 16;
/// Of each way, class and round. The longest runs fit once.
constexpr std::size_t kBytes = std::size_t{1} << 20;
static_assert(kMapBytes % kBytes == 0);
/// Enough that one of them is undisturbed; a quiet machine ends there.
constexpr int kMostRounds = 5;

struct Unmap {
  void operator()(std::byte* memory) const noexcept { ::munmap(memory, kMapBytes + kOffset); }
};
using Memory = std::unique_ptr<std::byte, Unmap>;

/// Pages of shared memory, as those of an arena and of a page cache; all in place.
Memory take_memory() {
  void* memory = ::mmap(nullptr, kMapBytes + kOffset, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return Memory(memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory));
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
  Course(std::byte* to, const std::byte* from) : to_(to), from_(from) {}

  double run(const CopyWay& way, std::size_t run_bytes) {
    const std::size_t at = next_;
    next_ = (next_ + kBytes) % kMapBytes;
    put_out_of_caches({from_ + at, kBytes});
    put_out_of_caches({to_ + at, kBytes});
    const std::size_t runs = kBytes / run_bytes;
    const auto start = Clock::now();
    for (std::size_t i = 0; i < runs; ++i) {
      // An odd step visits each run once, in an order that no prefetcher foresees.
      const std::size_t source = i * 37 % runs;
      copy_run(way, to_ + at + i * run_bytes, {from_ + at + source * run_bytes, run_bytes});
    }
    finish_streams();
    const std::chrono::duration<double> taken = Clock::now() - start;
    return static_cast<double>(kBytes) / std::max(taken.count(), 1e-9);
  }

 private:
  std::byte* to_;
  const std::byte* from_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<CopyRates> time_copies(Clock::duration most) {
  const auto end = Clock::now() + most;
  const Memory to = take_memory();
  const Memory from = take_memory();
  if (to == nullptr || from == nullptr) return {};
  std::vector<CopyRates> rates;
  for (const CopyWay& way : copy_ways()) {
    if (way.runs_here()) rates.push_back({&way, {}});
  }
  Course course(to.get(), from.get() + kOffset);
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
