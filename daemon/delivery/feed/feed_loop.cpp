#include "daemon/delivery/feed/feed_loop.h"

namespace batchwright {

FeedLoop::FeedLoop(boost::asio::io_context& loop)
    : loop_(loop), timers_{Timer{boost::asio::steady_timer(loop), {}},
                           Timer{boost::asio::steady_timer(loop), {}},
                           Timer{boost::asio::steady_timer(loop), {}},
                           Timer{boost::asio::steady_timer(loop), {}},
                           Timer{boost::asio::steady_timer(loop), {}},
                           Timer{boost::asio::steady_timer(loop), {}}} {}

void FeedLoop::set(Alarm alarm, Time when, std::function<void()> then) {
  if (silent_) return;
  Timer& timer = timers_[static_cast<std::size_t>(alarm)];
  timer.due = when;
  timer.timer.expires_at(when);
  timer.timer.async_wait(
      [&timer, then = std::move(then), alive = std::weak_ptr(alive_)](const auto& error) {
        if (error || alive.expired()) return;
        timer.due.reset();
        then();
      });
}

void FeedLoop::silence() {
  silent_ = true;
  for (Timer& timer : timers_) timer.timer.cancel();
}

void FeedLoop::soon(Chore chore, std::function<void()> then) {
  bool& posted = posted_[static_cast<std::size_t>(chore)];
  if (std::exchange(posted, true)) return;
  boost::asio::post(loop_, awaited([&posted, then = std::move(then)] {
                      posted = false;
                      then();
                    }));
}

}  // namespace batchwright
