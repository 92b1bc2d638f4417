#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace batchwright {

/// `text` as a number with or without a fraction or an exponent, whatever the locale; inf and nan
/// are some. Empty when it is anything else, or beyond what a double holds.
std::optional<double> parse_real(std::string_view text);

/// The shortest text that parse_real() reads as the same number: byte for byte that of
/// std::to_chars, whose tables are 0.1 MiB of a static program. Hashes of settings depend on it.
std::string real_text(double value);

}  // namespace batchwright
