#pragma once

#include <functional>
#include <map>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The value behind a row's real frames, by the name of the field; 0 in a field that is not named.
using PaddingValues = std::map<std::string, double, std::less<>>;

/// The value for one field.
double padding_value(const PaddingValues& values, const FieldSpec& field);

/// Whether each value belongs to a field that can have padding, and can be stored in it: finite; in
/// an integer a whole number within its range, in a float one that does not become infinite.
/// Errors: bad_configuration, with field, value and what is allowed.
Result<void> check_padding(const PaddingValues& values, const Schema& schema);

/// The value that padding consists of.
using Padding = NumberBytes;

}  // namespace batchwright
