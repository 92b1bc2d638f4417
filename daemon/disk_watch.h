#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Measures the room that is left for journals and ledgers, so that a disk that fills is seen
/// before a write fails.
///
/// A measurement may wait for a disk or a network, so it runs on a thread of its own, one at a
/// time; the destructor waits for it.
/// Lifetime: `loop` outlives it. Threads: the event loop, or before it runs.
class DiskWatch {
 public:
  static constexpr std::chrono::seconds kBetweenLooks{10};
  /// The files to measure for; free and size are not set yet.
  using Files = std::function<std::vector<DiskStats>()>;

  DiskWatch(boost::asio::io_context& loop, Files files,
            std::chrono::milliseconds between = kBetweenLooks);

  /// The latest figures. A file that cannot be asked about is left out.
  const std::vector<DiskStats>& latest() const { return *latest_; }

 private:
  void look();
  void look_later();

  boost::asio::io_context& loop_;
  Files files_;
  const std::chrono::milliseconds between_;
  boost::asio::steady_timer timer_;
  /// A result that comes back after the end finds it gone.
  std::shared_ptr<std::vector<DiskStats>> latest_ = std::make_shared<std::vector<DiskStats>>();
  /// Looks are rare: it does not stay between them.
  HelperThread thread_{"bw-disks", nullptr, std::chrono::milliseconds{0}};
};

}  // namespace batchwright
