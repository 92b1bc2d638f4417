#include "daemon/delivery/rounds.h"

#include <utility>

namespace batchwright {

Rounds::Rounds(boost::asio::io_context& loop, std::chrono::milliseconds period,
               std::function<bool()> round)
    : timer_(loop), period_(period), round_(std::move(round)) {}

void Rounds::start() {
  running_ = true;
  timer_.expires_after(period_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    running_ = false;
    if (round_()) start();
  });
}

}  // namespace batchwright
