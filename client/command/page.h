#pragma once

#include <boost/json/value.hpp>
#include <filesystem>
#include <string_view>

#include "formats/formats.h"

namespace batchwright {

/// Writes a self-contained page: `page` with `data` in the place of /*DATA*/, and Chart.js in that
/// of /*CHART*/ where it has one. Texts in `data` may be anything: none of them ends the script.
/// Errors: io_error.
Result<void> write_page(const std::filesystem::path& file, std::string_view page,
                        const boost::json::value& data);

}  // namespace batchwright
