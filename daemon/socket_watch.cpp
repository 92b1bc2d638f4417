#include "daemon/socket_watch.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace batchwright {

SocketWatch::SocketWatch(boost::asio::io_context& loop, const std::vector<std::string>& paths,
                         std::function<void(const std::vector<std::string>&)> changed,
                         std::chrono::milliseconds between)
    : loop_(loop), changed_(std::move(changed)), between_(between), timer_(loop) {
  for (const std::string& path : paths) {
    if (SocketFile file(path); file.is_there()) files_.push_back(std::move(file));
  }
  look_later();
}

void SocketWatch::look_later() {
  timer_.expires_after(between_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

void SocketWatch::look() {
  auto loop = boost::asio::make_work_guard(loop_);
  thread_.put([this, loop = std::move(loop), alive = std::weak_ptr(alive_)] {
    std::vector<std::string> gone;
    for (const SocketFile& file : files_) {
      if (!file.is_there()) gone.push_back(file.path());
    }
    boost::asio::post(loop.get_executor(), [this, gone = std::move(gone), alive]() mutable {
      if (alive.expired()) return;
      looked(std::move(gone));
      look_later();
    });
  });
}

void SocketWatch::looked(std::vector<std::string> gone) {
  // A socket that stays gone is told once, not every two seconds.
  if (gone == gone_) return;
  const std::vector<std::string> before = std::exchange(gone_, gone);
  // From here on `gone` is what is newly gone; empty where a file has come back.
  std::erase_if(gone, [&before](const std::string& path) {
    return std::find(before.begin(), before.end(), path) != before.end();
  });
  changed_(gone);
}

}  // namespace batchwright
