#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright::test {

/// A field of each kind.
inline Schema mixed_schema() {
  return {{{"features", FieldKind::primary, DType::float32, {3}, {}},
           {"targets", FieldKind::aligned, DType::int16, {}, {}},
           {"tokens", FieldKind::independent, DType::int32, {}, {}},
           {"speaker", FieldKind::scalar, DType::uint8, {}, {"ann", "bob"}}},
          {{"source", "made up"}}};
}

/// The n-th made-up sequence: T = n % 50 + 1, U = n % 7, everything else follows from n.
class Sample {
 public:
  explicit Sample(std::uint32_t n)
      : key_("key/" + std::to_string(n * 7919ULL % 1000003)),
        features_((n % 50 + 1) * 3, static_cast<float>(n)),
        targets_(n % 50 + 1, static_cast<std::int16_t>(n % 1000)),
        tokens_(n % 7, static_cast<std::int32_t>(n)),
        speaker_(static_cast<std::uint8_t>(n % 2)),
        values_{{std::as_bytes(std::span(features_)), n % 50 + 1},
                {std::as_bytes(std::span(targets_)), n % 50 + 1},
                {std::as_bytes(std::span(tokens_)), n % 7},
                {std::as_bytes(std::span(&speaker_, 1)), 1}} {}
  Sample(const Sample&) = delete;

  const std::string& key() const { return key_; }
  std::uint32_t length() const { return values_[0].length; }
  Sequence sequence() const { return {key_, values_}; }

  bool equals(const RecordView& record) const {
    bool equal = record.key() == key_ && record.length() == length();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const FieldValue stored = record.field(i);
      equal = equal && stored.length == values_[i].length &&
              std::equal(stored.bytes.begin(), stored.bytes.end(), values_[i].bytes.begin(),
                         values_[i].bytes.end());
    }
    return equal;
  }

 private:
  std::string key_;
  std::vector<float> features_;
  std::vector<std::int16_t> targets_;
  std::vector<std::int32_t> tokens_;
  std::uint8_t speaker_;
  std::vector<FieldValue> values_;
};

/// Appends the samples of numbers [from, to) and commits.
inline Result<void> write_samples(DatasetWriter& writer, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t n = from; n < to; ++n) {
    if (auto added = writer.append(Sample(n).sequence()); !added) return added.error();
  }
  return writer.commit();
}

/// A closed dataset of the samples of numbers [from, to).
inline Result<void> make_samples(const std::filesystem::path& path, std::uint32_t from,
                                 std::uint32_t to, const WriterLimits& limits = {}) {
  auto writer = DatasetWriter::open(path, mixed_schema(), limits);
  if (!writer) return writer.error();
  return write_samples(*writer, from, to);
}

/// A snapshot of a dataset, from a catalog of its own.
inline Result<std::shared_ptr<const Snapshot>> snapshot_of(
    const std::vector<std::filesystem::path>& shards, VerifyRecords verify = VerifyRecords::once) {
  const auto dataset = Catalog().open(shards, verify);
  if (!dataset) return dataset.error();
  return (*dataset)->snapshot();
}

/// Whether sequence i of the snapshot is sample `from` + i, for all of them.
inline bool holds_samples(const Snapshot& snapshot, std::uint32_t from) {
  for (std::uint64_t i = 0; i < snapshot.sequences(); ++i) {
    const Sample expected(from + static_cast<std::uint32_t>(i));
    const auto record = snapshot.record(Ordinal{i});
    if (!record || !expected.equals(*record)) return false;
    if (snapshot.lengths()[i] != expected.length()) return false;
    if (snapshot.key_bytes()[i] != expected.key().size()) return false;
    if (snapshot.field_lengths(2)[i] != record->field(2).length) return false;
  }
  return true;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace batchwright::test
