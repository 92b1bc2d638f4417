#pragma once

#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright {

/// The endpoints that a text names, separated by commas.
std::vector<std::string> endpoints_in(const std::string& text);

/// The addresses of the pages of the daemon at an endpoint, as it says itself.
/// Errors: not_found, which names --stats: it says none, or does not run.
Result<std::vector<std::string>> find_pages(const std::string& endpoint);

}  // namespace batchwright
