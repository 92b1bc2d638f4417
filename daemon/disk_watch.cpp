#include "daemon/disk_watch.h"

#include <sys/statvfs.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace batchwright {
namespace {

/// False where the file system does not answer, or the file is gone.
bool measure(DiskStats& disk) {
  struct statvfs status {};
  if (::statvfs(disk.path.c_str(), &status) != 0) return false;
  // What the file system keeps back for root is not counted: the service does not run as root.
  disk.free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  disk.size_bytes = std::uint64_t{status.f_blocks} * status.f_frsize;
  return true;
}

}  // namespace

DiskWatch::DiskWatch(boost::asio::io_context& loop, Files files, std::chrono::milliseconds between)
    : loop_(loop), files_(std::move(files)), between_(between), timer_(loop) {
  look();
}

void DiskWatch::look() {
  // Asked for at each look: a reload may have changed the feeds and their files.
  std::vector<DiskStats> disks = files_();
  if (disks.empty()) {
    latest_->clear();
    return look_later();
  }
  // Posted back with the weak pointer first: without it, `this` is gone, too.
  auto loop = boost::asio::make_work_guard(loop_);
  thread_.put([this, loop = std::move(loop), disks = std::move(disks),
               latest = std::weak_ptr(latest_)]() mutable {
    // One that cannot be measured is left out: a 0 would be taken for a full disk.
    std::erase_if(disks, [](DiskStats& disk) { return !measure(disk); });
    boost::asio::post(loop.get_executor(), [this, disks = std::move(disks), latest]() mutable {
      const auto into = latest.lock();
      if (!into) return;
      *into = std::move(disks);
      look_later();
    });
  });
}

void DiskWatch::look_later() {
  timer_.expires_after(between_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

}  // namespace batchwright
