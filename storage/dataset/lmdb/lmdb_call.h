#pragma once

#include <lmdb.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"
#include "storage/dataset/lmdb/environment.h"
#include "storage/dataset/lmdb/fault_guard.h"

// The one file that includes lmdb.h: how LMDB is called, and what its codes mean here.

namespace batchwright {

inline constexpr std::array<const char*, kTables> kTableNames = {"meta", "sequences", "keys",
                                                                 "lengths"};
inline constexpr std::array<unsigned, kTables> kTableFlags = {0, MDB_INTEGERKEY, 0, MDB_INTEGERKEY};

/// Not a code of LMDB's, nor an errno: the call met a fault or a failed assertion and was left.
inline constexpr int kFaulted = -1;

/// Calls LMDB where it reads the map. A call that reads holds no lock there, so being left costs
/// at worst the memory of one transaction. A call that writes holds the writer's lock: after
/// kFaulted its transaction can neither be committed nor aborted.
template <class Call>
int call(Call lmdb) {
  int code = kFaulted;
  return guarded([&] { code = lmdb(); }) ? code : kFaulted;
}

inline MDB_val value_of(std::span<const std::byte> bytes) {
  // LMDB does not write through the pointer: the type serves both ways.
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}

/// Whether only a damaged tree brings a look-up to this code.
inline bool is_damage(int code) {
  switch (code) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL:
    case MDB_INCOMPATIBLE:          // a table whose entry in the main tree is of another kind
    case MDB_BAD_TXN: return true;  // one of those came before
    default: return false;
  }
}

ErrorCode code_of(int code);

/// What a full disk is called in errors, if `code` came of one. LMDB turns a short write into EIO,
/// so a full disk is told from a broken one by what is left.
std::optional<std::string> full_disk(int code, const std::filesystem::path& folder);

}  // namespace batchwright
