#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "formats/schema.h"

namespace batchwright {

/// The first of the numbers in `bytes`, values of `field`, that none of its categories has, in
/// words with what is allowed; empty when there is none, or the field has no categories.
/// Values of any alignment, row-major; a part of a value at the end is not looked at.
std::string describe_wrong_category(const FieldSpec& field, std::span<const std::byte> bytes);

}  // namespace batchwright
