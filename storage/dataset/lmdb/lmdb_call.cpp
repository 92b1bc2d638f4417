#include "storage/dataset/lmdb/lmdb_call.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "storage/dataset/lmdb/file_system.h"

namespace batchwright {

ErrorCode code_of(int code) {
  switch (code) {
    // The two that more room mends: a larger map, or more reader slots.
    case MDB_MAP_FULL:
    case MDB_READERS_FULL: return ErrorCode::does_not_fit;
    case MDB_KEYEXIST: return ErrorCode::already_exists;
    case MDB_VERSION_MISMATCH: return ErrorCode::unsupported_version;
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ErrorCode::io_error;
    default: return is_damage(code) ? ErrorCode::corrupt_record : ErrorCode::store_unavailable;
  }
}

std::optional<std::string> full_disk(int code, const std::filesystem::path& folder) {
  constexpr std::uint64_t kFullBelowBytes = std::uint64_t{1} << 20;
  if (code != EIO && code != ENOSPC) return std::nullopt;
  const auto room = room_left(folder);
  if (!room || (code == EIO && *room >= kFullBelowBytes)) return std::nullopt;
  return fmt::format("{}: {} bytes are left", std::strerror(ENOSPC), *room);
}

}  // namespace batchwright
