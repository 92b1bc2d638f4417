#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace batchwright {

/// Whether an arena is to lie in huge pages: auto: if there are any; off: never; require: only with
/// them.
enum class HugePages : std::uint8_t { automatic, off, require };

/// The pages that an arena lies in: the machine's smallest, huge ones that the kernel found, or
/// huge ones that were reserved for such use (vm.nr_hugepages).
enum class PageKind : std::uint8_t { small, transparent, reserved };
std::string_view to_string(PageKind kind);

/// What this machine has of huge pages for shared memory.
struct HugePageRoom {
  std::size_t page_bytes = 0;     ///< Of one; 0: the kernel has none.
  std::size_t reserved_free = 0;  ///< Bytes of the reserved pool that no process has claimed.
  /// The rule for transparent ones in shared memory, as the kernel's file shmem_enabled has it.
  std::string shared_rule = "never";

  /// Whether the kernel gives shared memory huge pages to those that ask.
  bool gives_on_request() const;
  /// For the text of errors.
  std::string describe() const;
};

/// `root` is "/", or a copy of /proc and /sys.
HugePageRoom huge_page_room(const std::filesystem::path& root = "/");

/// Bytes of the mapping that begins at `start` which are mapped as transparent huge pages.
std::size_t transparent_bytes(const void* start);

}  // namespace batchwright
