#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "formats/formats.h"

namespace batchwright {

/// Knows the files of the daemon's sockets, and notices when one is gone or is another, as after a
/// clean-up of /run. Then no new client can connect, though those that are connected go on.
/// Lifetime: `loop` outlives it. Threads: the event loop, or before it runs. A look is one lstat()
/// a socket, by a thread of its own; the destructor waits for it.
class SocketWatch {
 public:
  static constexpr std::chrono::seconds kBetweenLooks{2};

  /// The sockets are there by now. `changed` is called when gone() has changed, with those that
  /// are newly gone.
  SocketWatch(boost::asio::io_context& loop, const std::vector<std::string>& paths,
              std::function<void(const std::vector<std::string>&)> changed,
              std::chrono::milliseconds between = kBetweenLooks);

  /// Paths that do not lead to the sockets they led to.
  const std::vector<std::string>& gone() const { return gone_; }

 private:
  void look();
  void look_later();
  void looked(std::vector<std::string> gone);

  boost::asio::io_context& loop_;
  std::vector<SocketFile> files_;  ///< Does not change once it is made.
  std::vector<std::string> gone_;
  std::function<void(const std::vector<std::string>&)> changed_;
  const std::chrono::milliseconds between_;
  boost::asio::steady_timer timer_;
  /// A result that comes back after the end finds it gone.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  HelperThread thread_{"bw-sockets", nullptr, std::chrono::milliseconds{0}};
};

}  // namespace batchwright
