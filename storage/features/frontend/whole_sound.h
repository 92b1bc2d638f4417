#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/features/frontend/options.h"

namespace batchwright {

/// Whether some step of the options looks at all of a sound's values.
bool looks_at_all(const FrontEndOptions& options);

/// The steps that look at all values [frames][bands] of one sound: dB's lower end, and
/// normalisation.
void finish_values(const FrontEndOptions& options, std::size_t bands, std::span<double> values);

}  // namespace batchwright
