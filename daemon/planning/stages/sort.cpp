#include "daemon/planning/stages/sort.h"

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

/// One pass a digit of `kBits`, least digit first; digits in which all keys agree are passed over.
template <int kBits>
void digit_sort(std::span<std::uint64_t> words, std::span<std::uint64_t> spare) {
  constexpr std::size_t kDigits = (32 + kBits - 1) / kBits;
  constexpr std::uint64_t kMask = (1 << kBits) - 1;
  // All digits are counted in one pass: counts do not depend on the order of the words.
  std::array<std::array<std::uint32_t, 1 << kBits>, kDigits> counts{};
  for (const std::uint64_t word : words) {
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      ++counts[digit][(word >> (32 + kBits * digit)) & kMask];
    }
  }
  std::span<std::uint64_t> from = words;
  std::span<std::uint64_t> to = spare;
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    const std::size_t shift = 32 + kBits * digit;
    auto& starts = counts[digit];
    if (starts[(from[0] >> shift) & kMask] == from.size()) continue;
    std::uint32_t start = 0;
    for (std::uint32_t& entry : starts) start += std::exchange(entry, start);
    for (const std::uint64_t word : from) to[starts[(word >> shift) & kMask]++] = word;
    std::swap(from, to);
  }
  // An odd number of passes ends in the spare memory.
  if (from.data() != words.data()) std::copy(from.begin(), from.end(), words.begin());
}

/// `spare` has as many words.
void sort_piece(std::span<std::uint64_t> words, std::span<std::uint64_t> spare) {
  // Filling the tables of counts would take longer than this.
  if (words.size() <= 48) return insertion_sort(words);
  // Fewer passes pay only where they make up for the time to add up more counts.
  if (words.size() <= 4096) return digit_sort<8>(words, spare);
  digit_sort<11>(words, spare);
}

/// Merges what is sorted up to `middle` with what is sorted from there on, which fits into `spare`.
void merge_piece(std::span<std::uint64_t> words, std::size_t middle,
                 std::span<std::uint64_t> spare) {
  std::copy(words.begin() + static_cast<std::ptrdiff_t>(middle), words.end(), spare.begin());
  std::size_t left = middle;
  std::size_t right = words.size() - middle;
  while (left > 0 && right > 0) {
    const std::uint64_t a = words[left - 1];
    const std::uint64_t b = spare[right - 1];
    const bool takes_left = a >> 32 > b >> 32;  // of equal ones the right comes last
    words[left + right - 1] = takes_left ? a : b;
    left -= takes_left ? 1 : 0;
    right -= takes_left ? 0 : 1;
  }
  std::copy_n(spare.begin(), right, words.begin());
}

}  // namespace

void stable_sort_by_key(std::span<std::uint64_t> words, std::span<std::uint64_t> spare) {
  if (words.size() <= spare.size()) return sort_piece(words, spare.first(words.size()));
  for (std::size_t start = 0; start < words.size(); start += spare.size()) {
    const std::size_t size = std::min(spare.size(), words.size() - start);
    sort_piece(words.subspan(start, size), spare.first(size));
    if (start > 0) merge_piece(words.first(start + size), start, spare);
  }
}

void permute_ties(std::span<std::uint64_t> words, RandomStream& random) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if ((words[i] ^ words[i + 1]) >> 32 != 0) continue;
    const std::size_t start = i++;
    while (i + 1 < words.size() && (words[i] ^ words[i + 1]) >> 32 == 0) ++i;
    permute(words.subspan(start, i + 1 - start), random);
  }
}

}  // namespace batchwright
