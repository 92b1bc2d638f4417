#include "client/library/produce/sequence_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace batchwright {
namespace {

/// Copied and looked at together, while it is in the processor's first cache.
constexpr std::size_t kBlockBytes = 8192;

Error bad_origin(const std::string& what) { return {ErrorCode::invalid_argument, what}; }

FieldSpec to_spec(const bw_field& field) {
  FieldSpec spec;
  spec.name = field.name;
  spec.kind = static_cast<FieldKind>(field.kind);
  spec.dtype = static_cast<DType>(field.dtype);
  for (std::uint32_t i = 0; i < field.ndim; ++i) {
    spec.shape.push_back(static_cast<std::uint32_t>(field.shape[i]));
  }
  for (std::uint32_t i = 0; i < field.category_count; ++i) {
    spec.categories.emplace_back(field.categories[i]);
  }
  return spec;
}

}  // namespace

SequenceForm::SequenceForm(const bw_feed& feed)
    : max_length_(feed.max_length),
      max_bytes_(feed.max_bytes),
      allow_nan_(feed.allow_nan != 0),
      joins_(feed.joins != nullptr ? feed.joins : "") {
  for (std::size_t i = 0; i < feed.pushed_count; ++i) {
    schema_.fields.push_back(to_spec(*feed.fields[i]));
    if (schema_.fields.back().kind == FieldKind::primary) primary_ = i;
  }
}

Result<std::uint64_t> SequenceForm::check(const bw_sequence& sequence,
                                          std::span<FieldValue> values) const {
  if (auto read = read_values(sequence, schema_, "the feed", values); !read) return read.error();
  const std::string_view key(sequence.key, sequence.key_bytes);
  if (auto sound = check_sequence(schema_, {key, values}); !sound) return sound.error();
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;
  for (const FieldValue& value : values) {
    end = next_offered_place(end) + value.bytes.size();
    bytes += value.bytes.size();
  }
  if (auto fits = check_limits(key, values[primary_].length, bytes); !fits) return fits.error();
  return end;
}

Result<std::vector<ValuePlace>> SequenceForm::places(std::span<const std::uint32_t> lengths) const {
  if (lengths.size() != fields()) {
    return Error{ErrorCode::schema_mismatch,
                 fmt::format("found {} lengths, the feed has {} fields", lengths.size(), fields())};
  }
  auto places = offered_places(schema_, lengths);
  if (!places) return places;
  std::uint64_t bytes = 0;
  for (const ValuePlace& place : *places) bytes += place.bytes;
  if (auto fits = check_limits("", lengths[primary_], bytes); !fits) return fits.error();
  return places;
}

Result<void> SequenceForm::check_limits(std::string_view key, std::uint64_t length,
                                        std::uint64_t bytes) const {
  const std::string whose = key.empty() ? "the sequence" : fmt::format("key \"{}\":", key);
  if (max_length_ != 0 && length > max_length_) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("{} has {} frames; the feed takes at most {} (max_length)", whose,
                             length, max_length_)};
  }
  const std::uint64_t most =
      max_bytes_ != 0 ? std::min<std::uint64_t>(max_bytes_, kMaxBatchBytes) : kMaxBatchBytes;
  if (bytes > most) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("{} has {} bytes; the feed takes at most {}", whose, bytes, most)};
  }
  return {};
}

Result<void> SequenceForm::check_origin(const bw_origin& origin) {
  if (origin.version > kLastVersion || origin.version_newest > kLastVersion) {
    return bad_origin(
        fmt::format("version {} is above 2^62", std::max(origin.version, origin.version_newest)));
  }
  if (origin.version_newest != 0 && origin.version_newest < origin.version) {
    return bad_origin(fmt::format("version_newest is {}, and version is {}, which is newer",
                                  origin.version_newest, origin.version));
  }
  if (origin.group != kNoGroup && origin.group_size == 0) {
    return bad_origin(fmt::format("group {} has a group_size of 0", origin.group));
  }
  if (origin.group == kNoGroup && origin.group_size != 0) {
    return bad_origin(fmt::format("a group_size of {} and no group", origin.group_size));
  }
  if (!std::isfinite(origin.weight) || origin.weight < 0) {
    return bad_origin(fmt::format("weight is {}; 0 and up is allowed", origin.weight));
  }
  return {};
}

Result<void> SequenceForm::check_row(const bw_of* of) const {
  if (joins_.empty() && of == nullptr) return {};
  if (joins_.empty()) return bad_origin("it names a row (of), and the feed joins none");
  if (of == nullptr) {
    return bad_origin(
        fmt::format("it names no row (of): to each sequence the feed joins one of \"{}\"", joins_));
  }
  if (of->struct_size < sizeof(bw_of)) {
    return bad_origin("struct_size of its row (of) is not set");
  }
  if (of->feed == nullptr || of->feed != joins_) {
    return bad_origin(fmt::format("it names a row of feed \"{}\"; rows of \"{}\" are joined",
                                  of->feed != nullptr ? of->feed : "", joins_));
  }
  return {};
}

Result<void> SequenceForm::write(std::string_view key, std::span<const FieldValue> values,
                                 std::span<std::byte> room) const {
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::span<const std::byte> from = values[i].bytes;
    start = next_offered_place(start);
    for (std::size_t done = 0; done < from.size(); done += kBlockBytes) {
      const auto block = from.subspan(done, std::min(kBlockBytes, from.size() - done));
      const auto copy = room.subspan(start + done, block.size());
      std::memcpy(copy.data(), block.data(), block.size());
      if (allow_nan_) continue;
      const DType dtype = schema_.fields[i].dtype;
      if (const auto found = first_not_finite(dtype, copy)) {
        return not_finite(key, i, done / dtype_bytes(dtype) + *found);
      }
    }
    start += from.size();
  }
  return {};
}

Result<void> SequenceForm::check_written(std::string_view key, std::span<const ValuePlace> places,
                                         std::span<const std::byte> room) const {
  for (std::size_t i = 0; i < places.size() && !allow_nan_; ++i) {
    const auto found =
        first_not_finite(schema_.fields[i].dtype, room.subspan(places[i].offset, places[i].bytes));
    if (found) return not_finite(key, i, *found);
  }
  return {};
}

Error SequenceForm::not_finite(std::string_view key, std::size_t field, std::size_t place) const {
  const FieldSpec& spec = schema_.fields[field];
  const std::size_t a_frame = std::max<std::size_t>(frame_bytes(spec) / dtype_bytes(spec.dtype), 1);
  return {ErrorCode::schema_mismatch,
          fmt::format("key \"{}\": field \"{}\" has NaN or infinity in frame {}, element {}; the "
                      "feed takes them only with allow_nan",
                      key, spec.name, place / a_frame, place % a_frame)};
}

}  // namespace batchwright
