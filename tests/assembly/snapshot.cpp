#include "tests/assembly/snapshot.h"

#include <doctest/doctest.h>

namespace batchwright {
namespace {

std::vector<std::byte> made_up_bytes(std::size_t size, std::size_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(1 + (seed * 101 + i * 7 + i / 255) % 255);
  }
  return bytes;
}

}  // namespace

MadeUpSnapshot::MadeUpSnapshot(Schema schema, std::vector<std::uint32_t> lengths,
                               std::vector<std::uint32_t> tokens)
    : schema_(std::move(schema)), lengths_(std::move(lengths)), tokens_(std::move(tokens)) {
  REQUIRE(validate(schema_));
  if (tokens_.empty()) tokens_ = lengths_;
  for (std::uint64_t o = 0; o < lengths_.size(); ++o) {
    auto& values = values_.emplace_back();
    std::vector<FieldValue> fields;
    for (std::size_t f = 0; f < schema_.fields.size(); ++f) {
      const std::uint32_t length = length_of(schema_.fields[f], o);
      values.push_back(made_up_bytes(length * frame_bytes(schema_.fields[f]), o * 64 + f));
      fields.push_back({values.back(), length});
    }
    const std::string name = key(o);
    const Sequence sequence{name, fields};
    REQUIRE(check_sequence(schema_, sequence));
    records_.emplace_back(record_bytes(sequence));
    write_record(sequence, Ordinal{o}, lengths_[o], records_.back());
    key_bytes_.push_back(static_cast<std::uint16_t>(name.size()));
  }
}

std::uint32_t MadeUpSnapshot::length_of(const FieldSpec& field, std::uint64_t ordinal) const {
  if (field.kind == FieldKind::scalar) return 1;
  return field.kind == FieldKind::independent ? tokens_[ordinal] : lengths_[ordinal];
}

std::span<const std::uint32_t> MadeUpSnapshot::field_lengths(std::size_t field) const {
  if (schema_.fields[field].kind != FieldKind::independent) return {};
  return indexed_lengths.empty() ? tokens_ : indexed_lengths;
}

Result<RecordView> MadeUpSnapshot::record(Ordinal ordinal) const {
  if (on_record) on_record(ordinal);
  if (corrupt.contains(ordinal.value)) {
    return Error{ErrorCode::corrupt_record, "key \"" + key(ordinal.value) + "\": wrong CRC"};
  }
  return RecordView::parse(schema_, records_[ordinal.value]);
}

std::span<const std::byte> MadeUpSnapshot::content(std::uint64_t ordinal, std::size_t field) const {
  return values_[ordinal][field];
}

std::string MadeUpSnapshot::key(std::uint64_t ordinal) {
  return "key-" + std::string(ordinal % 5, 'x') + std::to_string(ordinal);
}

Schema frames_only(DType dtype, std::vector<std::uint32_t> shape) {
  return {{{"features", FieldKind::primary, dtype, std::move(shape), {}}}, {}};
}

Schema all_kinds() {
  return {{{"features", FieldKind::primary, DType::float32, {3}, {}},
           {"targets", FieldKind::aligned, DType::int16, {}, {}},
           {"tokens", FieldKind::independent, DType::int32, {}, {}},
           {"speaker", FieldKind::scalar, DType::int64, {}, {}}},
          {}};
}

TestSlot::TestSlot(std::size_t bytes) : storage_(bytes + 4096, std::byte{0xEE}) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  bytes_ = std::span(storage_).subspan((4096 - address % 4096) % 4096, bytes);
}

std::shared_ptr<MadeUpSnapshot> made_up(std::size_t sequences) {
  std::vector<std::uint32_t> lengths(sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    lengths[i] = 1 + static_cast<std::uint32_t>(i * 37 % 50);
  }
  return std::make_shared<MadeUpSnapshot>(all_kinds(), std::move(lengths));
}

PlanSettings in_order(std::uint32_t size) {
  PlanSettings settings;
  settings.order = Order::sorted;
  settings.cut = Cut::fixed;
  settings.size = size;
  return settings;
}

std::shared_ptr<EpochSource> plan_of(std::shared_ptr<const Snapshot> snapshot,
                                     const PlanSettings& settings) {
  const Fingerprint fingerprint{snapshot->content(), settings_hash(settings), settings.seed};
  auto plan = plan_epoch(snapshot->lengths(), settings, Epoch{3});
  REQUIRE(plan);
  return std::make_shared<EpochSource>(Epoch{3}, fingerprint, std::move(snapshot),
                                       std::move(*plan));
}

const wire::Batch& batch_in(const TestSlot& slot, const AssembledBatch& batch) {
  const auto verified = verify_batch(slot.bytes().subspan(batch.offset, batch.size));
  REQUIRE(verified);
  return **verified;
}

std::span<const std::byte> payload(const wire::Batch& batch, unsigned t) {
  const auto* data = batch.tensors()->Get(t)->data();
  return {reinterpret_cast<const std::byte*>(data->data()), data->size()};
}

std::vector<std::uint64_t> shape(const wire::Batch& batch, unsigned t) {
  const auto* shape = batch.tensors()->Get(t)->shape();
  return {shape->begin(), shape->end()};
}

}  // namespace batchwright
