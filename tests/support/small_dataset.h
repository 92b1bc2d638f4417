#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"

namespace batchwright::test {

/// float32 features [T, 4] and an int32 label, as make_small_dataset() writes them.
inline Schema small_schema() {
  return {{{"features", FieldKind::primary, DType::float32, {4}, {}},
           {"label", FieldKind::scalar, DType::int32, {}, {}}},
          {}};
}

/// What frame `frame` of sequence `ordinal` holds in dimension `dim`: different everywhere.
inline float small_value(std::uint64_t ordinal, std::uint64_t frame, std::uint64_t dim) {
  return static_cast<float>(ordinal * 1000 + frame * 4 + dim);
}

/// A dataset of one sequence a length; keys are "seq-0", "seq-1", ..., labels the ordinals.
/// All three count from `first`, for a dataset that follows others of so many sequences.
inline void make_small_dataset(const std::filesystem::path& path,
                               const std::vector<std::uint32_t>& lengths, std::uint64_t first = 0) {
  auto writer = DatasetWriter::open(path, small_schema());
  if (!writer) throw std::runtime_error(writer.error().message);
  for (std::uint64_t i = first; i < first + lengths.size(); ++i) {
    const std::uint32_t length = lengths[i - first];
    std::vector<float> features;
    for (std::uint64_t t = 0; t < length; ++t) {
      for (std::uint64_t d = 0; d < 4; ++d) features.push_back(small_value(i, t, d));
    }
    const auto label = static_cast<std::int32_t>(i);
    const std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), length},
                                            {std::as_bytes(std::span(&label, 1)), 1}};
    const auto added = writer->append({"seq-" + std::to_string(i), values});
    if (!added) throw std::runtime_error(added.error().message);
  }
  if (auto done = writer->commit(); !done) throw std::runtime_error(done.error().message);
}

/// Lengths from 1 to `longest`, `count` of them, in no order.
inline std::vector<std::uint32_t> mixed_lengths(std::size_t count, std::uint32_t longest) {
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < count; ++i) {
    lengths.push_back(static_cast<std::uint32_t>(i * 7919 % longest + 1));
  }
  return lengths;
}

}  // namespace batchwright::test
