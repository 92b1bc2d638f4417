#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "storage/features/frontend/framing.h"
#include "storage/features/frontend/options.h"

namespace batchwright {

/// The options as text, by name: those that every front end has, and those that differ from
/// convention htk's.
std::vector<std::pair<std::string, std::string>> settings_text(const FrontEndOptions& options,
                                                               const FrameMeasures& measures,
                                                               std::uint32_t sample_rate);

}  // namespace batchwright
