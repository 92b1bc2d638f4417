#pragma once

#include <filesystem>

namespace batchwright {

/// Has the disk know the folder's entries: otherwise a power cut may take a file's name. Where the
/// file system cannot, as some of networks, it does nothing. `folder` may be empty: the current
/// one.
void sync_folder(const std::filesystem::path& folder);

}  // namespace batchwright
