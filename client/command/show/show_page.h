#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "client/command/show/shown_row.h"

namespace batchwright {

/// Seconds of each sound that a page has at most.
inline constexpr double kShownSeconds = 60;

/// What is known of a row without its content.
boost::json::object row_json(const ShownRow& row);

/// A row for the page: also its sound, pictures and labels. A sound is cut at kShownSeconds; a
/// picture of more than 1,600 frames has means of several side by side.
boost::json::object page_row_json(const ShownRow& row);

/// Writes the page; `rows` are page_row_json()'s. Errors: io_error.
Result<void> write_show_page(const std::filesystem::path& file, const std::string& feed,
                             std::uint64_t epoch, boost::json::array rows);

}  // namespace batchwright
