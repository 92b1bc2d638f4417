#pragma once

#include <cstdint>
#include <vector>

#include "daemon/planning/items.h"

namespace batchwright {

/// An epoch's plan while it goes through the stages: each takes it, and leaves it further on.
struct Draft {
  ItemTable table;
  std::vector<std::uint32_t> items;  ///< Ids, in the order reached so far.
  /// Where buckets end in `items`; a batch never crosses one. Empty: one bucket.
  std::vector<std::uint32_t> bucket_ends;
  std::vector<std::uint32_t> bucket_limits;  ///< The longest length of each bucket of lengths.
  std::vector<std::uint32_t> starts;         ///< Of each batch in `items`, and one more: the end.
  std::vector<std::uint32_t> sequence;       ///< Batches in the order of delivery; empty: as cut.
  std::uint32_t longest = 0;                 ///< Of all items an epoch may use: L_max.

  /// One a dataset: where its sequences end, and how many of them are kept.
  struct Dataset {
    std::uint64_t end = 0, kept = 0;
  };
  std::vector<Dataset> datasets;
  std::uint64_t left_out = 0;  ///< Sequences shorter or longer than allowed.
  std::uint64_t kept = 0;      ///< Sequences that are not left out.
  std::uint64_t selected = 0;  ///< Of those, how many this epoch uses.

  std::uint32_t batches() const {
    return starts.empty() ? 0 : static_cast<std::uint32_t>(starts.size() - 1);
  }
};

}  // namespace batchwright
