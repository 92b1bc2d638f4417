#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/assembly/assembler.h"
#include "daemon/assembly/batch_source.h"

namespace batchwright {

/// A batch to build, with its source and destination.
struct BatchJob {
  const BatchSource& source;
  const BatchStyle& style;
  BatchIndex index;
  std::span<std::byte> slot;
  const CopyChoice& copies;
};

/// Builds one batch at a time, and keeps its lists' memory for the next one.
///
/// First every row is read and checked, so that a corrupt one is known before the batch has a
/// shape; then the FlatBuffer is laid out, and then the payload is copied.
/// Threads: one at a time.
class BatchBuilder {
 public:
  Result<AssembledBatch> build(const BatchJob& job);

 private:
  Result<void> read_rows(const BatchJob& job, const EpochOutline& outline, BatchReader& reader,
                         std::vector<SkippedSequence>& skipped);
  Result<void> read_row(const BatchJob& job, std::size_t r, BatchReader& reader);
  void add_row(const Row& row);
  void set_sources(const BatchJob& job, const Row& row);
  Result<void> check_not_empty(std::span<const SkippedSequence> skipped) const;
  void cast_fields(const BatchJob& job);
  Result<LaidOutBatch> lay_out(const BatchJob& job, const EpochOutline& outline, BatchSpec& spec);
  Result<void> copy_payload(const BatchJob& job, const BatchSpec& spec,
                            const LaidOutBatch& laid_out, CastLoss& lost) const;

  /// One field of all rows.
  struct Column {
    std::vector<std::span<const std::byte>> sources;  ///< Bytes of the source; empty: all padding.
    std::vector<std::uint32_t> lengths;               ///< U, of an independent field only.
  };

  std::vector<FieldSpec> fields_;  ///< As the batch has them, without their categories.
  std::vector<Row> planned_;
  RowBytes row_;  ///< The current one.
  // What the batch says of its rows, one entry each.
  std::vector<std::uint64_t> ordinals_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint8_t> flags_;
  std::vector<float> weights_;
  std::vector<std::uint32_t> uses_;
  std::vector<std::size_t> key_ends_;
  std::vector<std::string_view> keys_;
  std::vector<char> key_text_;   ///< Of all rows, one after the other.
  std::vector<Column> columns_;  ///< One for each of the schema's fields.
};

}  // namespace batchwright
