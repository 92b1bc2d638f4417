#pragma once

#include <utility>

namespace batchwright {

/// Runs `read(argument)`, which reads a memory map. False when the kernel could not provide a
/// page (file truncated, disk error), which would else end the process by SIGBUS.
///
/// `read` is then left where it stands, as by longjmp: it must not throw, hold a lock, or own
/// anything with a destructor while it touches the map. Guards may nest. Threads: any; only
/// faults of the calling thread, within this call, are caught. Others take their usual course.
bool run_guarded(void (*read)(void*), void* argument);

/// The same for a lambda, whose captures are references.
template <class Read>
bool guarded(Read read) {
  return run_guarded([](void* self) noexcept { (*static_cast<Read*>(self))(); }, &read);
}

/// Leaves the innermost guarded read of this thread as a fault would. Returns when there is none.
void abandon_guarded_read();

}  // namespace batchwright
