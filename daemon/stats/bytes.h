#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace batchwright {

/// Bytes as log lines and messages write them: "31.3 MiB", and "0.004 MiB" below one.
inline std::string in_mib(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 1048576.0;
  return fmt::format("{:.{}f} MiB", mib, mib < 1.0 ? 3 : 1);
}

}  // namespace batchwright
