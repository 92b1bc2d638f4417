#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

namespace batchwright {

/// Work that comes again a period after each time, for as long as there is any.
///
/// Lifetime: destroyed when the loop no longer runs.
/// Threads: the event loop only. A round never comes from within start().
class RepeatingTimer {
 public:
  /// `round` does the work, and returns whether there is more to do.
  RepeatingTimer(boost::asio::io_context& loop, std::chrono::milliseconds period,
                 std::function<bool()> round);

  /// The next round comes a period from now, even if one was to come sooner.
  void start();
  /// Whether a round is to come.
  bool is_running() const { return running_; }

 private:
  boost::asio::steady_timer timer_;
  std::chrono::milliseconds period_;
  std::function<bool()> round_;
  bool running_ = false;
};

}  // namespace batchwright
