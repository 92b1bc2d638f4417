#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace batchwright {

/// Why a file of sound is shorter than its writer meant it to be, where libsndfile does not mind.
/// `header_log` is libsndfile's account of the header, as it was before anything was read: past a
/// good Ogg file's end it has the same line as of a cut one. `endless_flac`: it is a FLAC file that
/// does not say how long it is. Threads: any.
std::optional<std::string> missing_end(const std::filesystem::path& path,
                                       std::string_view header_log, bool endless_flac);

}  // namespace batchwright
