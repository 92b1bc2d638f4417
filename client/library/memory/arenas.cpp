#include "client/library/memory/arenas.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "client/library/held_back_signals.h"

namespace batchwright {

Arenas::Arenas(std::shared_ptr<ArenaSource> source)
    : source_(std::move(source)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Arenas::~Arenas() {
  if (!watcher_.joinable()) return;
  const std::uint64_t one = 1;
  static_cast<void>(!write(stop_.get(), &one, sizeof one));  // an eventfd of 0 takes it
  watcher_.join();
}

std::shared_ptr<const Mapping> Arenas::find(ArenaNumber number) {
  const MutexLock lock(mutex_);
  const auto found = mapped_.find(number);
  return found == mapped_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<const Mapping>> Arenas::fetch(ArenaNumber number, const Deadline& deadline) {
  start_watching();
  auto fetched = source_->fetch(number, deadline);
  if (!fetched) return fetched;
  Mapped outgrown;  // unmapped behind the lock
  {
    const MutexLock lock(mutex_);
    for (auto entry = mapped_.begin(); entry != mapped_.end();) {
      const bool smaller = entry->first < number && entry->first.feed() == number.feed();
      const auto next = std::next(entry);
      if (smaller) outgrown.insert(mapped_.extract(entry));
      entry = next;
    }
    if (!ended_) mapped_[number] = *fetched;
  }
  return fetched;
}

/// Where no thread can be had the memory stays until the next call: nothing worse.
void Arenas::start_watching() {
  if (watcher_.joinable() || !stop_ || source_->descriptor() < 0) return;
  const HeldBackSignals signals;
  if (auto thread = start_thread(nullptr, [this](const auto&) { watch(); })) {
    watcher_ = std::move(*thread);
  }
}

/// Bytes on the connection are answers for the call that asked: only the connection's end counts
/// here.
void Arenas::watch() {
  std::array<pollfd, 2> items{{{source_->descriptor(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}}};
  while (poll(items.data(), items.size(), -1) < 0 && errno == EINTR) {
  }
  if (items[1].revents != 0) return;
  Mapped let_go;
  const MutexLock lock(mutex_);
  ended_ = true;
  let_go.swap(mapped_);
}

}  // namespace batchwright
