#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/assembly/assembler.h"

// One thread and a queue of its own, not boost::asio::thread_pool: a pool's queue has no bound, and
// here the oldest wish is the one to drop.

namespace batchwright {
namespace {

struct Wish {
  std::shared_ptr<const EpochSource> source;
  BatchIndex index;
  std::shared_ptr<StageTimes> times;
};

void ask_for(const Wish& wish, std::vector<Row>& rows) {
  const auto began = std::chrono::steady_clock::now();
  wish.source->plan.rows(wish.index, rows);
  for (const Row& row : rows) {
    // A lane that ran out has no sequence.
    if (row.length != 0) wish.source->snapshot->will_need(Ordinal{row.ordinal});
  }
  if (wish.times) wish.times->add(Stage::readahead, std::chrono::steady_clock::now() - began);
}

}  // namespace

/// The queue and its thread. A wish that came long ago is the first to be out of date, for
/// assembly has probably read those pages itself by now.
struct Readahead::State {
  State() : thread([this] { run(); }) {
    pthread_setname_np(thread.native_handle(), "bw-readahead");
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_one();
    thread.join();
  }

  void put(Wish wish) {
    Wish dropped;  // released after the lock: it may be the last to hold its epoch
    {
      const std::lock_guard lock(mutex);
      if (wishes.size() == kReadaheadCapacity) {
        dropped = std::move(wishes.front());
        wishes.pop_front();
      }
      wishes.push_back(std::move(wish));
    }
    changed.notify_one();
  }

  void run() {
    std::vector<Row> rows;
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || !wishes.empty(); });
      // What is left is only a hint, and is dropped.
      if (stopping) return;
      Wish wish = std::move(wishes.front());
      wishes.pop_front();
      lock.unlock();
      ask_for(wish, rows);
      // Before the lock: it may be the last to hold its epoch, which then frees its plan.
      wish = {};
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Wish> wishes;  // guarded by mutex
  bool stopping = false;    // guarded by mutex
  std::thread thread;       // last: it uses the others from its first line on
};

Readahead::Readahead() : state_(std::make_unique<State>()) {}
Readahead::~Readahead() = default;

void Readahead::will_need(std::shared_ptr<const EpochSource> source, BatchIndex index,
                          std::shared_ptr<StageTimes> times) {
  state_->put({std::move(source), index, std::move(times)});
}

}  // namespace batchwright
