#include "daemon/stats/process_stats.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

namespace {

double cpu_seconds() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return 0.0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::uint64_t open_descriptors() {
  std::error_code code;
  std::uint64_t count = 0;
  std::filesystem::directory_iterator folder("/proc/self/fd", code);
  // With a code: a loop over the range would throw where the next entry cannot be read.
  for (; !code && folder != std::filesystem::directory_iterator(); folder.increment(code)) ++count;
  return count == 0 ? 0 : count - 1;  // one was this look itself
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  // The soft limit, which is the one that open() and accept() run into.
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void read_page_faults(ProcessStats& stats) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  stats.minor_page_faults = static_cast<std::uint64_t>(usage.ru_minflt);
  stats.major_page_faults = static_cast<std::uint64_t>(usage.ru_majflt);
}

/// "12345 678 9": time on a processor, time in wait for one, both in nanoseconds, and turns.
std::chrono::nanoseconds run_delay(std::string_view schedstat) {
  const auto words = split_words(schedstat);
  const auto delay = words.size() > 1 ? parse_whole<std::uint64_t>(words[1]) : std::nullopt;
  return std::chrono::nanoseconds(delay.value_or(0));
}

}  // namespace

std::chrono::nanoseconds thread_run_delay() {
  // Open as long as the thread lives: each read from the start gives the figures of that moment.
  static thread_local const Descriptor file(
      ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  std::array<char, 96> text{};
  const ssize_t got = file ? ::pread(file.get(), text.data(), text.size(), 0) : 0;
  return got > 0 ? run_delay({text.data(), static_cast<std::size_t>(got)})
                 : std::chrono::nanoseconds(0);
}

std::chrono::nanoseconds process_run_delay() {
  std::chrono::nanoseconds sum{0};
  std::error_code code;
  std::filesystem::directory_iterator folder("/proc/self/task", code);
  for (; !code && folder != std::filesystem::directory_iterator(); folder.increment(code)) {
    sum += run_delay(file_text(folder->path() / "schedstat").value_or(""));
  }
  return sum;
}

ProcessStats read_process_stats() {
  ProcessStats stats;
  stats.pid = static_cast<std::uint64_t>(getpid());
  stats.cpu_seconds = cpu_seconds();
  stats.open_descriptors = open_descriptors();
  stats.most_descriptors = most_descriptors();
  read_page_faults(stats);
  const std::string status = file_text("/proc/self/status").value_or("");
  for (const std::string_view line : split_lines(status)) {
    const auto words = split_words(line);  // "RssAnon:      1234 kB"
    // The kernel's kB are 1024 bytes; lines that are no number, such as Name, are skipped.
    const auto kib = words.size() > 1 ? parse_whole<std::uint64_t>(words[1]) : std::nullopt;
    if (!kib) continue;
    const std::uint64_t bytes = *kib * 1024;
    if (words[0] == "VmSize:") stats.virtual_bytes = bytes;
    if (words[0] == "VmRSS:") stats.resident_bytes = bytes;
    if (words[0] == "RssAnon:") stats.anonymous_bytes = bytes;
    if (words[0] == "RssFile:") stats.mapped_file_bytes = bytes;
    if (words[0] == "RssShmem:") stats.shared_memory_bytes = bytes;
  }
  return stats;
}

}  // namespace batchwright
