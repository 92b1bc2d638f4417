#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/planning/stages/buckets.h"
#include "daemon/planning/stages/items.h"
#include "daemon/planning/stages/word_buffer.h"

namespace batchwright {

/// An epoch's plan while it goes through the stages: each takes it, and leaves it further on.
struct PlanBuilder {
  ItemTable table;
  std::uint32_t longest = 0;   ///< Longest of all items an epoch may use: L_max.
  std::uint32_t shortest = 0;  ///< Shortest of the sequences kept.

  /// One a dataset: where its sequences end, how many of them are kept, and how many times an
  /// epoch uses each of those, beside what it draws.
  struct Dataset {
    std::uint64_t end = 0, kept = 0, passes = 0;
  };
  std::vector<Dataset> datasets;
  std::uint64_t left_out = 0;  ///< Sequences shorter or longer than allowed.
  std::uint64_t kept = 0;      ///< Sequences that are not left out.

  // From select.
  std::uint64_t selected = 0;        ///< Sequences that this epoch uses.
  std::uint64_t rows = 0;            ///< Their items.
  bool uses_all = false;             ///< Every item once; `drawn` stays empty.
  bool repeats = false;              ///< Some item more than once.
  std::vector<std::uint64_t> drawn;  ///< Used until ordering: a bit per sequence, set if it is used
                                     ///< once more than its dataset's passes. Empty: none is.

  // From order, until cut.
  WordBuffer order;                ///< (length, item); packed to items by cut.
  BucketLimits buckets;            ///< A batch never crosses one.
  std::uint32_t used_buckets = 1;  ///< Buckets that hold an item.

  // From cut and shuffle.
  std::vector<std::uint32_t> starts;            ///< Start of each batch in the order, and the end.
  std::vector<std::uint32_t> batch_lengths;     ///< Lengths as cut; only for shuffle = groups.
  std::optional<std::uint64_t> cut_by_padding;  ///< Batches that max_padded ended, of real_frames.
  std::vector<std::uint32_t> sequence;          ///< Batches in the order of delivery.

  std::uint32_t batches() const {
    return starts.empty() ? 0 : static_cast<std::uint32_t>(starts.size() - 1);
  }

  /// Memory to work with beside an order, the table and nothing else, so that all together stay
  /// within 16 bytes a sequence. At least a byte a row, as there may be more rows than sequences.
  std::size_t spare_bytes() const {
    const std::size_t all = 16 * table.sequence_lengths().size();
    const std::size_t used = 8 * rows + table.bytes();
    return std::max<std::size_t>(rows, all > used ? all - used : 0);
  }

  /// The end of the bucket that begins at `start` in the order.
  std::size_t bucket_end(std::size_t start) const {
    if (!buckets.has_any()) return order.size();
    const std::uint32_t limit = buckets.of(key_of(order.word(start)));
    while (start < order.size() && key_of(order.word(start)) <= limit) ++start;
    return start;
  }

  /// Calls `use(i, item, length)` for the i-th item used: by ordinal, start, repetition.
  template <class Use>
  void each_item(const Use& use) const {
    const auto lengths = table.sequence_lengths();
    std::uint32_t i = 0;
    if (table.listed() != nullptr) {
      for (; i < table.items(); ++i) use(i, i, table.length(i));
    } else if (table.is_chunked()) {
      each_chunk(use);
    } else if (uses_all) {
      for (; i < lengths.size(); ++i) use(i, i, lengths[i]);
    } else {
      each_sequence([&](std::uint32_t ordinal, std::uint64_t times) {
        for (; times > 0; --times) use(i++, ordinal, lengths[ordinal]);
      });
    }
  }

  /// Calls `use(ordinal, times)` with each sequence used.
  template <class Use>
  void each_sequence(const Use& use) const {
    std::uint64_t begin = 0;
    for (const Dataset& dataset : datasets) {
      if (dataset.passes == 0) {
        each_drawn(begin, dataset.end, use);
      } else {
        each_passed(begin, dataset, use);
      }
      begin = dataset.end;
    }
  }

 private:
  template <class Use>
  void each_chunk(const Use& use) const {
    std::uint32_t i = 0;
    std::uint32_t next = 0;   // sequence
    std::uint32_t first = 0;  // its first item
    each_sequence([&](std::uint32_t ordinal, std::uint64_t times) {
      for (; next < ordinal; ++next) first += table.items_of(next);
      first = table.each_item_of(next++, first, [&](std::uint32_t item, std::uint32_t length) {
        for (std::uint64_t left = times; left > 0; --left) use(i++, item, length);
      });
    });
  }

  /// For a dataset whose sequences are all used, except for those left out.
  template <class Use>
  void each_passed(std::uint64_t begin, const Dataset& dataset, const Use& use) const {
    for (std::uint64_t i = begin; i < dataset.end; ++i) {
      if (!table.allowed().has(table.sequence_lengths()[i])) continue;
      const std::uint64_t more = drawn.empty() ? 0 : drawn[i / 64] >> i % 64 & 1;
      use(static_cast<std::uint32_t>(i), dataset.passes + more);
    }
  }

  template <class Use>
  void each_drawn(std::uint64_t begin, std::uint64_t end, const Use& use) const {
    for (std::uint64_t word = begin / 64; word * 64 < end; ++word) {
      std::uint64_t bits = drawn[word];
      if (word == begin / 64) bits &= ~std::uint64_t{0} << begin % 64;
      for (; bits != 0; bits &= bits - 1) {
        const std::uint64_t i = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
        if (i >= end) return;
        use(static_cast<std::uint32_t>(i), std::uint64_t{1});
      }
    }
  }
};

}  // namespace batchwright
