#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace batchwright {

/// Edits that turn one word into the other: Levenshtein's distance.
std::size_t edits_between(std::string_view a, std::string_view b);

/// The word that takes the fewest edits to become `name`, for a "did you mean"; empty when none is
/// near: more than two edits, or half of the word, make another word.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& words);

}  // namespace batchwright
