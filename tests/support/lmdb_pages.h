#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// The pages of an LMDB file as lmdb.h 0.9 lays them out, so that tests can damage each of their
// parts. All numbers are little-endian, pages have 4 KiB; page numbers and counts are words.

namespace batchwright::test {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kWordBytes = sizeof(std::size_t);
inline constexpr std::size_t kPageHeaderBytes = kWordBytes + 8;
inline constexpr std::size_t kTableBytes = 8 + 5 * kWordBytes;  ///< A table's entry.
/// Of a meta page, to the end of what it says.
inline constexpr std::size_t kMetaBytes = 8 + 2 * kTableBytes + 5 * kWordBytes + 8;
inline constexpr std::uint16_t kBranchPage = 0x01;
inline constexpr std::uint16_t kLeafPage = 0x02;
inline constexpr std::uint16_t kBigData = 0x01;
inline constexpr std::uint16_t kSubData = 0x02;
inline constexpr std::uint16_t kDupData = 0x04;

/// Bytes of a file that say how its tree hangs together.
struct Part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// Reads one file's tree. Lifetime: the bytes are the caller's.
class LmdbPages {
 public:
  explicit LmdbPages(const std::string& bytes) : bytes_(bytes) {}

  /// Page number of the newest meta page.
  std::size_t meta() const { return word(kPageBytes + kCommit) > word(kCommit); }
  std::uint64_t free_root() const { return root_at(meta() * kPageBytes + kFreeDb); }
  std::uint64_t main_root() const { return root_at(meta() * kPageBytes + kMainDb); }
  /// Root page of a named table.
  std::uint64_t root_of(std::string_view table) const {
    for (const std::size_t node : nodes(main_root())) {
      if (key_of(node) == table) return root_at(value_of(node));
    }
    return 0;
  }

  /// Offsets of a page's nodes.
  std::vector<std::size_t> nodes(std::uint64_t page) const {
    std::vector<std::size_t> found;
    const std::size_t start = place_of(page);
    const std::size_t count = (at<std::uint16_t>(start + kWordBytes + 4) - kPageHeaderBytes) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      found.push_back(start + at<std::uint16_t>(start + kPageHeaderBytes + 2 * i));
    }
    return found;
  }
  bool is_branch(std::uint64_t page) const { return (flags_of(page) & kBranchPage) != 0; }
  /// The page below a node of a branch page.
  std::uint64_t child(std::size_t node) const {
    return at<std::uint32_t>(node) | std::uint64_t{at<std::uint16_t>(node + 4)} << 32;
  }
  std::uint16_t node_flags(std::size_t node) const { return at<std::uint16_t>(node + 4); }
  std::size_t value_of(std::size_t node) const { return node + 8 + at<std::uint16_t>(node + 6); }
  std::string_view key_of(std::size_t node) const {
    return std::string_view(bytes_).substr(node + 8, at<std::uint16_t>(node + 6));
  }

  /// The leaf pages below `page`.
  std::vector<std::uint64_t> leaves(std::uint64_t page) const {
    if (!is_branch(page)) return {page};
    std::vector<std::uint64_t> all;
    for (const std::size_t node : nodes(page)) {
      for (const std::uint64_t leaf : leaves(child(node))) all.push_back(leaf);
    }
    return all;
  }

  /// Header of a page; pointer and header of its first, middle and last node, and the page
  /// number of a value that lies elsewhere, or the entry of a table.
  std::vector<Part> parts_of(std::uint64_t page) const {
    std::vector<Part> parts = {{place_of(page), kPageHeaderBytes}};
    const auto all = nodes(page);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_entry = !is_branch(page) && (node_flags(all[i]) & kSubData) != 0;
      if (i != 0 && i != all.size() / 2 && i + 1 != all.size() && !is_entry) continue;
      parts.push_back({place_of(page) + kPageHeaderBytes + 2 * i, 2});
      parts.push_back({all[i], 8});
      if (is_entry) parts.push_back({value_of(all[i]), kTableBytes});
      if (is_branch(page) || (node_flags(all[i]) & kBigData) == 0) continue;
      parts.push_back({value_of(all[i]), kWordBytes});
      parts.push_back({place_of(word(value_of(all[i]))), kPageHeaderBytes});
    }
    return parts;
  }

 private:
  static constexpr std::size_t kFreeDb = kPageHeaderBytes + 8 + 2 * kWordBytes;
  static constexpr std::size_t kMainDb = kFreeDb + kTableBytes;
  static constexpr std::size_t kCommit = kMainDb + kTableBytes + kWordBytes;

  template <class Number>
  Number at(std::size_t offset) const {
    Number number{};
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }
  std::uint16_t flags_of(std::uint64_t page) const {
    return at<std::uint16_t>(place_of(page) + kWordBytes + 2);
  }
  std::uint64_t root_at(std::size_t table) const { return word(table + 8 + 4 * kWordBytes); }
  std::size_t word(std::size_t offset) const { return at<std::size_t>(offset); }
  static std::size_t place_of(std::uint64_t page) {
    return static_cast<std::size_t>(page) * kPageBytes;
  }

  const std::string& bytes_;
};

}  // namespace batchwright::test
