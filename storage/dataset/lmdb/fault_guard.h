#pragma once

#include <utility>

#include "formats/formats.h"

namespace batchwright {

/// Runs `read(argument)`, which reads a memory map. False when a read ended in a fault, which
/// would otherwise end the process: SIGBUS where the kernel cannot provide a page (file truncated,
/// disk error), SIGSEGV or SIGFPE where damaged bytes led LMDB astray.
///
/// `read` is then left where it stands, as by longjmp: it must not throw, hold a lock, or own
/// anything with a destructor while it touches the map. Guards may nest. Threads: any; only
/// faults of the calling thread, within this call, are caught. Others take their usual course.
bool run_guarded(void (*read)(void*), void* argument);

/// The same call for a lambda, whose captures are references.
template <class Read>
bool guarded(Read read) {
  return run_guarded([](void* self) noexcept { (*static_cast<Read*>(self))(); }, &read);
}

/// Takes the signals back from whatever has handled them since, such as a test framework or a
/// library that was loaded later, and passes on to it what is not ours. The first guarded read does
/// it by itself; call it again where reading begins again. Threads: any.
void arm_fault_guard();

/// Leaves the innermost guarded read of this thread as a fault would. Returns when there is none.
void abandon_guarded_read();

/// What a guarded read of a dataset that ended in a fault is answered with.
Error map_faulted();

/// The fault that ended this thread's last failed guarded read.
struct MapFault {
  int signal = 0;                 ///< SIGBUS, SIGSEGV or SIGFPE; 0 when it was abandoned.
  const void* address = nullptr;  ///< The address that was read, for SIGBUS and SIGSEGV.
};
MapFault last_fault();

}  // namespace batchwright
