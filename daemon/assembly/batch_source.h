#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/planning/planning.h"
#include "formats/formats.h"
#include "storage/features/recipe/recipe.h"

namespace batchwright {

/// What the rows of one epoch have in common.
struct EpochOutline {
  Epoch epoch;
  Fingerprint fingerprint;
  std::uint32_t world = 1;
  std::uint64_t batches = 0;  ///< A multiple of world.
  /// Rows may be parts of sequences (chunk, lanes), though those of one batch may all be whole.
  bool has_parts = false;
  /// Of a live feed: more batches come, until it ends.
  bool goes_on = false;

  std::uint64_t steps() const { return batches / world; }
};

/// What counts of a batch in the totals of its step. Rows of weight 0 do not.
struct BatchCounts {
  std::uint32_t rows = 0;
  std::uint64_t frames = 0;  ///< Real ones, whose targets are not ignored.
};

/// The fields of the sequence that a row is of, all its frames, in the order of the schema.
struct RowBytes {
  std::string key;
  std::vector<FieldValue> fields;
};

/// What making a batch's rows took, and what it left out.
struct MadeRows {
  std::array<double, kRecipeSteps> step_seconds{};
  double sound_seconds = 0.0;  ///< Of stored sound.
  std::uint64_t noise_left_out = 0;
  std::uint64_t samples_saturated = 0;
};

/// Reads the rows of one batch. Bytes that it gave may lie in a map, and stay as long as it does.
/// Threads: one at a time.
class BatchReader {
 public:
  virtual ~BatchReader() = default;

  /// The bytes of row `r`, which has frames; the memory of `row` is used again. Errors:
  /// corrupt_record, not_found and unsupported_version speak of this row alone; any other of the
  /// batch.
  virtual Result<void> read(std::size_t r, RowBytes& row) = 0;
  /// Whether all bytes that were given are still what they were. To be asked once they are copied.
  virtual Result<void> check_unchanged() const = 0;
  virtual MadeRows made() { return {}; }
};

/// The batches of one epoch, and the bytes behind them. Immutable. Threads: any.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual EpochOutline outline() const = 0;
  /// The fields of the rows, before casts.
  virtual const Schema& schema() const = 0;
  virtual BatchFigures figures(BatchIndex index) const = 0;
  /// The rows of batch `index` < outline().batches, put into `rows`, whose memory is used again.
  virtual void rows(BatchIndex index, std::vector<Row>& rows) const = 0;
  /// Parts that a row's sequence is cut into in this epoch; 0: that is not known before.
  virtual std::uint32_t parts_of(const Row& row) const = 0;
  /// Frames of `row` whose targets are not ignored.
  virtual std::uint64_t real_frames(const Row& row) const { return row.length; }
  /// Of the rows of a batch, as planned.
  virtual BatchCounts counts(BatchIndex index) const {
    const BatchFigures all = figures(index);
    return {all.counted_rows(), all.counted_frames()};
  }
  /// What a live feed says of a batch's rows; null for other feeds.
  virtual std::shared_ptr<const LiveRows> live_rows(BatchIndex /*index*/) const { return nullptr; }

  /// Brings the bytes of a batch into memory. Waits for the disk. What cannot be read is left to
  /// the reader, which names it.
  virtual void prepare(BatchIndex index) const = 0;
  /// Begins to read a batch; `rows` are its rows, and stay as long as the reader.
  virtual std::unique_ptr<BatchReader> read(BatchIndex index, std::span<const Row> rows) const = 0;
};

}  // namespace batchwright
