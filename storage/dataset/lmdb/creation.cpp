#include "storage/dataset/lmdb/creation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "formats/formats.h"
#include "storage/dataset/lmdb/lmdb_call.h"
#ifndef RENAME_NOREPLACE  // of a libc without renameat2(), such as musl
#include <linux/fs.h>
#include <sys/syscall.h>

static int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                     unsigned flags) {
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
#endif

namespace batchwright {
namespace {

namespace fs = std::filesystem;

/// LMDB writes its two first pages when it opens an empty file, and does not wait for the disk.
bool make_environment(const fs::path& file) {
  MDB_env* raw = nullptr;
  if (mdb_env_create(&raw) != 0) return false;
  const EnvironmentHandle env(raw);
  return mdb_env_open(raw, file.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0664) == 0 &&
         mdb_env_sync(raw, 1) == 0;
}

void create(const fs::path& folder) {
  const fs::path data = folder / "data.mdb";
  std::error_code ignored;  // LMDB looks at it again
  if (fs::exists(data, ignored)) return;
  static std::atomic<unsigned> count = 0;
  const fs::path fresh = folder / fmt::format("data.mdb.{}-{}.new", ::getpid(), ++count);
  // Another process may be at it, too: the first one's file stays.
  const bool there = make_environment(fresh) && ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD,
                                                            data.c_str(), RENAME_NOREPLACE) == 0;
  if (!there) {
    fs::remove(fresh, ignored);
    return;
  }
  sync_folder(folder);
  sync_folder(fs::absolute(folder).parent_path());  // it may be new as well
}

}  // namespace

void CloseEnvironment::operator()(MDB_env* env) const noexcept { mdb_env_close(env); }

int open_environment(EnvironmentHandle& env, const fs::path& folder, std::uint64_t map_bytes,
                     unsigned tables, unsigned flags, unsigned mode) {
  MDB_env* raw = nullptr;
  if (const int code = mdb_env_create(&raw); code != 0) return code;
  env.reset(raw);
  mdb_env_set_maxdbs(raw, tables);
  mdb_env_set_mapsize(raw, static_cast<std::size_t>(map_bytes));
  // Its default ends the process.
  mdb_env_set_assert(raw, [](MDB_env*, const char*) { abandon_guarded_read(); });
  return call([&] { return mdb_env_open(raw, folder.c_str(), flags, mode); });
}

void create_data_file(const fs::path& folder) noexcept {
  // Out of memory is what LMDB's own open reports.
  static_cast<void>(as_result(ErrorCode::internal, "", [&]() -> Result<void> {
    create(folder);
    return {};
  }));
}

}  // namespace batchwright
