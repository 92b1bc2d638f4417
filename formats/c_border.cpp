#include "formats/c_border.h"

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace batchwright {
namespace {

/// Made when a thread first fails.
std::string& last_text() {
  thread_local std::string text;
  return text;
}

}  // namespace

Error wrong_struct_size(std::size_t size) {
  return {ErrorCode::invalid_argument,
          fmt::format("struct_size is {}; set it to the size of the options", size)};
}

Result<void> read_values(const bw_sequence& sequence, const Schema& schema, std::string_view whose,
                         std::span<FieldValue> values) {
  const auto wrong = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("key \"{}\": {}",
                                   std::string_view(sequence.key, sequence.key_bytes), what)};
  };
  if (sequence.value_count != values.size()) {
    return wrong(ErrorCode::schema_mismatch,
                 fmt::format("found {} values, {} has {} fields", sequence.value_count, whose,
                             values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bw_value& value = sequence.values[i];
    const std::string_view name = schema.fields[i].name;
    if (value.data == nullptr && value.bytes != 0) {
      return wrong(ErrorCode::invalid_argument,
                   fmt::format("field \"{}\" has bytes, but no data", name));
    }
    // Cut to 32 bits, it might pass for another length.
    if (value.length > UINT32_MAX) {
      return wrong(ErrorCode::schema_mismatch,
                   fmt::format("field \"{}\" has length {}; at most 4294967295 is allowed", name,
                               value.length));
    }
    if (value.bytes > SIZE_MAX) {
      return wrong(ErrorCode::invalid_argument,
                   fmt::format("field \"{}\" has {} bytes; this machine has addresses for {}", name,
                               value.bytes, SIZE_MAX));
    }
    values[i] = {{static_cast<const std::byte*>(value.data), static_cast<std::size_t>(value.bytes)},
                 static_cast<std::uint32_t>(value.length)};
  }
  return {};
}

bw_status report(const Error& error) noexcept {
  try {
    last_text() = error.message;
  } catch (...) {
    last_text().clear();  // no memory for the text; the code says it
  }
  return static_cast<bw_status>(error.code);
}

const char* last_error_text() noexcept { return last_text().c_str(); }

const char* status_name(bw_status status) noexcept {
  if (status == BW_OK) return "ok";
  if (status == BW_EPOCH_END) return "epoch_end";
  if (status == BW_END) return "end";
  if (status == BW_PENDING) return "pending";
  if (status < 0 || status > UINT16_MAX) return "unknown";
  // A literal, so a zero stands behind it.
  return to_string(static_cast<ErrorCode>(status)).data();
}

}  // namespace batchwright
