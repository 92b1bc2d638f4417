#include "daemon/disk_watch.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace batchwright {
namespace {

/// False where the file system does not answer, or the file is gone.
bool measure_by_system(DiskStats& disk) {
  struct statvfs status {};
  if (::statvfs(disk.path.c_str(), &status) != 0) return false;
  // What the file system keeps back for root is not counted: the service does not run as root.
  disk.free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  disk.size_bytes = std::uint64_t{status.f_blocks} * status.f_frsize;
  return true;
}

}  // namespace

DiskWatch::DiskWatch(boost::asio::io_context& loop, Files files, std::chrono::milliseconds between,
                     Measure measure)
    : loop_(loop),
      files_(std::move(files)),
      between_(between),
      measure_(measure ? std::move(measure) : Measure(measure_by_system)),
      timer_(loop) {
  look();
}

std::vector<DiskStats> DiskWatch::latest() const {
  std::vector<DiskStats> all;
  for (const std::string& path : order_) {
    const Disk& disk = disks_.at(path);
    if (disk.latest) all.push_back(*disk.latest);
  }
  return all;
}

/// Asked for at each look: a reload may have changed the feeds and their files.
void DiskWatch::look() {
  order_.clear();
  for (DiskStats& about : files_()) {
    order_.push_back(about.path);
    Disk& disk = disks_[about.path];
    ask(disk, std::move(about));
  }
  std::erase_if(disks_, [this](const auto& disk) {
    return !disk.second.is_asked &&
           std::find(order_.begin(), order_.end(), disk.first) == order_.end();
  });
  timer_.expires_after(between_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) look();
  });
}

void DiskWatch::ask(Disk& disk, DiskStats about) {
  // One that has not answered by now is left out, as what cannot be measured is: a 0 would be taken
  // for a full disk, and an old figure for a new one.
  if (disk.is_asked) return disk.latest.reset();
  disk.is_asked = true;
  auto loop = boost::asio::make_work_guard(loop_);
  disk.thread.put([this, &disk, loop = std::move(loop), about = std::move(about),
                   alive = std::weak_ptr(alive_)]() mutable {
    const bool is_known = measure_(about);
    boost::asio::post(loop.get_executor(),
                      [&disk, is_known, about = std::move(about), alive]() mutable {
                        if (alive.expired()) return;
                        disk.is_asked = false;
                        disk.latest = is_known ? std::optional(std::move(about)) : std::nullopt;
                      });
  });
}

}  // namespace batchwright
