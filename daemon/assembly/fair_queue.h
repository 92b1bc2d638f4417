#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace batchwright {

/// Whether a client waits for a batch, or will want it soon.
enum class Urgency : std::uint8_t { ahead, demanded };

/// One feed's share of the assembly threads. The figures only grow.
struct FeedShare {
  double busy_seconds = 0.0;     ///< Threads worked for it, sleeping for a page included.
  double waiting_seconds = 0.0;  ///< It had a job, and every thread was at another.
  /// The parts of that wait, by the feed the threads worked for; this feed may be among them.
  std::map<std::string, double> waited_for;
};

/// The order in which jobs of many feeds get threads: the feed goes first that has had the least
/// of the threads' time (start-time fair queueing; Goyal et al. 1996), and within it batches that a
/// client waits for go before those made ahead.
///
/// A job that a client waits for has a head start over other feeds' jobs. It is bounded, so a feed
/// whose clients always wait can hold up another by kHeadStart of a thread's time, and no more. A
/// feed that had nothing to do gets no credit for it.
///
/// A job cannot be interrupted. So while a feed with short jobs is at work, those whose jobs are
/// long (a recipe's) leave it one of two or more threads: otherwise all threads would be at long
/// jobs whenever it has none for a moment.
///
/// A thread that a job does not give back is lost to its feed: it counts no longer, and the feed
/// gets no other one until it is back. Cost: a step is linear in the number of feeds; those that
/// are gone stay known, by a few words. Threads: one at a time. Time is an argument.
class FairQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// False when the job goes on elsewhere, and is not done yet.
  using Work = std::function<bool()>;
  static constexpr std::chrono::milliseconds kHeadStart{100};
  /// What a long job takes, and for how long after its last job a feed is at work.
  static constexpr std::chrono::milliseconds kLong{20};
  static constexpr std::chrono::milliseconds kAtWork{100};

  /// So many threads take jobs.
  explicit FairQueue(unsigned threads = 1) : threads_(threads) {}

  struct Taken {
    std::string feed;
    Work work;
  };

  void put(const std::string& feed, Urgency urgency, Work work, Time now);
  /// The next job, if there is one that is not held back. A thread is at it until done().
  std::optional<Taken> take(Time now);
  void done(const std::string& feed, Time now);
  /// A thread at the feed's job is lost, and is back: in place of done().
  void lose(const std::string& feed, Time now);
  void find(const std::string& feed, Time now);

  /// What the feed has under way, has lost and waits for goes by `name` from now on, which is new.
  void rename(const std::string& feed, const std::string& name, Time now);

  /// Whether there is no job, except for feeds that have lost a thread.
  bool empty() const;
  /// The share of each feed. A job that is under way counts up to `now`.
  std::map<std::string, FeedShare> shares(Time now);

 private:
  struct Lane {
    std::deque<Work> demanded;
    std::deque<Work> ahead;
    unsigned running = 0;              ///< Threads that are at its jobs.
    unsigned lost = 0;                 ///< Threads that its jobs do not give back.
    std::chrono::nanoseconds used{0};  ///< Threads' time; it decides the place in line.
    std::chrono::nanoseconds used_at_done{0};
    std::chrono::nanoseconds job{0};  ///< What one takes, recently.
    Time last_put{};
    FeedShare share;

    bool is_long() const { return job > kLong; }
    bool has_jobs() const { return !demanded.empty() || !ahead.empty(); }
    bool can_go_on() const { return lost == 0 && has_jobs(); }
    bool is_active() const { return running != 0 || can_go_on(); }
    std::chrono::nanoseconds place() const {
      return demanded.empty() ? used : used - std::chrono::nanoseconds(kHeadStart);
    }
  };

  void advance(Time now);
  bool leaves_a_thread(Time now) const;
  std::chrono::nanoseconds least_used() const;
  static void catch_up(Lane& lane, std::chrono::nanoseconds floor);

  const unsigned threads_;
  std::map<std::string, Lane> lanes_;
  Time last_{};
  unsigned running_ = 0;
};

}  // namespace batchwright
