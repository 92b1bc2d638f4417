#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/assembly/assembly.h"

namespace batchwright {

/// A dataset that a test makes up: every byte of every field follows from where it stands, and
/// none of them is 0.
class MadeUpSnapshot final : public Snapshot {
 public:
  /// `tokens` are the lengths in every independent field; empty: as `lengths`.
  MadeUpSnapshot(Schema schema, std::vector<std::uint32_t> lengths,
                 std::vector<std::uint32_t> tokens = {});

  const Schema& schema() const override { return schema_; }
  std::uint64_t sequences() const override { return lengths_.size(); }
  std::span<const std::uint64_t> shard_sequences() const override { return {&count_, 1}; }
  std::uint64_t generation() const override { return 1; }
  std::uint64_t content() const override { return 7; }
  std::span<const std::uint32_t> lengths() const override { return lengths_; }
  std::span<const std::uint32_t> field_lengths(std::size_t field) const override;
  std::span<const std::uint16_t> key_bytes() const override { return key_bytes_; }
  Result<RecordView> record(Ordinal ordinal) const override;
  Result<RecordView> record(Ordinal ordinal, const RecordPlace&) const override {
    return record(ordinal);
  }
  std::optional<RecordPlace> place(Ordinal ordinal) const override {
    if (on_place) on_place(ordinal);
    return RecordPlace{records_[ordinal.value], device};
  }
  Result<std::optional<Ordinal>> find(std::string_view) const override {
    return std::optional<Ordinal>();
  }
  void let_go(Ordinal ordinal) const override {
    if (on_let_go) on_let_go(ordinal);
  }
  std::uint64_t file_bytes() const override {
    if (on_file_bytes) on_file_bytes();
    return claimed_bytes;
  }

  /// The bytes of a field that was appended, whole.
  std::span<const std::byte> content(std::uint64_t ordinal, std::size_t field) const;
  static std::string key(std::uint64_t ordinal);

  std::set<std::uint64_t> corrupt;  ///< Ordinals whose record() is corrupt_record.
  std::function<void(Ordinal)> on_record;
  std::function<void(Ordinal)> on_place;
  std::function<void(Ordinal)> on_let_go;
  std::function<void()> on_file_bytes;
  std::uint64_t device = 1;
  std::uint64_t claimed_bytes = 0;             ///< What file_bytes() claims.
  std::vector<std::uint32_t> indexed_lengths;  ///< What tokens claim to be; empty: the truth.

 private:
  std::uint32_t length_of(const FieldSpec& field, std::uint64_t ordinal) const;

  Schema schema_;
  std::vector<std::uint32_t> lengths_;
  std::uint64_t count_ = lengths_.size();
  std::vector<std::uint32_t> tokens_;
  std::vector<std::uint16_t> key_bytes_;
  std::vector<std::vector<std::vector<std::byte>>> values_;  // per sequence, per field
  std::vector<std::vector<std::byte>> records_;
};

/// A schema of one primary field.
Schema frames_only(DType dtype, std::vector<std::uint32_t> shape);
/// One field of each kind, with frames of 12, 2 and 4 bytes, and a scalar of 8.
Schema all_kinds();

/// Memory with the alignment of a page, filled with 0xEE.
class TestSlot {
 public:
  explicit TestSlot(std::size_t bytes);
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> storage_;
  std::span<std::byte> bytes_;
};

/// Sequences of all kinds of fields, of 1 to 50 frames in no order.
std::shared_ptr<MadeUpSnapshot> made_up(std::size_t sequences);

/// Settings of a plan that keeps the dataset's order, `size` rows a batch.
PlanSettings in_order(std::uint32_t size);

/// The whole dataset as epoch 3, planned by `settings`.
std::shared_ptr<EpochSource> plan_of(std::shared_ptr<const Snapshot> snapshot,
                                     const PlanSettings& settings);

/// The FlatBuffer of an assembled batch, verified.
const wire::Batch& batch_in(const TestSlot& slot, const AssembledBatch& batch);

/// A batch in a slot of its own.
struct Assembled {
  TestSlot slot{std::size_t{1} << 20};
  AssembledBatch figures;
  const wire::Batch& batch() const { return batch_in(slot, figures); }
};

/// Payload of tensor `t`.
std::span<const std::byte> payload(const wire::Batch& batch, unsigned t);
std::vector<std::uint64_t> shape(const wire::Batch& batch, unsigned t);

}  // namespace batchwright
