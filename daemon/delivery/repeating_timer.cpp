#include "daemon/delivery/repeating_timer.h"

#include <utility>

namespace batchwright {

RepeatingTimer::RepeatingTimer(boost::asio::io_context& loop, std::chrono::milliseconds period,
                               std::function<bool()> round)
    : timer_(loop), period_(period), round_(std::move(round)) {}

void RepeatingTimer::start() {
  running_ = true;
  timer_.expires_after(period_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    running_ = false;
    if (round_()) start();
  });
}

}  // namespace batchwright
