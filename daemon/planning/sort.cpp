#include "daemon/planning/sort.h"

namespace batchwright {
namespace {

void insertion_sort(std::span<std::uint64_t> words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::uint64_t word = words[i];
    std::size_t j = i;
    for (; j > 0 && (words[j - 1] >> 32) > (word >> 32); --j) words[j] = words[j - 1];
    words[j] = word;
  }
}

}  // namespace

void stable_sort_by_key(std::span<std::uint64_t> words, std::span<std::uint64_t> spare) {
  if (words.size() <= 48) return insertion_sort(words);
  std::array<std::array<std::uint32_t, 256>, 4> counts{};
  for (const std::uint64_t word : words) {
    for (std::size_t byte = 0; byte < 4; ++byte) ++counts[byte][(word >> (32 + 8 * byte)) & 255];
  }
  std::span<std::uint64_t> from = words;
  std::span<std::uint64_t> to = spare;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    const std::size_t shift = 32 + 8 * byte;
    auto& starts = counts[byte];
    if (starts[(from[0] >> shift) & 255] == from.size()) continue;  // all keys agree in this byte
    std::uint32_t start = 0;
    for (std::uint32_t& entry : starts) start += std::exchange(entry, start);
    for (const std::uint64_t word : from) to[starts[(word >> shift) & 255]++] = word;
    std::swap(from, to);
  }
  if (from.data() != words.data()) std::copy(from.begin(), from.end(), words.begin());
}

void permute_ties(std::span<std::uint64_t> words, RandomStream& random) {
  for (std::size_t i = 0; i < words.size();) {
    std::size_t end = i + 1;
    while (end < words.size() && words[end] >> 32 == words[i] >> 32) ++end;
    if (end - i > 1) permute(words.subspan(i, end - i), random);
    i = end;
  }
}

}  // namespace batchwright
