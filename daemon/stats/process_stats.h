#pragma once

#include <chrono>
#include <cstdint>

namespace batchwright {

/// This process's use of the machine, by the kernel's account.
struct ProcessStats {
  std::uint64_t pid = 0;
  double cpu_seconds = 0.0;               ///< User and system, all threads, since the start.
  std::uint64_t resident_bytes = 0;       ///< The next three together.
  std::uint64_t anonymous_bytes = 0;      ///< Heap and stacks.
  std::uint64_t mapped_file_bytes = 0;    ///< Datasets and program text; the kernel may drop them.
  std::uint64_t shared_memory_bytes = 0;  ///< Arenas.
  std::uint64_t virtual_bytes = 0;        ///< Addresses, maps of datasets included.
  std::uint64_t open_descriptors = 0;
  std::uint64_t most_descriptors = 0;   ///< The soft limit of descriptors.
  std::uint64_t minor_page_faults = 0;  ///< Faults since the start: the page was in memory,
  std::uint64_t major_page_faults = 0;  ///< or had to be read.
};

/// Reads /proc/self; a figure that is not there stays 0. Takes some ten microseconds.
ProcessStats read_process_stats();

/// The time for which this thread could have run and no processor was free, since its start; 0
/// where the kernel keeps no account of it. Takes a microsecond, and a descriptor a thread.
std::chrono::nanoseconds thread_run_delay();
/// The same of all threads of the process that there are.
std::chrono::nanoseconds process_run_delay();

}  // namespace batchwright
