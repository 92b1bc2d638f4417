#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/assembly/batch_source.h"
#include "daemon/assembly/sources/row_locations.h"
#include "storage/dataset/dataset.h"

namespace batchwright {

/// Reads stored sequences, whose records were looked up before. Lifetime: snapshot and rows stay.
std::unique_ptr<BatchReader> read_records(const Snapshot& snapshot, std::span<const Row> rows,
                                          RowPlaces places);

/// One epoch of a dataset: its plan, and the records that it speaks of, kept alive together.
class EpochSource final : public BatchSource {
 public:
  /// `row_lengths`: of rows that a recipe makes; null: rows are as long as what is stored.
  EpochSource(Epoch number, const Fingerprint& of, std::shared_ptr<const Snapshot> stored,
              EpochPlan planned, bool parts = false, SharedLengths row_lengths = nullptr)
      : epoch(number),
        fingerprint(of),
        snapshot(std::move(stored)),
        plan(std::move(planned)),
        has_parts(parts),
        lengths(std::move(row_lengths)) {}

  EpochOutline outline() const override {
    return {epoch, fingerprint, plan.world(), plan.batches(), has_parts};
  }
  const Schema& schema() const override { return snapshot->schema(); }
  BatchFigures figures(BatchIndex index) const override { return plan.figures(index); }
  void rows(BatchIndex index, std::vector<Row>& rows) const override { plan.rows(index, rows); }
  std::uint32_t parts_of(const Row& row) const override {
    return plan.chunks_of(Ordinal{row.ordinal});
  }
  void prepare(BatchIndex index) const override;
  std::unique_ptr<BatchReader> read(BatchIndex index, std::span<const Row> rows) const override;

  /// Like prepare(), of one row that is part of a sequence.
  void prepare_part(const Row& row) const;

  Epoch epoch;
  Fingerprint fingerprint;
  std::shared_ptr<const Snapshot> snapshot;
  EpochPlan plan;  ///< Refers to `lengths`, or else to those of the snapshot.
  bool has_parts;
  SharedLengths lengths;
  /// Where readahead found the records of coming batches.
  std::shared_ptr<RowLocations> found = std::make_shared<RowLocations>();
};

}  // namespace batchwright
