#include "daemon/assembly/assembler.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <thread>
#include <utility>

#include "daemon/assembly/batch_builder.h"
#include "daemon/assembly/thread_usage.h"
#include "daemon/assembly/threads/few_threads.h"
#include "daemon/assembly/threads/helper_thread.h"
#include "daemon/assembly/threads/thread_watch.h"

namespace batchwright {
namespace {

/// -1.2e17 in float32, far below 0 in integers: a value that shows where it is read.
constexpr int kPoison = 0xDB;
constexpr std::chrono::milliseconds kHeldBack{10};  // from one look at long jobs to the next

/// Where assembly threads work for no feed: none has such a name.
const std::array<std::string, 3> kBetween{"", " look-ups", " plans"};

bool is_feed(const std::string& lane) {
  return std::find(kBetween.begin(), kBetween.end(), lane) == kBetween.end();
}

using Clock = FairQueue::Time::clock;

static_assert(kMakeSteps == kRecipeSteps, "the stats room has each of a recipe's steps");

void tell_making(const MadeRows& made, StageTimes& times) {
  for (std::size_t i = 0; i < kMakeSteps; ++i) {
    times.add(static_cast<MakeStep>(i), made.step_seconds[i]);
  }
  times.add_sound(made.sound_seconds);
}

}  // namespace

const Schema& row_schema(const Snapshot& snapshot, const Recipe* recipe) {
  return recipe != nullptr ? recipe->schema() : snapshot.schema();
}

Result<AssembledBatch> assemble_batch(const BatchSource& source, const BatchStyle& style,
                                      BatchIndex index, std::span<std::byte> slot,
                                      const CopyChoice& copies) {
  // One a thread, so that its lists grow to the largest batch once and allocate no more.
  thread_local BatchBuilder builder;
  const auto named = [&](const Error& error) {
    return Error{error.code, fmt::format("batch {} of epoch {}: {}", index.value,
                                         source.outline().epoch.value, error.message)};
  };
  // Only a lack of memory throws here, and it may pass.
  auto batch = as_result(ErrorCode::busy, "", [&] {
    return builder.build({source, style, index, slot, copies});
  });
  if (!batch) return named(batch.error());
  return batch;
}

struct Assembler::State {
  struct Job {
    std::shared_ptr<const BatchSource> source;
    std::shared_ptr<const BatchStyle> style;
    BatchIndex index;
    std::span<std::byte> slot;
    Done done;
    Urgency urgency = Urgency::ahead;
    bool fetched = false;
    std::uint64_t page_faults = 0;  ///< Page faults of fetching.
  };
  using SharedJob = std::shared_ptr<Job>;

  /// Of one entry, and empty while its thread is at work.
  using Own = std::list<ThreadAtWork>;

  /// What is known of one feed's pages, and the thread that waits for them.
  struct Pages {
    explicit Pages(const ThreadPolicy& policy)
        : fetcher("bw-fetch", [&policy] { adopt(policy); }) {}
    ColdFeedDetector cold_feeds;  // guarded by the mutex of State, as `own` is
    Own own{1};
    HelperThread fetcher;
  };

  State(unsigned count, std::string_view way, ThreadPolicy wanted)
      : copies(CopyChoice::of_name(way)),
        policy(std::move(wanted)),
        wanted_threads(count),
        queue(count) {
    const MutexLock lock(mutex);
    start_threads();
  }

  /// All that are wanted, unless the system has fewer to spare: then the rest with a later job.
  void start_threads() REQUIRES(mutex) {
    ended.clear();
    while (threads.size() - lost < wanted_threads) {
      // One that had begun, and for which there is no room, cannot be ended.
      threads.reserve(wanted_threads + lost);
      ended.reserve(wanted_threads + lost);
      auto thread = start_thread("bw-assembly", [this](const auto&) { work(); });
      if (!thread) return;
      threads.push_back(std::move(*thread));
    }
  }

  ~State() {
    {
      MutexLock lock(mutex);
      ending = true;
      rested.notify_all();
      // Jobs may be with a fetcher, which hands them back to these threads: so they end last.
      all_answered.wait(lock, [this]() REQUIRES(mutex) { return unanswered == 0; });
      stopping = true;
    }
    changed.notify_all();
    threads.clear();  // joined, as those in `ended` are: they use the other members
  }

