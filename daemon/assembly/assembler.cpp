#include "daemon/assembly/assembler.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "daemon/assembly/batch_builder.h"

namespace batchwright {
namespace {

constexpr int kPoison = 0xDB;

/// What one job takes of the thread it runs on. A thread that went to sleep while it assembled
/// waited for a page, since it takes no lock on its way; one that was only preempted did not sleep.
class JobWatch {
 public:
  void tell(StageTimes& times) const {
    const auto taken = Clock::now() - began_;
    times.add(Stage::assemble, taken);
    if (usage().ru_nvcsw == usage_.ru_nvcsw) return;
    const auto waited = std::chrono::nanoseconds(taken) - (processor_time() - processor_);
    times.add_storage_wait(std::max(waited, std::chrono::nanoseconds(0)));
  }
  std::uint64_t page_faults() const {
    const rusage now = usage();
    return static_cast<std::uint64_t>(now.ru_minflt - usage_.ru_minflt + now.ru_majflt -
                                      usage_.ru_majflt);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::chrono::nanoseconds processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  static rusage usage() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage;
  }

  Clock::time_point began_ = Clock::now();
  std::chrono::nanoseconds processor_ = processor_time();
  rusage usage_ = usage();
};

}  // namespace

Result<AssembledBatch> assemble_batch(const EpochSource& source, const BatchStyle& style,
                                      BatchIndex index, std::span<std::byte> slot) {
  // One a thread, so that its lists grow to the largest batch once and allocate no more.
  thread_local BatchBuilder builder;
  const auto named = [&](const Error& error) {
    return Error{error.code, "batch " + std::to_string(index.value) + " of epoch " +
                                 std::to_string(source.epoch.value) + ": " + error.message};
  };
  try {
    auto batch = builder.build({source, style, index, slot});
    if (!batch) return named(batch.error());
    return batch;
  } catch (const std::exception& failure) {
    // Nothing here throws but for lack of memory, which ends this batch and not the daemon.
    return named({ErrorCode::internal, failure.what()});
  }
}

struct Assembler::State {
  explicit State(unsigned threads) : pool(std::max(threads, 1U)) {}
  boost::asio::thread_pool pool;
};

Assembler::Assembler(unsigned threads) : state_(std::make_unique<State>(threads)) {}

Assembler::~Assembler() { state_->pool.join(); }

void Assembler::submit(std::shared_ptr<const EpochSource> source,
                       std::shared_ptr<const BatchStyle> style, BatchIndex index,
                       std::span<std::byte> slot, Done done) {
  boost::asio::post(state_->pool, [source = std::move(source), style = std::move(style), index,
                                   slot, done = std::move(done)] {
    const JobWatch watch;
    auto batch = assemble_batch(*source, *style, index, slot);
    if (batch) batch->page_faults = watch.page_faults();
    if (style->times) watch.tell(*style->times);
    done(std::move(batch));
  });
}

void Assembler::poison(std::span<std::byte> slot, std::function<void()> done) {
  boost::asio::post(state_->pool, [slot, done = std::move(done)] {
    std::memset(slot.data(), kPoison, slot.size());
    done();
  });
}

}  // namespace batchwright
