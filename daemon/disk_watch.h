#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Measures the room that is left for journals, ledgers and records, so that a disk that fills is
/// seen before a write fails.
///
/// A measurement may wait for a disk or a network, so each file has a thread of its own for it, and
/// is left out while that waits; the destructor waits for them.
/// Lifetime: `loop` outlives it. Threads: the event loop, or before it runs.
class DiskWatch {
 public:
  static constexpr std::chrono::seconds kBetweenLooks{10};
  /// The files to measure for; free and size are not set yet.
  using Files = std::function<std::vector<DiskStats>()>;
  /// Sets free and size; false where they cannot be had. On any thread.
  using Measure = std::function<bool(DiskStats&)>;

  /// `measure`: null for what the file system says.
  DiskWatch(boost::asio::io_context& loop, Files files,
            std::chrono::milliseconds between = kBetweenLooks, Measure measure = nullptr);

  /// The latest figures. A file that cannot be asked about is left out.
  std::vector<DiskStats> latest() const;

 private:
  /// A file, and the thread that asks about it. Looks are rare: it does not stay between them.
  struct Disk {
    bool is_asked = false;
    std::optional<DiskStats> latest;
    HelperThread thread{"bw-disks", nullptr, std::chrono::milliseconds{0}};
  };

  void look();
  void ask(Disk& disk, DiskStats about);

  boost::asio::io_context& loop_;
  Files files_;
  const std::chrono::milliseconds between_;
  const Measure measure_;
  boost::asio::steady_timer timer_;
  std::vector<std::string> order_;  ///< Of the files.
  std::map<std::string, Disk> disks_;
  /// A result that comes back after the end finds it gone.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace batchwright
