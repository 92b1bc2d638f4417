#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"
#include "tests/support/small_dataset.h"

namespace batchwright::test {

/// One field of each kind: features as in a small dataset, and three more whose values follow from
/// the ordinal and the place too.
inline Schema full_schema() {
  return {{{"features", FieldKind::primary, DType::float32, {4}, {}},
           {"targets", FieldKind::aligned, DType::int32, {2}, {}},
           {"tokens", FieldKind::independent, DType::int16, {}, {}},
           {"speaker", FieldKind::scalar, DType::int64, {}, {}}},
          {}};
}

inline std::int32_t target_value(std::uint64_t ordinal, std::uint64_t frame, std::uint64_t dim) {
  return -static_cast<std::int32_t>(ordinal * 1000 + frame * 2 + dim) - 1;
}
/// Tokens of a sequence, its length in frames left out of account: none for every seventh.
inline std::uint32_t token_count(std::uint64_t ordinal) {
  return static_cast<std::uint32_t>(ordinal % 7);
}
inline std::int16_t token_value(std::uint64_t ordinal, std::uint64_t place) {
  return static_cast<std::int16_t>(ordinal * 10 + place + 1);
}
inline std::int64_t speaker_value(std::uint64_t ordinal) {
  return static_cast<std::int64_t>(ordinal) * 10'000'000'019;
}

/// A dataset of one sequence a length, with all four fields; keys as of a small dataset.
inline void make_full_dataset(const std::filesystem::path& path,
                              const std::vector<std::uint32_t>& lengths) {
  auto writer = DatasetWriter::open(path, full_schema());
  if (!writer) throw std::runtime_error(writer.error().message);
  for (std::uint64_t i = 0; i < lengths.size(); ++i) {
    std::vector<float> features;
    std::vector<std::int32_t> targets;
    for (std::uint64_t t = 0; t < lengths[i]; ++t) {
      for (std::uint64_t d = 0; d < 4; ++d) features.push_back(small_value(i, t, d));
      for (std::uint64_t d = 0; d < 2; ++d) targets.push_back(target_value(i, t, d));
    }
    std::vector<std::int16_t> tokens;
    for (std::uint64_t u = 0; u < token_count(i); ++u) tokens.push_back(token_value(i, u));
    const std::int64_t speaker = speaker_value(i);
    const std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), lengths[i]},
                                            {std::as_bytes(std::span(targets)), lengths[i]},
                                            {std::as_bytes(std::span(tokens)), token_count(i)},
                                            {std::as_bytes(std::span(&speaker, 1)), 1}};
    const auto added = writer->append({"seq-" + std::to_string(i), values});
    if (!added) throw std::runtime_error(added.error().message);
  }
  if (auto done = writer->commit(); !done) throw std::runtime_error(done.error().message);
}

}  // namespace batchwright::test
