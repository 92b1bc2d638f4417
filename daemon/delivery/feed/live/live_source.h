#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"
#include "daemon/delivery/feed/live/joins/joined_rows.h"
#include "formats/formats.h"

namespace batchwright {

/// A sequence that a producer has pushed, as its feed keeps it.
struct PushedSequence {
  std::string key;
  /// In the order of the schema. Those that are pushed lie in `memory`; of the last ones, which are
  /// joined, there are the lengths alone.
  std::vector<FieldValue> fields;
  std::shared_ptr<const void> memory;           ///< The producer's area, or a message.
  std::shared_ptr<const std::string> producer;  ///< Its name.
  std::uint64_t number = 0;
  std::uint64_t arrival = 0;  ///< How many the feed had accepted before: its ordinal.
  std::uint64_t version = 0;
  std::uint64_t version_newest = 0;
  std::uint64_t group = kNoGroup;
  std::uint32_t group_size = 0;
  float weight = 1;
  std::optional<JoinedRow> of;  ///< Empty where the feed joins none.
  std::uint64_t epoch = 0;      ///< Of the plan that it was forwarded from.

  /// Of all fields that are pushed.
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const FieldValue& field : fields) sum += field.bytes.size();
    return sum;
  }
};

/// One batch of a step.
struct LiveBatch {
  std::vector<std::shared_ptr<const PushedSequence>> sequences;  ///< Of the rows; null: free lanes.
  std::vector<Row> rows;
  LiveRows says;
  BatchFigures figures;
};

/// The steps of a live feed, as one epoch that grows: those that are kept have bytes. What a step
/// holds never changes. Threads: any.
class LiveSource final : public BatchSource {
 public:
  /// `has_parts`: rows may be parts of sequences.
  LiveSource(Schema schema, Fingerprint fingerprint, std::uint32_t world, bool has_parts = false)
      : schema_(std::move(schema)),
        fingerprint_(fingerprint),
        world_(world),
        has_parts_(has_parts) {}

  /// For a feed that goes on: its first step is this one.
  void begin_at(std::uint64_t step);
  /// The next step has been cut, of `world` batches.
  void add(std::vector<LiveBatch> batches);
  /// Lets go of the steps before this one. Their batches can be assembled no more.
  void keep_from(std::uint64_t step);
  /// No more steps follow.
  void end();
  /// The first step that is kept; steps() if none is.
  std::uint64_t first_kept() const;
  /// A batch of a step that is kept; null for another.
  std::shared_ptr<const LiveBatch> find(BatchIndex index) const;

  EpochOutline outline() const override;
  const Schema& schema() const override { return schema_; }
  BatchFigures figures(BatchIndex index) const override;
  void rows(BatchIndex index, std::vector<Row>& rows) const override;
  std::uint32_t parts_of(const Row& /*row*/) const override { return has_parts_ ? 0 : 1; }
  std::shared_ptr<const LiveRows> live_rows(BatchIndex index) const override;
  void prepare(BatchIndex index) const override;
  std::unique_ptr<BatchReader> read(BatchIndex index, std::span<const Row> rows) const override;

 private:
  const Schema schema_;
  const Fingerprint fingerprint_;
  const std::uint32_t world_;
  const bool has_parts_;
  mutable Mutex mutex_;
  std::uint64_t first_ GUARDED_BY(mutex_) = 0;  ///< Batch of batches_.
  std::deque<std::shared_ptr<const LiveBatch>> batches_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace batchwright
