#include "daemon/startup_memory.h"

#include <doctest/doctest.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

using namespace batchwright;

namespace {

/// Reads a byte of each page of this program's code; the sum of them.
int touch_code(dl_phdr_info* object, std::size_t, void* sum) {
  if (*object->dlpi_name != '\0') return 0;  // the program itself has no name
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const auto* code =
        reinterpret_cast<const volatile unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    for (std::size_t at = 0; at < segment.p_memsz; at += 4096) {
      *static_cast<std::uint64_t*>(sum) += code[at];
    }
  }
  return 0;
}

std::uint64_t code_sum() {
  std::uint64_t sum = 0;
  dl_iterate_phdr(touch_code, &sum);
  return sum;
}

/// KiB of memory that files take in this process (RssFile).
std::uint64_t resident_of_files() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace

TEST_CASE("daemon: a group that allows less than the daemon and its feeds take is named") {
  constexpr std::size_t kMib = 1 << 20;
  const auto shortage = [](std::uint64_t feeds, std::size_t most) {
    return memory_shortage(feeds, {most, most});
  };
  CHECK(shortage(0, 8 * kMib)
            .starts_with("the control group, or the machine, allows 8.0 MiB of memory, and the "
                         "daemon needs about 10"));
  CHECK(shortage(0, 64 * kMib).empty());
  CHECK(shortage(50 * kMib, 64 * kMib).empty());
  const std::string both = shortage(60 * kMib, 64 * kMib);
  CHECK(both.find("allows 64.0 MiB") != std::string::npos);
  CHECK(both.find("and its feeds 60.0 MiB") != std::string::npos);
  CHECK(both.find("MemoryMax=") != std::string::npos);
  CHECK(shortage(std::numeric_limits<std::uint64_t>::max(), 64 * kMib) != "");
  // Where nothing can be read nothing is said.
  CHECK(shortage(60 * kMib, std::numeric_limits<std::size_t>::max()).empty());
}

TEST_CASE("daemon: the start's memory is given back, and code that is used again is the same") {
  const std::uint64_t before = code_sum();
  const std::uint64_t resident = resident_of_files();
  let_start_memory_go();
  CHECK(resident_of_files() < resident * 3 / 4);
  CHECK(code_sum() == before);
}
