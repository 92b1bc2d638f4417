#include "storage/dataset/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/dataset/chunk_header.h"
#include "storage/dataset/history.h"
#include "storage/dataset/reader.h"

namespace batchwright {
namespace {

constexpr std::string_view kDescriptionKey = "description";
constexpr std::string_view kStateKey = "state";
constexpr std::size_t kMostMetaBytes = std::size_t{64} << 20;  // far above any description
static_assert(kStateBytes == sizeof(wire::DatasetState));

/// One step of the chained hash; the formula is part of the format (FORMAT.md).
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  return mix64(hash * kGoldenStep + word);
}

std::uint64_t mix_text(std::uint64_t hash, std::string_view text) {
  // The size first, so that two texts do not mix in like one.
  hash = mix(hash, text.size());
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    hash = mix(hash, word);
  }
  return hash;
}

std::uint64_t mix_field(std::uint64_t hash, const FieldSpec& field) {
  hash = mix_text(hash, field.name);
  hash = mix(hash, static_cast<std::uint64_t>(field.kind));
  hash = mix(hash, static_cast<std::uint64_t>(field.dtype));
  hash = mix(hash, field.shape.size());
  for (const std::uint32_t extent : field.shape) hash = mix(hash, extent);
  // Appended names change no fingerprint, and so no position in an epoch.
  const auto original =
      std::span(field.categories).first(field.categories.size() - field.appended_categories);
  hash = mix(hash, original.size());
  for (const std::string& name : original) hash = mix_text(hash, name);
  return hash;
}

Error in_dataset(const Transaction& transaction, const Error& error) {
  return {error.code,
          fmt::format("dataset {}: {}", transaction.environment().path().string(), error.message)};
}

/// A value of `meta`, in the map.
Result<MapBytes> find_value(const Transaction& transaction, std::string_view key) {
  const auto found = transaction.get(Table::meta, as_key(key));
  if (!found) return found.error();
  if (!*found) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("dataset {}: its {} is missing",
                             transaction.environment().path().string(), key)};
  }
  // Before memory is taken: a flipped bit in LMDB's page makes the size anything.
  if ((*found)->size() > kMostMetaBytes) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("dataset {}: its {} is damaged",
                             transaction.environment().path().string(), key)};
  }
  return **found;
}

Result<std::vector<std::byte>> copy_of(const Transaction& transaction, MapBytes value) {
  std::vector<std::byte> copy(value.size());
  if (!copy_from_map(copy, value)) return transaction.environment().fault();
  return copy;
}

Result<DatasetState> decode_state(std::span<const std::byte> bytes) {
  wire::DatasetState state;
  // A newer version may be longer, but says which it is at the same place.
  if (bytes.size() >= kStateBytes) {
    std::memcpy(static_cast<void*>(&state), bytes.data(), kStateBytes);
    if (state.format_version() > kDatasetFormatVersion) {
      return Error{
          ErrorCode::unsupported_version,
          fmt::format(
              "dataset format version {} is newer than version {}, the newest this program reads",
              state.format_version(), kDatasetFormatVersion)};
    }
  }
  if (bytes.size() != kStateBytes || crc32c(bytes.subspan(kCrcEnd)) != state.crc()) {
    return Error{ErrorCode::corrupt_record, "its state is damaged"};
  }
  return DatasetState{state.sequences(), state.frames(),     state.generation(),
                      state.content(),   state.min_length(), state.max_length()};
}

/// What a state says of its dataset is how much memory is taken and how much is read, so it is
/// compared with what LMDB counts, and that with the room in the file: a record is no shorter than
/// its header and a field's entry.
Result<void> check_count(const Transaction& transaction, const DatasetState& state) {
  constexpr std::uint64_t kLeastRecord = sizeof(wire::RecordHeader) + sizeof(wire::RecordField);
  const auto stored = transaction.entries(Table::sequences);
  if (!stored) return stored.error();
  const std::uint64_t file = transaction.environment().file_bytes();
  if (*stored != state.sequences) {
    return Error{ErrorCode::corrupt_record,
                 fmt::format("its state says {} sequences, it has {}", state.sequences, *stored)};
  }
  if (state.sequences <= file / kLeastRecord) return {};
  return Error{ErrorCode::corrupt_record,
               fmt::format("its state says {} sequences, for which the {} bytes of data.mdb have "
                           "no room",
                           state.sequences, file)};
}

/// The first commit of all is of no sequence, and of the fields: a description has no checksum.
Result<void> check_fields(const Transaction& transaction, const Schema& schema) {
  const auto first = find_commit(transaction, 0);
  // A damaged history stops those who need it; a dataset of long ago has forgotten its beginning.
  if (!first || !*first || (*first)->content == empty_state(schema).content) return {};
  return Error{ErrorCode::corrupt_record,
               "its description is not of the fields that it was made with"};
}

std::string name_of(const FieldSpec& field) {
  return fmt::format("\"{}\" ({}, {} [{}], {} categories)", field.name, kind_name(field.kind),
                     dtype_name(field.dtype), fmt::join(field.shape, ", "),
                     field.categories.size());
}

bool same_but_for_categories(const FieldSpec& a, const FieldSpec& b) {
  return a.name == b.name && a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape;
}

