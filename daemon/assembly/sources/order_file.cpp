#include "daemon/assembly/sources/order_file.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace batchwright {
namespace {

/// As many bytes as 4,294,967,295 rows may take is more than a daemon reads at once.
constexpr std::size_t kMostOrderBytes = std::size_t{1} << 32;

Error bad_order(const std::string& file, const std::string& what) {
  return {ErrorCode::bad_configuration, fmt::format("order file {}: {}", file, what)};
}

Result<std::string> order_text(const std::string& file) {
  struct stat status {};
  // What is not there is file_text()'s to say. To open a device may do anything.
  const bool is_there = ::stat(file.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode)) {
    return bad_order(file, "found a folder, a pipe or a device; allowed: a file");
  }
  if (is_there && static_cast<std::uint64_t>(status.st_size) > kMostOrderBytes) {
    return bad_order(
        file, fmt::format("found {} bytes; allowed: up to {}", status.st_size, kMostOrderBytes));
  }
  const auto bytes = is_there ? static_cast<std::size_t>(status.st_size) : 0;
  if (auto there = probe_memory(bytes, 2, "an order file"); !there) return there.error();
  auto text = file_text(file, kMostOrderBytes);
  if (!text) return Error{text.error().code, "order file " + text.error().message};
  return text;
}

/// Reads the weights of sequences out of one of their fields.
class WeightField {
 public:
  static Result<WeightField> find(const Snapshot& snapshot, const std::string& name) {
    const Schema& schema = snapshot.schema();
    const auto bad = [](const std::string& what) {
      return Error{ErrorCode::bad_configuration, fmt::format("row_weight: {}", what)};
    };
    const auto field = schema.find(name);
    if (!field) return bad(field.error().message);
    const FieldSpec& spec = schema.fields[*field];
    if (spec.kind == FieldKind::scalar && spec.dtype == DType::float32) {
      return WeightField(snapshot, *field);
    }
    return bad(fmt::format("found field \"{}\"; allowed: a scalar float32 field", name));
  }

  /// Structure and bounds of the record are checked, and not its CRC: that waits until a batch has
  /// the row, since it would read the whole dataset here.
  Result<float> of(Ordinal ordinal) const {
    const auto place = snapshot_.place(ordinal);
    if (!place) {
      const auto record = snapshot_.record(ordinal);  // for the reason
      if (!record) return record.error();
      return value_of(*record);
    }
    std::optional<Result<RecordView>> record;
    if (!guarded([&] { record.emplace(RecordView::parse(snapshot_.schema(), place->bytes)); })) {
      return map_faulted();
    }
    if (!*record) {
      return Error{record->error().code,
                   fmt::format("sequence {}: {}", ordinal.value, record->error().message)};
    }
    return value_of(**record);
  }

 private:
  WeightField(const Snapshot& snapshot, std::size_t field) : snapshot_(snapshot), field_(field) {}

  Result<float> value_of(const RecordView& record) const {
    std::vector<FieldValue> values(snapshot_.schema().fields.size());
    if (auto read = fields_from_map(record, values); !read) return read.error();
    float weight = 0.0F;
    auto copied =
        copy_from_map(std::as_writable_bytes(std::span(&weight, 1)), values[field_].bytes);
    if (!copied) return copied.error();
    return weight;
  }

  const Snapshot& snapshot_;
  std::size_t field_;
};

/// Gives each row the weight that its sequence has, unless the file gives one.
Result<void> add_weights(const Snapshot& snapshot, const std::string& name, OrderRows& order) {
  const auto field = WeightField::find(snapshot, name);
  if (!field) return field.error();
  // Each sequence once, in the order of the records.
  std::vector<bool> is_named(snapshot.sequences());
  for (const ListedRow& row : order.rows) {
    if (row.has_sequence()) is_named[row.ordinal] = true;
  }
  std::vector<float> weights(snapshot.sequences(), 1.0F);
  for (std::size_t ordinal = 0; ordinal < weights.size(); ++ordinal) {
    if (!is_named[ordinal]) continue;
    const auto weight = field->of(Ordinal{ordinal});
    if (!weight) return weight.error();
    weights[ordinal] = *weight + 0.0F;  // -0 is 0
    if (std::isfinite(*weight)) continue;
    return Error{
        ErrorCode::bad_configuration,
        fmt::format("row_weight: sequence {} has {} in field \"{}\"; allowed: a finite number",
                    ordinal, *weight, name)};
  }
  order.weights.resize(order.rows.size(), 1.0F);
  order.own_weights.resize(order.rows.size());
  for (std::size_t i = 0; i < order.rows.size(); ++i) {
    const ListedRow& row = order.rows[i];
    if (row.has_sequence() && !order.own_weights[i]) order.weights[i] = weights[row.ordinal];
  }
  note_hashes(order);
  return {};
}

Result<void> read(const OrderNames& names, const Snapshot* snapshot, PlanSettings& settings) {
  settings.order_rows = nullptr;
  if (settings.order != Order::file) return {};
  const auto text = order_text(settings.order_file);
  if (!text) return text.error();
  auto order = parse_order(*text, settings.order_file, names);
  if (!order) return order.error();
  if (!settings.row_weight.empty()) {
    if (snapshot == nullptr) {
      return Error{ErrorCode::bad_configuration,
                   fmt::format("row_weight: found \"{}\" for lengths without fields; allowed: a "
                               "field of a dataset",
                               settings.row_weight)};
    }
    auto added = add_weights(*snapshot, settings.row_weight, *order);
    if (!added) return added;
  }
  order->own_weights = {};
  settings.order_rows = std::make_shared<const OrderRows>(*std::move(order));
  return {};
}

}  // namespace

Result<void> read_order(const Snapshot& snapshot, PlanSettings& settings) {
  const auto find = [&snapshot](std::string_view key) -> Result<std::optional<std::uint64_t>> {
    const auto ordinal = snapshot.find(key);
    if (!ordinal) return ordinal.error();
    return *ordinal ? std::optional((*ordinal)->value) : std::nullopt;
  };
  return read({snapshot.sequences(), find}, &snapshot, settings);
}

Result<void> read_order(std::uint64_t sequences, PlanSettings& settings) {
  return read({sequences, nullptr}, nullptr, settings);
}

}  // namespace batchwright
