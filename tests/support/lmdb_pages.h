#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// The pages of an LMDB file as lmdb.h 0.9 lays them out, so that tests can damage each of their
// parts. All numbers are little-endian, pages have 4 KiB.

namespace batchwright::test {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kPageHeaderBytes = 16;
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
  std::size_t meta() const { return at<std::uint64_t>(kPageBytes + 144) > at<std::uint64_t>(144); }
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
    const std::size_t start = page * kPageBytes;
    const std::size_t count = (at<std::uint16_t>(start + 12) - kPageHeaderBytes) / 2;
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
    std::vector<Part> parts = {{page * kPageBytes, kPageHeaderBytes}};
    const auto all = nodes(page);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_entry = !is_branch(page) && (node_flags(all[i]) & kSubData) != 0;
      if (i != 0 && i != all.size() / 2 && i + 1 != all.size() && !is_entry) continue;
      parts.push_back({page * kPageBytes + kPageHeaderBytes + 2 * i, 2});
      parts.push_back({all[i], 8});
      if (is_entry) parts.push_back({value_of(all[i]), 48});
      if (is_branch(page) || (node_flags(all[i]) & kBigData) == 0) continue;
      parts.push_back({value_of(all[i]), 8});
      parts.push_back({at<std::uint64_t>(value_of(all[i])) * kPageBytes, kPageHeaderBytes});
    }
    return parts;
  }

 private:
  static constexpr std::size_t kFreeDb = 40;
  static constexpr std::size_t kMainDb = 88;

  template <class Number>
  Number at(std::size_t offset) const {
    Number number{};
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }
  std::uint16_t flags_of(std::uint64_t page) const {
    return at<std::uint16_t>(page * kPageBytes + 10);
  }
  std::uint64_t root_at(std::size_t database) const { return at<std::uint64_t>(database + 40); }

  const std::string& bytes_;
};

}  // namespace batchwright::test
