#include "storage/recipe/speakers.h"

#include <fmt/core.h>

#include <array>
#include <cstring>

namespace batchwright {
namespace {

bool is_whole(DType dtype) {
  return dtype == DType::int64 || dtype == DType::int32 || dtype == DType::int16 ||
         dtype == DType::uint8;
}

template <class Number>
std::string text_of(std::span<const std::byte> bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return std::to_string(number);
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
  switch (speaker.dtype) {
    case DType::int64: return text_of<std::int64_t>(number);
    case DType::int32: return text_of<std::int32_t>(number);
    case DType::int16: return text_of<std::int16_t>(number);
    default: return text_of<std::uint8_t>(number);
  }
}

}  // namespace batchwright
