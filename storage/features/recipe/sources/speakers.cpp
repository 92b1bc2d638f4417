#include "storage/features/recipe/sources/speakers.h"

#include <fmt/core.h>

#include <array>
#include <string>

namespace batchwright {
namespace {

bool is_whole(DType dtype) {
  constexpr std::array<std::byte, 8> kZero{};
  return whole_number(dtype, kZero).has_value();
}

}  // namespace

Result<SpeakerField> find_speaker(const Schema& schema, const std::string& name) {
  const auto field = schema.find(name);
  const auto bad = [](const std::string& what) {
    return Error{ErrorCode::bad_configuration, fmt::format("cmvn_speaker: {}", what)};
  };
  if (!field) return bad(field.error().message);
  const FieldSpec& spec = schema.fields[*field];
  const bool one = frame_bytes(spec) == dtype_bytes(spec.dtype);
  if (spec.kind == FieldKind::scalar && one && is_whole(spec.dtype)) {
    return SpeakerField{*field, spec.dtype};
  }
  return bad(fmt::format("field \"{}\"; allowed: a scalar field of one whole number", name));
}

Result<std::string> speaker_name(const SpeakerField& speaker, std::span<const FieldValue> values) {
  std::array<std::byte, 8> number{};
  const auto bytes = values[speaker.field].bytes;
  auto copied = copy_from_map(std::span(number).first(bytes.size()), bytes);
  if (!copied) return copied.error();
  return std::to_string(whole_number(speaker.dtype, number).value_or(0));
}

}  // namespace batchwright