/// Where one list of categories is not the beginning of the other; empty when it is. Values of a
/// field without names may mean anything, so they go with no names.
std::string category_difference(const std::vector<std::string>& expected,
                                const std::vector<std::string>& found) {
  if (expected.empty() != found.empty()) {
    return fmt::format("{} categories, not {}", found.size(), expected.size());
  }
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    if (expected[i] != found[i]) {
      return fmt::format(
          "category {} is \"{}\", not \"{}\"; allowed: the same list, or more after it", i,
          found[i], expected[i]);
    }
  }
  return {};
}

}  // namespace

DatasetState empty_state(const Schema& schema) {
  DatasetState state;
  state.content = mix(0, schema.fields.size());
  for (const FieldSpec& field : schema.fields) state.content = mix_field(state.content, field);
  return state;
}

void extend(DatasetState& state, const RecordSummary& record) {
  // 0 stands for "no sequence yet", and is no minimum.
  state.min_length =
      state.sequences == 0 ? record.length : std::min(state.min_length, record.length);
  state.max_length = std::max(state.max_length, record.length);
  state.sequences += 1;
  state.frames += record.length;
  state.content = mix(mix(state.content, record.crc), record.bytes);
}

std::uint64_t join_content(std::uint64_t content, std::uint64_t shard) {
  return mix(content, shard);
}

Result<DatasetState> read_state(const Transaction& transaction) {
  const auto pinned = pin_state(transaction);
  if (!pinned) return pinned.error();
  return pinned->state;
}

Result<PinnedState> pin_state(const Transaction& transaction) {
  const auto in_map = find_value(transaction, kStateKey);
  if (!in_map) return in_map.error();
  const auto bytes = copy_of(transaction, *in_map);
  if (!bytes) return bytes.error();
  const auto state = decode_state(*bytes);
  if (!state) return in_dataset(transaction, state.error());
  if (auto counted = check_count(transaction, *state); !counted) {
    return in_dataset(transaction, counted.error());
  }
  PinnedState pinned{*state, {}, *in_map};
  std::memcpy(pinned.bytes.data(), bytes->data(), kStateBytes);
  return pinned;
}

Result<bool> is_as_read(const Transaction& transaction, const PinnedState& state) {
  std::array<std::byte, kStateBytes> now{};
  if (!copy_from_map(now, state.in_map)) return transaction.environment().fault();
  return now == state.bytes;
}

Result<Meta> read_meta(const Transaction& transaction) {
  const auto in_map = find_value(transaction, kDescriptionKey);
  if (!in_map) return in_map.error();
  const auto description = copy_of(transaction, *in_map);
  if (!description) return description.error();
  auto schema = decode_description(*description);
  if (!schema) return in_dataset(transaction, schema.error());
  if (auto same = check_fields(transaction, *schema); !same) {
    return in_dataset(transaction, same.error());
  }
  const auto state = read_state(transaction);
  if (!state) return state.error();
  return Meta{std::move(*schema), *state};
}

Result<void> write_schema(Transaction& transaction, const Schema& schema) {
  return transaction.put(Table::meta, as_key(kDescriptionKey), encode_description(schema),
                         Put::replace);
}

Result<void> write_state(Transaction& transaction, const DatasetState& state) {
  // Encoded twice: the CRC stands in front of what it covers.
  const auto encode = [&state](std::uint32_t crc) {
    const wire::DatasetState encoded(crc, kDatasetFormatVersion, state.sequences, state.frames,
                                     state.generation, state.content, state.min_length,
                                     state.max_length);
    std::array<std::byte, kStateBytes> bytes;
    std::memcpy(bytes.data(), &encoded, kStateBytes);
    return bytes;
  };
  const std::uint32_t crc = crc32c(std::span<const std::byte>(encode(0)).subspan(kCrcEnd));
  return transaction.put(Table::meta, as_key(kStateKey), encode(crc), Put::replace);
}

std::string describe_field_difference(const Schema& expected, const Schema& found) {
  // The first difference is named: the others often follow from it, as after a field too many.
  for (std::size_t i = 0; i < std::max(expected.fields.size(), found.fields.size()); ++i) {
    if (i >= found.fields.size()) {
      return fmt::format("field {} is missing", name_of(expected.fields[i]));
    }
    if (i >= expected.fields.size()) {
      return fmt::format("field {} is too many", name_of(found.fields[i]));
    }
    if (!same_but_for_categories(expected.fields[i], found.fields[i])) {
      return fmt::format("field {} is {}, not {}", i, name_of(found.fields[i]),
                         name_of(expected.fields[i]));
    }
    const std::string difference =
        category_difference(expected.fields[i].categories, found.fields[i].categories);
    if (!difference.empty()) {
      return fmt::format("field \"{}\": {}", expected.fields[i].name, difference);
    }
  }
  return {};
}

bool append_categories(Schema& schema, const Schema& other) {
  bool appended = false;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    FieldSpec& field = schema.fields[i];
    const auto& longer = other.fields[i].categories;
    if (longer.size() <= field.categories.size()) continue;
    field.appended_categories +=
        static_cast<std::uint32_t>(longer.size() - field.categories.size());
    field.categories = longer;
    appended = true;
  }
  return appended;
}

}  // namespace batchwright
