#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The class in which the kernel's I/O scheduler has a thread's reads (ioprio_set(2)).
enum class IoPriority : std::uint8_t {
  normal,  ///< As the process was started.
  low,     ///< The last of class best-effort.
  idle,    ///< Only while nothing else uses the disk.
};

/// How assembly threads and those that read ahead share a machine with other programs. The event
/// loop and ZeroMQ's threads are not among them: they answer clients.
struct ThreadPolicy {
  std::uint32_t nice = 0;                 ///< Added to the process's, up to 19.
  std::vector<std::uint32_t> processors;  ///< By the kernel's numbers; empty: all.
  IoPriority io = IoPriority::normal;
  double share = 1.0;  ///< Of a processor, that each assembly thread takes at most.

  friend bool operator==(const ThreadPolicy&, const ThreadPolicy&) = default;
};

inline constexpr std::uint32_t kMostProcessors = 4096;

/// Reads "0-3,8"; empty text is an empty list. Errors: invalid_argument.
Result<std::vector<std::uint32_t>> parse_processors(std::string_view text);

/// Whether threads of this process can have them. Errors: invalid_argument (none of the processors
/// may be used; names those that may), io_error.
Result<void> check_manners(const ThreadPolicy& policy);

/// Gives them to the calling thread, and to those that it starts; what the kernel refuses is left.
void adopt(const ThreadPolicy& policy) noexcept;

/// Processor time of the calling thread.
std::chrono::nanoseconds thread_time() noexcept;

/// How long a thread rests after it has computed so long, to take no more than `share`.
std::chrono::nanoseconds rest_after(std::chrono::nanoseconds computed, double share);

}  // namespace batchwright
