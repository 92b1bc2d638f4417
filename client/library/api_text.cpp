// The part of the C ABI that needs no connection: versions, names, texts.

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <string_view>

#include "client/library/batchwright/client.h"
#include "client/library/c_values.h"
#include "formats/formats.h"

using namespace batchwright;

extern "C" {

uint32_t bw_abi_version(void) { return BW_ABI_VERSION; }

const char* bw_library_version(void) { return BATCHWRIGHT_VERSION; }

const char* bw_error_message(void) { return last_error_text(); }

const char* bw_status_name(bw_status status) { return status_name(status); }

const char* bw_dtype_name(bw_dtype dtype) { return dtype_name(static_cast<DType>(dtype)).data(); }

size_t bw_dtype_bytes(bw_dtype dtype) { return dtype_bytes(static_cast<DType>(dtype)); }

bw_status bw_fingerprint_text(const bw_fingerprint* fingerprint,
                              char text[BW_FINGERPRINT_TEXT_BYTES]) {
  if (fingerprint == nullptr || text == nullptr) {
    return report({ErrorCode::invalid_argument, "no fingerprint or no place for its text"});
  }
  return at_border([&] {
    const std::string words = to_string(from_c(*fingerprint));
    std::memcpy(text, words.c_str(), words.size() + 1);
    return BW_OK;
  });
}

bw_status bw_fingerprint_parse(const char* text, bw_fingerprint* fingerprint) {
  if (text == nullptr || fingerprint == nullptr) {
    return report({ErrorCode::invalid_argument, "no text or no place for the fingerprint"});
  }
  return at_border([&] {
    const std::string_view words(text);
    const bool framed =
        words.size() == BW_FINGERPRINT_TEXT_BYTES - 1 && words[16] == '-' && words[33] == '-';
    const auto group = [&](std::size_t from) {
      return framed ? parse_whole<std::uint64_t>(words.substr(from, 16), 16) : std::nullopt;
    };
    const auto data = group(0);
    const auto settings = group(17);
    const auto seed = group(34);
    if (!data || !settings || !seed) {
      return report(
          {ErrorCode::invalid_argument,
           fmt::format("\"{}\" is not a fingerprint: three groups of 16 hexadecimal digits are",
                       words.substr(0, 64))});
    }
    *fingerprint = to_c(Fingerprint{*data, *settings, *seed});
    return static_cast<bw_status>(BW_OK);
  });
}

}  // extern "C"
