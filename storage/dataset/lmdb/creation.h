#pragma once

#include <filesystem>

namespace batchwright {

/// Makes `folder`/data.mdb, an environment without a table, where there is none: whole and on the
/// disk, or not at all, so that a loss of power leaves nothing that is neither a dataset nor none.
/// Where that cannot be had, on a file system without such a rename or without room, it leaves the
/// creation to LMDB's own open, and the error, too.
void create_data_file(const std::filesystem::path& folder) noexcept;

}  // namespace batchwright
