#include "daemon/delivery/feed/feed_loop.h"

namespace batchwright {

FeedLoop::FeedLoop(boost::asio::io_context& loop)
    : loop_(loop),
      timers_{
          Timer{boost::asio::steady_timer(loop), {}}, Timer{boost::asio::steady_timer(loop), {}},
          Timer{boost::asio::steady_timer(loop), {}}, Timer{boost::asio::steady_timer(loop), {}},
          Timer{boost::asio::steady_timer(loop), {}}, Timer{boost::asio::steady_timer(loop), {}},
          Timer{boost::asio::steady_timer(loop), {}}},
      gathering_(std::make_shared<Gathering>(loop)) {}

void FeedLoop::Gathering::add(std::function<void()> call) {
  MutexLock lock(mutex);
  calls.push_back(std::move(call));
  --under_way;
  const bool is_due = each || under_way == 0;
  lock.unlock();  // the loop, once awake, takes it
  if (is_due) wake();
}

void FeedLoop::Gathering::call() {
  std::vector<std::function<void()>> all;
  {
    const MutexLock lock(mutex);
    all.swap(calls);
  }
  for (const auto& one : all) one();
}

void FeedLoop::Gathering::wake() {
  boost::asio::post(loop, [self = shared_from_this()] { self->call(); });
}

void FeedLoop::wake_for_each(bool each) {
  MutexLock lock(gathering_->mutex);
  gathering_->each = each;
  const bool any = !gathering_->calls.empty();
  lock.unlock();
  if (each && any) gathering_->wake();
}

void FeedLoop::call_gathered() {
  const bool posted = std::exchange(posted_, true);
  gathering_->call();
  posted_ = posted;
}

void FeedLoop::set(FeedTimer timer, Time when, std::function<void()> then) {
  if (silent_) return;
  Timer& own = timers_[static_cast<std::size_t>(timer)];
  own.due = when;
  own.timer.expires_at(when);
  own.timer.async_wait(
      [&own, then = std::move(then), alive = std::weak_ptr(alive_)](const auto& error) {
        if (error || alive.expired()) return;
        own.due.reset();
        then();
      });
}

void FeedLoop::silence() {
  silent_ = true;
  wake_for_each(true);
  for (Timer& timer : timers_) timer.timer.cancel();
}

void FeedLoop::soon(std::function<void()> then) {
  if (std::exchange(posted_, true)) return;
  boost::asio::post(loop_, awaited([this, then = std::move(then)] {
                      posted_ = false;
                      then();
                    }));
}

}  // namespace batchwright
