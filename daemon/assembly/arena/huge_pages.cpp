#include "daemon/assembly/arena/huge_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/assembly/arena/proc_figure.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {
namespace {

/// The word in brackets of a file such as "always within_size advise [never] deny force".
std::string chosen_word(const std::filesystem::path& file) {
  const std::string text = file_text(file).value_or("");
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == text.npos || close == text.npos || close < open) return "never";
  return text.substr(open + 1, close - open - 1);
}

}  // namespace

std::string_view to_string(PageKind kind) {
  switch (kind) {
    case PageKind::small: return "small";
    case PageKind::transparent: return "transparent";
    case PageKind::reserved: return "reserved";
  }
  return "small";
}

bool HugePageRoom::gives_on_request() const {
  return shared_rule == "always" || shared_rule == "within_size" || shared_rule == "advise" ||
         shared_rule == "force";
}

std::string HugePageRoom::describe() const {
  return fmt::format("{} free in the reserved pool (vm.nr_hugepages), shmem_enabled is \"{}\"",
                     in_mib(reserved_free), shared_rule);
}

HugePageRoom huge_page_room(const std::filesystem::path& root) {
  HugePageRoom room;
  const auto meminfo = root / "proc/meminfo";
  room.page_bytes = proc_figure(meminfo, "Hugepagesize:").value_or(0) * 1024;
  const std::size_t free = proc_figure(meminfo, "HugePages_Free:").value_or(0);
  // Promised to mappings that have not touched them yet.
  const std::size_t promised = proc_figure(meminfo, "HugePages_Rsvd:").value_or(0);
  room.reserved_free = (free - std::min(free, promised)) * room.page_bytes;
  room.shared_rule = chosen_word(root / "sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return room;
}

std::size_t transparent_bytes(const void* start) {
  // Line by line, and no further than is needed: for each mapping the kernel counts its pages.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/smaps", "re"),
                                                             std::fclose);
  if (!maps) return 0;
  std::array<char, 8192> text{};  // a line has a path at most
  bool is_wanted = false;
  while (std::fgets(text.data(), text.size(), maps.get()) != nullptr) {
    const std::string_view line = text.data();
    // A mapping begins with a line of its two addresses; its figures have a colon.
    std::string_view rest = line;
    const auto first = take_whole<std::uintptr_t>(rest, 16);
    if (first && rest.starts_with('-')) {
      is_wanted = *first == reinterpret_cast<std::uintptr_t>(start);
    }
    if (!is_wanted || !line.starts_with("ShmemPmdMapped:")) continue;
    const auto words = split_words(line);
    return words.size() > 1 ? parse_whole<std::size_t>(words[1]).value_or(0) * 1024 : 0;
  }
  return 0;
}

}  // namespace batchwright
