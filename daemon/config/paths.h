#pragma once

#include <filesystem>
#include <vector>

#include "daemon/config/values.h"
#include "formats/formats.h"

namespace batchwright {

/// The end of the path of the file that says where a daemon's pages are, an address a line; it
/// begins as the path of the socket for clients, and who may connect there may read it.
constexpr std::string_view kPagesSuffix = ".pages";

/// Where a path leads: absolute, and without links, be the file there or not.
std::filesystem::path resolved(const std::filesystem::path& path);

/// All files and datasets that a configuration names, as it names them, in the order of the file.
/// Together with the text they say whether two who read it mean the same.
std::vector<std::filesystem::path> named_paths(const Config& config);

/// Puts journals and records in their resolved form, by which they are locked and replaced: one
/// that is named in two ways is one. Errors: bad_configuration: two feeds have one, or a record is
/// a feed's dataset.
Result<void> resolve_written(Config& config);

/// Fills in FeedConfig::order_file_state of each feed.
void note_order_files(Config& config);

}  // namespace batchwright
