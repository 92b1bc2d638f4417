#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright::test {

/// Many sequences of sound that only have lengths: planning asks for no more.
class LengthsOnly : public Snapshot {
 public:
  /// `one` has the schema, whose field 1 tells the rate, in Hz, by its length.
  LengthsOnly(std::shared_ptr<const Snapshot> one, std::vector<std::uint32_t> samples,
              std::uint32_t rate)
      : one_(std::move(one)),
        shard_(samples.size()),
        samples_(std::move(samples)),
        rates_(samples_.size(), rate) {}

  const Schema& schema() const override { return one_->schema(); }
  std::uint64_t sequences() const override { return shard_; }
  std::span<const std::uint64_t> shard_sequences() const override { return {&shard_, 1}; }
  std::uint64_t generation() const override { return 1; }
  std::uint64_t content() const override { return 1; }
  std::span<const std::uint32_t> lengths() const override { return samples_; }
  std::span<const std::uint32_t> field_lengths(std::size_t field) const override {
    return field == 1 ? std::span<const std::uint32_t>(rates_) : std::span<const std::uint32_t>{};
  }
  std::span<const std::uint16_t> key_bytes() const override { return {}; }
  Result<RecordView> record(Ordinal) const override { return none(); }
  Result<RecordView> record(Ordinal, const RecordPlace&) const override { return none(); }
  std::optional<RecordPlace> place(Ordinal) const override { return {}; }
  Result<std::optional<Ordinal>> find(std::string_view) const override { return none(); }
  void let_go(Ordinal) const override {}
  std::uint64_t file_bytes() const override { return 0; }

 private:
  static Error none() { return {ErrorCode::not_found, "lengths only"}; }

  std::shared_ptr<const Snapshot> one_;
  std::uint64_t shard_;
  std::vector<std::uint32_t> samples_;
  std::vector<std::uint32_t> rates_;
};

}  // namespace batchwright::test
