#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/core/events.h"
#include "formats/formats.h"

namespace batchwright {

/// A feed's way to the event loop and back: its timers, what it puts off to the end of a turn, and
/// the calls back to it that are under way. So this is what knows whether the feed may be
/// destroyed. Threads: the event loop only.
class FeedLoop {
 public:
  using Time = boost::asio::steady_timer::time_point;

  explicit FeedLoop(boost::asio::io_context& loop);

  /// Calls `then` at this time, in place of what the timer was set for before.
  void set(FeedTimer timer, Time when, std::function<void()> then);
  bool is_set(FeedTimer timer) const {
    return timers_[static_cast<std::size_t>(timer)].due.has_value();
  }
  /// Every timer, for good.
  void silence();

  /// Later in this turn of the loop, and once, however often it is asked for by then.
  void soon(std::function<void()> then);

  /// A call back that comes on the loop, later and exactly once.
  template <class Then>
  auto awaited(Then then) {
    ++under_way_;
    return [this, then = std::move(then)](auto&&... results) mutable {
      --under_way_;
      then(std::forward<decltype(results)>(results)...);
    };
  }
  /// A call back that comes on another thread, once, and is brought to the loop.
  template <class Then>
  auto brought_back(Then then) {
    return [&loop = loop_, then = awaited(std::move(then))](auto... results) mutable {
      boost::asio::post(loop, [then = std::move(then), ... results = std::move(results)]() mutable {
        then(std::move(results)...);
      });
    };
  }
  /// The same, and the loop is woken for several calls together: once as many are here as were
  /// under way. While wake_for_each() is set, it is woken for every call.
  template <class Then>
  auto gathered(Then then) {
    {
      const MutexLock lock(gathering_->mutex);
      ++gathering_->under_way;
    }
    return [into = gathering_, then = awaited(std::move(then))](auto... results) mutable {
      into->add([then = std::move(then), ... results = std::move(results)]() mutable {
        then(std::move(results)...);
      });
    };
  }
  /// A turn begins: makes the calls that are gathered by now. What they put off to the end of the
  /// turn is this one.
  void call_gathered();
  /// Whether the loop is woken for each call from now on, and so for those that are here.
  void wake_for_each(bool each);

  /// Does `work` on a thread of the feed's own, and calls `then` on the loop with what comes of it.
  template <class Work, class Then>
  void elsewhere(Work work, Then then) {
    thread_.put(
        [work = std::move(work), done = brought_back(std::move(then))]() mutable { done(work()); });
  }

  /// The same on a thread for the files that the feed writes, which waits for no dataset.
  template <class Work, class Then>
  void at_files(Work work, Then then) {
    files_.put(
        [work = std::move(work), done = brought_back(std::move(then))]() mutable { done(work()); });
  }

  /// The same on a thread for the feed's record, each of whose steps waits for its disk.
  template <class Work, class Then>
  void at_record(Work work, Then then) {
    record_.put(
        [work = std::move(work), done = brought_back(std::move(then))]() mutable { done(work()); });
  }

  /// Waits for all that was to be done elsewhere; no call back comes of it.
  void end() {
    thread_.end();
    files_.end();
    record_.end();
  }

  /// No other thread works for the feed, and no call back to it is under way.
  bool at_rest() const { return under_way_ == 0; }

 private:
  /// Calls that wait for the loop. It outlives the feed as long as a thread is within add().
  struct Gathering : std::enable_shared_from_this<Gathering> {
    explicit Gathering(boost::asio::io_context& its_loop) : loop(its_loop) {}
    void add(std::function<void()> call);
    void call();
    void wake();

    boost::asio::io_context& loop;
    Mutex mutex;
    std::vector<std::function<void()>> calls GUARDED_BY(mutex);
    std::size_t under_way GUARDED_BY(mutex) = 0;
    bool each GUARDED_BY(mutex) = true;
  };
  struct Timer {
    boost::asio::steady_timer timer;
    std::optional<Time> due;
  };

  boost::asio::io_context& loop_;
  std::array<Timer, kFeedTimers> timers_;
  bool posted_ = false;
  std::shared_ptr<Gathering> gathering_;
  bool silent_ = false;
  std::uint32_t under_way_ = 0;
  /// A timer's handler that is due already cannot be called off: it looks whether this is there.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  /// Last: it is joined before what it posts to goes.
  HelperThread thread_{"bw-feed"};
  HelperThread files_{"bw-journal"};
  HelperThread record_{"bw-record"};
};

}  // namespace batchwright
