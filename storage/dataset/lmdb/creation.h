#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

struct MDB_env;

namespace batchwright {

struct CloseEnvironment {
  void operator()(MDB_env* env) const noexcept;
};
using EnvironmentHandle = std::unique_ptr<MDB_env, CloseEnvironment>;

/// Address space for an environment, if there is that much: it costs nothing until it is used.
inline constexpr std::uint64_t kReservedBytes = std::uint64_t{1}
                                                << (sizeof(std::size_t) == 8 ? 40 : 30);

/// Makes `folder`/data.mdb, an environment without a table, where there is none: whole and on the
/// disk, or not at all, so that a loss of power leaves nothing that is neither a dataset nor none.
/// Where that cannot be had, on a file system without such a rename or without room, it leaves the
/// creation to LMDB's own open, and the error, too.
void create_data_file(const std::filesystem::path& folder) noexcept;

/// Opens `folder` into `env`, with a map of `map_bytes`, room for `tables` and mdb_env_open()'s
/// flags and mode. A damaged tree never ends the process. Returns a code of LMDB's or kFaulted.
int open_environment(EnvironmentHandle& env, const std::filesystem::path& folder,
                     std::uint64_t map_bytes, unsigned tables, unsigned flags, unsigned mode);

}  // namespace batchwright
