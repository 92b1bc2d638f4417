#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "client/command/live/patient_producer.h"
#include "client/command/live/push_source.h"
#include "client/command/watch/feeds.h"
#include "storage/dataset/dataset.h"

namespace batchwright {
namespace {

bool is_same(const FieldSpec& have, const bw_field& wanted) {
  return static_cast<bw_kind>(have.kind) == wanted.kind &&
         static_cast<bw_dtype>(have.dtype) == wanted.dtype &&
         std::equal(have.shape.begin(), have.shape.end(), wanted.shape, wanted.shape + wanted.ndim);
}

std::string text_of(const FieldSpec& spec) {
  bw_field field{};
  field.name = spec.name.c_str();
  field.kind = static_cast<bw_kind>(spec.kind);
  field.dtype = static_cast<bw_dtype>(spec.dtype);
  field.ndim = static_cast<std::uint32_t>(spec.shape.size());
  std::copy(spec.shape.begin(), spec.shape.end(), field.shape);
  return field_text(field);
}

/// The place of each of the feed's fields in the dataset.
Result<std::vector<std::size_t>> places_of(const Schema& schema, const bw_feed& feed) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < feed.pushed_count; ++i) {
    const bw_field& wanted = *feed.fields[i];
    const auto found =
        std::find_if(schema.fields.begin(), schema.fields.end(),
                     [&](const FieldSpec& have) { return have.name == wanted.name; });
    if (found == schema.fields.end() || !is_same(*found, wanted)) {
      std::vector<std::string> all;
      for (const FieldSpec& have : schema.fields) all.push_back(text_of(have));
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("feed \"{}\" takes {}; the dataset has {}", feed.name,
                               field_text(wanted), fmt::join(all, "; "))};
    }
    places.push_back(static_cast<std::size_t>(found - schema.fields.begin()));
  }
  return places;
}

class DatasetToPush final : public PushSource {
 public:
  DatasetToPush(std::shared_ptr<const Snapshot> snapshot, std::vector<std::size_t> places)
      : snapshot_(std::move(snapshot)),
        places_(std::move(places)),
        values_(snapshot_->schema().fields.size()) {}

  Result<std::optional<SequenceToPush>> next(std::uint64_t from) override {
    next_ = std::max(next_, from);
    if (next_ >= snapshot_->sequences()) return std::optional<SequenceToPush>();
    const auto record = snapshot_->record(Ordinal{next_});
    if (!record) return record.error();
    if (auto read = fields_from_map(*record, values_); !read) return read.error();
    SequenceToPush sequence;
    sequence.number = next_++;
    sequence.origin.version = kNewestVersion;
    sequence.key = record->key();
    for (const std::size_t place : places_) {
      const FieldValue& value = values_[place];
      auto& bytes = sequence.values.emplace_back(value.bytes.size());
      if (auto copied = copy_from_map(bytes, value.bytes); !copied) return copied.error();
      sequence.lengths.push_back(value.length);
    }
    return std::optional(std::move(sequence));
  }
  std::optional<std::uint64_t> total() const override { return snapshot_->sequences(); }

 private:
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<std::size_t> places_;
  std::vector<FieldValue> values_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::uint64_t SequenceToPush::bytes() const {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& value) { return sum + value.size(); });
}

Result<std::unique_ptr<PushSource>> open_dataset_to_push(const std::filesystem::path& path,
                                                         const bw_feed& feed) {
  Catalog catalog;
  const auto dataset = catalog.open({path}, VerifyRecords::once, Locking::permitted);
  if (!dataset) return dataset.error();
  auto snapshot = (*dataset)->snapshot();
  if (!snapshot) return snapshot.error();
  auto places = places_of((*snapshot)->schema(), feed);
  if (!places) {
    return Error{places.error().code, fmt::format("{}: {}", path.string(), places.error().message)};
  }
  return std::unique_ptr<PushSource>(
      std::make_unique<DatasetToPush>(std::move(*snapshot), std::move(*places)));
}

}  // namespace batchwright
