#include "daemon/reload/memory_turns.h"

namespace batchwright {

void MemoryTurns::enter(std::size_t place) {
  const std::lock_guard lock(mutex_);
  places_.insert(place);
}

void MemoryTurns::leave(std::size_t place) {
  {
    const std::lock_guard lock(mutex_);
    places_.erase(place);
  }
  changed_.notify_all();
}

void MemoryTurns::clear() {
  {
    const std::lock_guard lock(mutex_);
    places_.clear();
  }
  changed_.notify_all();
}

template <class Done>
void MemoryTurns::await(const std::stop_token& stop, Done done) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, longest_, done);
}

void MemoryTurns::await(std::size_t place, const std::stop_token& stop) {
  await(stop, [this, place] { return places_.empty() || *places_.begin() >= place; });
}

void MemoryTurns::await_others(std::size_t place, const std::stop_token& stop) {
  await(stop, [this, place] { return places_.size() == places_.count(place); });
}

}  // namespace batchwright
