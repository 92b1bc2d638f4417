#pragma once

#include <cstdint>
#include <string_view>

namespace batchwright {

/// Whether a reader takes a slot in lock.mdb, which keeps writers off the pages it reads. LMDB
/// goes without where lock.mdb lies on a mount that refuses to write.
enum class Locking : std::uint8_t {
  on,         ///< Refused with what helps where permissions forbid it.
  permitted,  ///< The same, but goes without where permissions forbid it.
  off,        ///< Never: lock.mdb is not touched.
};

/// The protection of a snapshot's pages from being overwritten while they are read.
enum class MapLock : std::uint8_t {
  slot,       ///< A reader slot in lock.mdb.
  read_only,  ///< Nothing on this machine can write to the file system.
  none,       ///< Nothing does: the second commit after a snapshot may end it.
};

/// "slot", "read-only" or "none".
constexpr std::string_view name_of(MapLock lock) {
  switch (lock) {
    case MapLock::slot: return "slot";
    case MapLock::read_only: return "read-only";
    case MapLock::none: break;
  }
  return "none";
}

}  // namespace batchwright
