#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/assembly/assembler.h"

namespace batchwright {

/// A batch to build, with its source and destination.
struct BatchJob {
  const EpochSource& source;
  const BatchStyle& style;
  BatchIndex index;
  std::span<std::byte> slot;
  const CopyChoice& copies;
};

/// Builds one batch at a time, and keeps its lists' memory for the next one.
///
/// First every record is looked up, and its header asked for; then each is verified, so that a
/// corrupt one is known before the batch has a shape; then the FlatBuffer is laid out, and then the
/// payload is copied.
/// Threads: one at a time.
class BatchBuilder {
 public:
  Result<AssembledBatch> build(const BatchJob& job);

 private:
  void look_up_rows(const BatchJob& job);
  Result<void> read_rows(const BatchJob& job, std::vector<SkippedSequence>& skipped);
  Result<void> read_row(const BatchJob& job, const Row& row,
                        const std::optional<RecordPlace>& place);
  void add_row(const Row& row);
  void cast_fields(const BatchJob& job);
  Result<void> make_row(const BatchJob& job, const Row& row);
  Result<void> make_by_recipe(const BatchJob& job, const Row& row, std::vector<MadeField>& made);
  std::span<const std::byte> made_bytes(std::size_t row, std::size_t field) const;
  void set_sources(const BatchJob& job, const Row& row);
  Result<LaidOutBatch> lay_out(const BatchJob& job, BatchSpec& spec);
  Result<void> check_not_empty(std::span<const SkippedSequence> skipped) const;
  Result<void> copy_payload(const BatchJob& job, const BatchSpec& spec,
                            const LaidOutBatch& laid_out, CastLoss& lost) const;

  /// One field of all rows.
  struct Column {
    std::vector<std::span<const std::byte>> sources;  ///< Bytes in the map; empty: all padding.
    std::vector<std::uint32_t> lengths;               ///< U, of an independent field only.
  };

  /// What a recipe made, by row of the current batch.
  struct Making {
    RowMaker maker;
    std::vector<std::vector<MadeField>> own;  ///< Of whole rows.
    std::vector<KeptRow> kept;                ///< Of parts, which other batches share.
    MadeRows figures;
  };

  std::vector<FieldSpec> fields_;  ///< As the batch has them, without their categories.
  std::vector<Row> planned_;
  RowPlaces places_;                ///< Of the planned rows' records.
  std::vector<FieldValue> values_;  ///< Values of the current record.
  // What the batch says of its rows, one entry each.
  std::vector<std::uint64_t> ordinals_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::size_t> key_ends_;
  std::vector<std::string_view> keys_;
  std::vector<char> key_text_;   ///< A copy: the map may fault when the layout reads the keys.
  std::vector<Column> columns_;  ///< One for each of the schema's fields.
  Making making_;
};

}  // namespace batchwright