  void work() {
    adopt(policy);
    Own own{1};
    const auto entry = own.begin();
    entry->is_assembly = true;
    MutexLock lock(mutex);
    for (;;) {
      changed.wait(lock, [this]() REQUIRES(mutex) { return stopping || !queue.empty(); });
      if (queue.empty()) return;  // stopping
      auto taken = queue.take(Clock::now());
      if (!taken) {
        // Long jobs that leave this thread to others, until those have had nothing for a moment.
        changed.wait_for(lock, kHeldBack);
        continue;
      }
      enter(own, taken->feed);
      lock.unlock();
      const auto computed = thread_time();
      const bool answered = run(*taken);
      const auto rest = is_feed(taken->feed) ? rest_after(thread_time() - computed, policy.share)
                                             : std::chrono::nanoseconds(0);
      lock.lock();
      // In any case: a job that goes on elsewhere has left its thread free.
      const bool was_lost = take_back(own, entry);
      if (answered && --unanswered == 0) all_answered.notify_all();
      if (was_lost && threads.size() - lost > wanted_threads) return leave();
      if (rest.count() > 0)
        rested.wait_for(lock, rest, [this]() REQUIRES(mutex) { return ending; });
    }
  }

  /// The calling thread begins a job.
  void enter(Own& own, const std::string& feed) REQUIRES(mutex) {
    own.front().feed = feed;
    own.front().watch = ThreadWatch(Clock::now());
    at_work.splice(at_work.end(), own);
  }

  /// A job of an assembly thread ends. Whether the thread was lost.
  bool take_back(Own& own, Own::iterator entry) REQUIRES(mutex) {
    own.splice(own.end(), at_work, entry);
    if (!std::exchange(entry->is_lost, false)) {
      queue.done(entry->feed, Clock::now());
      return false;
    }
    --lost;
    queue.find(entry->feed, Clock::now());
    changed.notify_all();  // its feed may have jobs
    return true;
  }

  /// Another thread has taken the place of this one.
  void leave() REQUIRES(mutex) {
    const auto self = std::find_if(threads.begin(), threads.end(), [](const auto& one) {
      return one.get_id() == std::this_thread::get_id();
    });
    ended.push_back(std::move(*self));
    threads.erase(self);
  }

  bool look(Clock::time_point now) {
    const MutexLock lock(mutex);
    for (ThreadAtWork& each : at_work) {
      if (now - each.watch.began() < kLost) continue;
      each.watch.look(now);
      if (!each.is_assembly || each.is_lost || now - each.watch.moved() < kLost) continue;
      each.is_lost = true;
      ++lost;
      queue.lose(each.feed, now);
    }
    start_threads();
    return unanswered != 0;
  }

  std::optional<Time> waits_for_pages(const std::string& feed) const {
    const auto now = Clock::now();
    std::optional<Time> since;
    const MutexLock lock(mutex);
    for (const ThreadAtWork& each : at_work) {
      const Time moved = each.watch.moved();
      if (each.feed == feed && now - moved >= kLost) since = std::min(since.value_or(moved), moved);
    }
    return since;
  }

  /// What waits for pages goes by another name from now on.
  void replace(const std::string& feed) {
    if (!waits_for_pages(feed)) return;
    const MutexLock lock(mutex);
    const std::string name = fmt::format("{} (replaced, {})", feed, ++replaced);
    for (ThreadAtWork& each : at_work) {
      if (each.feed == feed) each.feed = name;
    }
    queue.rename(feed, name, Clock::now());
    auto its_pages = pages.extract(feed);
    its_pages.key() = name;
    pages.insert(std::move(its_pages));
  }

  /// False when the job goes on elsewhere.
  static bool run(FairQueue::Taken& taken) {
    const bool answered = taken.work();
    taken.work = nullptr;  // what it holds is freed before it counts as answered
    return answered;
  }

  void put(const std::string& feed, Urgency urgency, FairQueue::Work job) {
    {
      const MutexLock lock(mutex);
      start_threads();
      queue.put(feed, urgency, std::move(job), Clock::now());
    }
    changed.notify_one();
  }

  /// For lack of memory the job is answered at once.
  void begin(const SharedJob& job) {
    const auto begun = as_result(ErrorCode::busy, "", [&]() -> Result<void> {
      if (Pages* to_fetch = must_fetch(*job)) {
        fetch(*to_fetch, job);
      } else {
        put(job->style->feed, job->urgency, [this, job] { return assemble(job); });
      }
      return {};
    });
    if (begun) return;
    job->done(begun.error());
    count_answer();
  }

  /// From here on nothing throws: destruction waits for the answer. True: for no other.
  bool await_answer() {
    const MutexLock lock(mutex);
    return unanswered++ == 0;
  }

  void count_answer() {
    const MutexLock lock(mutex);
    if (--unanswered == 0) all_answered.notify_all();
  }

  /// Never erased: without work it has no thread.
  Pages& pages_of(const Job& job) REQUIRES(mutex) {
    return pages.try_emplace(job.style->feed, policy).first->second;
  }

  /// Null when an assembly thread may have the job as it is.
  Pages* must_fetch(const Job& job) {
    const MutexLock lock(mutex);
    Pages& of_feed = pages_of(job);
    // Fetched once is enough: what has been dropped from memory again is waited for.
    return !kFewThreads && !job.fetched && of_feed.cold_feeds.is_cold() ? &of_feed : nullptr;
  }

