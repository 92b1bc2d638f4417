#include "client/library/session/connections.h"

#include <pthread.h>

#include <utility>

namespace batchwright {
namespace {

/// The step from one handle to the next: the alignment that an address would have.
constexpr std::uintptr_t kApart = 16;

std::uintptr_t number_of(const bw_connection* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

Connections& Connections::of_process() {
  static Connections* const kept = new Connections;
  return *kept;
}

Connections::Connections() {
  // Out of memory: a child of a fork at a bad moment waits forever; there is no better way.
  // The lock is handed from one function to the other, which the analysis does not follow.
  const auto lock = []() NO_THREAD_SAFETY_ANALYSIS { of_process().mutex_.lock(); };
  const auto unlock = []() NO_THREAD_SAFETY_ANALYSIS { of_process().mutex_.unlock(); };
  static_cast<void>(pthread_atfork(lock, unlock, unlock));
}

bw_connection* Connections::add(std::shared_ptr<const Connected> connection) {
  const MutexLock lock(mutex_);
  last_ += kApart;
  open_.emplace(last_, std::move(connection));
  return reinterpret_cast<bw_connection*>(last_);
}

std::shared_ptr<const Connected> Connections::find(const bw_connection* handle) {
  const MutexLock lock(mutex_);
  const auto found = open_.find(number_of(handle));
  return found == open_.end() ? nullptr : found->second;
}

std::shared_ptr<const Connected> Connections::remove(const bw_connection* handle) {
  const MutexLock lock(mutex_);
  auto taken = open_.extract(number_of(handle));
  return taken.empty() ? nullptr : std::move(taken.mapped());
}

}  // namespace batchwright
