#pragma once

#include <cstdint>
#include <vector>

#include "daemon/planning/items.h"
#include "daemon/planning/word_buffer.h"

namespace batchwright {

/// An epoch's plan while it goes through the stages: each takes it, and leaves it further on.
struct Draft {
  ItemTable table;
  std::uint32_t longest = 0;   ///< Of all items an epoch may use: L_max.
  std::uint32_t shortest = 0;  ///< Of the sequences kept.

  /// One a dataset: where its sequences end, and how many of them are kept.
  struct Dataset {
    std::uint64_t end = 0, kept = 0;
  };
  std::vector<Dataset> datasets;
  std::uint64_t left_out = 0;  ///< Sequences shorter or longer than allowed.
  std::uint64_t kept = 0;      ///< Sequences that are not left out.

  // From select.
  std::uint64_t selected = 0;         ///< Sequences that this epoch uses.
  bool uses_all = false;              ///< Every item once; `chosen` stays empty.
  std::vector<std::uint32_t> chosen;  ///< Else the items used, by ascending id.

  // From order, until cut.
  WordBuffer order;  ///< (length, item); packed to items by cut.
  /// Where buckets end in the order; a batch never crosses one. Empty: one bucket.
  std::vector<std::uint32_t> bucket_ends;
  std::vector<std::uint32_t> bucket_limits;  ///< The longest length of each bucket of lengths.

  // From cut and shuffle.
  std::vector<std::uint32_t> starts;         ///< Of each batch in the order, and the end.
  std::vector<std::uint32_t> batch_lengths;  ///< As cut; only for shuffle = groups.
  std::vector<std::uint32_t> sequence;       ///< Batches in the order of delivery.

  std::size_t rows() const { return uses_all ? table.items() : chosen.size(); }
  std::uint32_t batches() const {
    return starts.empty() ? 0 : static_cast<std::uint32_t>(starts.size() - 1);
  }

  /// Calls `use(i, item)` for the i-th item used.
  template <class Use>
  void each_item(const Use& use) const {
    const std::size_t count = rows();
    if (uses_all) {
      for (std::uint32_t i = 0; i < count; ++i) use(i, i);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) use(i, chosen[i]);
    }
  }
};

}  // namespace batchwright