  void fetch(Pages& from, const SharedJob& job) {
    from.fetcher.put([this, &from, job] {
      const ThreadUsage watch;
      const auto entry = from.own.begin();
      {
        const MutexLock lock(mutex);
        enter(from.own, job->style->feed);
      }
      job->source->prepare(job->index);
      job->fetched = true;
      job->page_faults = watch.page_faults();
      if (StageTimes* times = job->style->times.get()) {
        times->add(Stage::fetch, watch.taken());
        times->add_storage_wait(watch.waited());
        times->add_processor_wait(watch.lacked_processor());
      }
      {
        const MutexLock lock(mutex);
        from.own.splice(from.own.end(), at_work, entry);
        from.cold_feeds.fetched(watch.waited() >= ThreadUsage::kDisk);
      }
      // Back in line, behind what its feed has waiting.
      begin(job);
    });
  }

  /// A feed may have become cold while its job was in line.
  bool assemble(const SharedJob& job) {
    if (Pages* to_fetch = must_fetch(*job)) {
      fetch(*to_fetch, job);
      return false;
    }
    const ThreadUsage watch;
    auto batch = assemble_batch(*job->source, *job->style, job->index, job->slot, copies);
    if (batch) batch->page_faults = job->page_faults + watch.page_faults();
    if (StageTimes* times = job->style->times.get()) {
      times->add(Stage::assemble, watch.taken());
      times->add_storage_wait(watch.waited());
      times->add_processor_wait(watch.lacked_processor());
      if (batch) tell_making(batch->made, *times);
    }
    {
      const MutexLock lock(mutex);
      pages_of(*job).cold_feeds.assembled(watch.waited() >= ThreadUsage::kDisk);
    }
    // Without the lock: what it does is the caller's, and may take a lock of its own.
    job->done(std::move(batch));
    return true;
  }

  const CopyChoice copies;
  const ThreadPolicy policy;
  const std::size_t wanted_threads;
  mutable Mutex mutex;
  Condition changed;
  Condition all_answered;
  Condition rested;
  FairQueue queue GUARDED_BY(mutex);
  std::map<std::string, Pages> pages GUARDED_BY(mutex);  // except for the fetchers
  std::size_t unanswered GUARDED_BY(mutex) = 0;
  bool ending GUARDED_BY(mutex) = false;  // no thread rests any more
  bool stopping GUARDED_BY(mutex) = false;
  Own at_work GUARDED_BY(mutex);
  std::size_t lost GUARDED_BY(mutex) = 0;               // threads that wait for pages
  std::size_t replaced GUARDED_BY(mutex) = 0;           // feeds
  std::vector<std::jthread> threads GUARDED_BY(mutex);  // but at the beginning and the end
  std::vector<std::jthread> ended;                      // the same: have left; to be joined
  std::function<void()> on_begun;                       // of the thread that submits
};

Assembler::Assembler(unsigned threads, std::string_view copies, ThreadPolicy policy)
    : state_(std::make_unique<State>(std::max(threads, 1U), copies, std::move(policy))) {}

Assembler::~Assembler() = default;

void Assembler::submit(std::shared_ptr<const BatchSource> source,
                       std::shared_ptr<const BatchStyle> style, BatchIndex index,
                       std::span<std::byte> slot, Done done, Urgency urgency) {
  auto job = std::make_shared<State::Job>(State::Job{std::move(source), std::move(style), index,
                                                     slot, std::move(done), urgency, false, 0});
  if (state_->await_answer() && state_->on_begun) state_->on_begun();
  state_->begin(job);
}

void Assembler::poison(std::span<std::byte> slot, std::function<void()> done) {
  // The slot is out of use until then.
  do_between(Between::slots, [slot, done = std::move(done)] {
    std::memset(slot.data(), kPoison, slot.size());
    done();
  });
}

void Assembler::do_between(Between kind, std::function<void()> work) {
  state_->await_answer();
  const std::string& lane = kBetween.at(static_cast<std::size_t>(kind));
  state_->put(lane, Urgency::demanded, [work = std::move(work)] {
    work();
    return true;
  });
}

void Assembler::on_begun(std::function<void()> begun) { state_->on_begun = std::move(begun); }

bool Assembler::look(Time now) { return state_->look(now); }

std::optional<Assembler::Time> Assembler::waits_for_pages(const std::string& feed) const {
  return state_->waits_for_pages(feed);
}

void Assembler::replace(const std::string& feed) { state_->replace(feed); }

const CopyChoice& Assembler::copies() const { return state_->copies; }

std::map<std::string, FeedShare> Assembler::shares() const {
  const MutexLock lock(state_->mutex);
  auto shares = state_->queue.shares(Clock::now());
  for (const std::string& lane : kBetween) shares.erase(lane);
  return shares;
}

}  // namespace batchwright
