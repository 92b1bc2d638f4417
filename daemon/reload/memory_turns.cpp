#include "daemon/reload/memory_turns.h"

#include "formats/formats.h"

namespace batchwright {

void MemoryTurns::enter(std::size_t place) {
  const MutexLock lock(mutex_);
  places_.insert(place);
}

void MemoryTurns::leave(std::size_t place) {
  {
    const MutexLock lock(mutex_);
    places_.erase(place);
  }
  changed_.notify_all();
}

void MemoryTurns::clear() {
  {
    const MutexLock lock(mutex_);
    places_.clear();
  }
  changed_.notify_all();
}

template <class Done>
void MemoryTurns::await(const std::stop_token& stop, Done done) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, stop, longest_, done);
}

void MemoryTurns::await(std::size_t place, const std::stop_token& stop) {
  await(stop,
        [this, place]() REQUIRES(mutex_) { return places_.empty() || *places_.begin() >= place; });
}

void MemoryTurns::await_others(std::size_t place, const std::stop_token& stop) {
  await(stop, [this, place]() REQUIRES(mutex_) { return places_.size() == places_.count(place); });
}

}  // namespace batchwright
