#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/formats.h"

namespace batchwright {

/// Pages of a mapping, from the first to behind the last.
struct Pages {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  friend bool operator==(const Pages&, const Pages&) = default;
};

std::uint64_t page_bytes();

/// Tells which pages of a private mapping of a file were written to, and so are copies of this
/// process's own, and drops them.
///
/// Problem: /proc/self/pagemap says so of any page, but the kernel looks at its description of
/// each, which is in no cache: 30 to 100 ns a page, a third of the time it takes to read the page.
/// Idea: userfaultfd's asynchronous write protection (Linux 6.7) marks pages where the look begins,
/// in the page tables, and a write takes the mark away, without a word to the program. A look takes
/// 3 ns a page. Where that is refused (an older kernel, or a container's rules), pagemap is read.
///
/// Threads: any; two at a time on different pages.
class CopiedPages {
 public:
  /// `mapping` outlives it. `may_mark`: false leaves pagemap as the only way.
  explicit CopiedPages(std::span<std::byte> mapping, bool may_mark = true);

  /// Whether it can tell at all. Otherwise drop() is not to be called.
  bool can_tell() const { return static_cast<bool>(pagemap_); }
  /// Drops the copies among these pages, which then show the file again. Returns how many there
  /// were; the first time it may count all. Where the kernel fails to tell, drops all. Empty where
  /// it keeps them, as it does when they are locked in memory: then nothing is known of these pages
  /// any longer, for they may be marked.
  std::optional<std::size_t> drop(const Pages& pages) const noexcept;

 private:
  using Dropped = std::optional<std::size_t>;
  Dropped drop_marked(const Pages& pages) const;
  Dropped drop_listed(const Pages& pages) const;
  Dropped drop_run(const Pages& pages) const;
  std::uint64_t address_of(std::uint64_t page) const;

  const std::span<std::byte> mapping_;
  const Descriptor pagemap_;  ///< /proc/self/pagemap; a child's is its parent's.
  const Descriptor marks_;    ///< A userfaultfd over the mapping; empty where there is none.
};

}  // namespace batchwright
