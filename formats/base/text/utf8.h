#pragma once

#include <string>
#include <string_view>

namespace batchwright {

/// `text` with U+FFFD for each byte that is no UTF-8: names come from clients and file systems.
std::string utf8(std::string_view text);

}  // namespace batchwright
