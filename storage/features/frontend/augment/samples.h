#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/features/frontend/augment/draws.h"

namespace batchwright {

// Samples as whole numbers, and what hides that they are.

/// Errors: invalid_argument: a dither that is negative or no finite number.
Result<void> check_dither(double dither);

/// Adds dither / scale * normal(n) to sample n: once to each, whatever frames it lies in. `scale`
/// is the convention's sample_scale.
void add_dither(const DrawKey& key, double dither, double scale, std::span<float> sound);

/// The nearest whole number to 32768 x, ties to even, held within 16 bits; NaN becomes 0.
std::int16_t whole_sample(double x);

/// whole_sample() of each, `out` being as long as `sound`. Returns how many samples did not fit,
/// NaN included.
std::uint64_t to_whole_samples(std::span<const float> sound, std::span<std::int16_t> out);

}  // namespace batchwright
