#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/integration/trainer.h"

namespace batchwright::test {

/// A row as the batch told of it. Without `starts` and `flags` it is a whole sequence.
struct SeenRow {
  std::uint64_t ordinal = 0;
  std::uint32_t start = 0;
  std::uint32_t length = 0;
  bool reset = false;
  bool last = false;
  friend auto operator<=>(const SeenRow&, const SeenRow&) = default;
};

/// What is left of a batch once it is released.
struct SeenBatch {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t index = 0;
  std::vector<SeenRow> rows;
  friend bool operator==(const SeenBatch&, const SeenBatch&) = default;
};

SeenBatch seen(const bw_batch* batch);

/// What a trainer of feed "train" asks for.
struct Wish {
  std::uint64_t epochs = 1;
  std::uint64_t epoch = 0;  ///< Where to begin.
  std::uint64_t step = 0;
  std::int32_t rank = 0;  ///< Sharded if ranks > 0.
  std::int32_t ranks = 0;
};

/// Looks at a batch that is held.
using Look = std::function<void(const bw_batch*)>;

/// A new trainer takes all batches it is due; `look` sees each before it is released.
std::vector<SeenBatch> take(const std::string& endpoint, const Wish& wish, const Look& look = {});

/// A job of `ranks` trainers takes `steps` steps from where `wish` begins, all ranks in step, or
/// until the end if that comes first. In the order of the batches' indices. Rank r takes from
/// endpoint r modulo their number.
std::vector<SeenBatch> take_job(const std::vector<std::string>& endpoints, const Wish& wish,
                                std::uint64_t steps = ~std::uint64_t{0});

/// Subscribes as wished. Throws when it is refused.
void subscribe(Trainer& trainer, const Wish& wish);

/// Checks every value of every tensor of a batch out of a full dataset, padding included: frames
/// [start, start + length) of primary and aligned fields, the others whole; and the header's sums.
void check_full_batch(const bw_batch* batch);

/// The ordinals of all rows, sorted.
std::vector<std::uint64_t> sorted_ordinals(const std::vector<SeenBatch>& batches);

}  // namespace batchwright::test
