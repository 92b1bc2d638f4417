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
  if (status < 0 || status > UINT16_MAX) return "unknown";
  // A literal, so a zero stands behind it.
  return to_string(static_cast<ErrorCode>(status)).data();
}

}  // namespace batchwright
