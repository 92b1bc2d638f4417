#include "storage/dataset/lmdb/environment.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "storage/dataset/lmdb/creation.h"
#include "storage/dataset/lmdb/file_system.h"
#include "storage/dataset/lmdb/lmdb_call.h"

namespace batchwright {
namespace {

// Tables have integer keys in the order of the machine, values are little-endian.
static_assert(std::endian::native == std::endian::little);

/// The most that any program of this kind can map, in words for an error.
constexpr std::string_view kMapLimit =
    sizeof(std::size_t) == 8 ? "" : " (a program of 32 bits has room for 2 to 3 GiB in all)";

/// Why a file that LMDB refuses is none of its own: the pages of 32-bit machines are laid out in
/// another way.
std::string_view foreign_file(const std::filesystem::path& data) {
  constexpr std::uint32_t kMagic = 0xBEEFC0DE;
  constexpr std::size_t kOtherHeader = sizeof(std::size_t) == 8 ? 12 : 16;
  std::uint32_t found = 0;
  const std::string head = file_text(data, kOtherHeader + sizeof found).value_or("");
  if (head.size() == kOtherHeader + sizeof found) {
    std::memcpy(&found, head.data() + kOtherHeader, sizeof found);
  }
  if (found != kMagic) return "data.mdb is not an LMDB file";
  return sizeof(std::size_t) == 8 ? "data.mdb has the pages of a 32-bit machine's LMDB: make the "
                                    "dataset anew on this machine"
                                  : "data.mdb has the pages of a 64-bit machine's LMDB: make the "
                                    "dataset anew on this machine";
}

}  // namespace

Error Environment::damaged(std::string_view doing, std::string_view what) const {
  return {ErrorCode::corrupt_record,
          fmt::format("dataset {}: damaged index: {}: {}", path_.string(), doing, what)};
}

Error Environment::error(int code, std::string_view doing) const {
  if (code == kFaulted) {
    Error faulted = fault();
    if (faulted.code == ErrorCode::corrupt_record) faulted.message += fmt::format(": {}", doing);
    return faulted;
  }
  if (is_damage(code)) return damaged(doing, mdb_strerror(code));
  const std::string where = fmt::format("dataset {}", path_.string());
  if (code == MDB_INVALID) {
    return {ErrorCode::store_unavailable,
            fmt::format("{}: {}", where, foreign_file(path_ / "data.mdb"))};
  }
  if (code == MDB_READERS_FULL) {
    return {ErrorCode::does_not_fit,
            fmt::format("{}: all reader slots of lock.mdb are taken", where)};
  }
  if (code == EAGAIN) {
    return {ErrorCode::store_unavailable,
            fmt::format(
                "{}: another program that reads it has the same process number, {}, in another PID "
                "namespace, and LMDB tells readers apart by that number: let the containers share "
                "a PID namespace, or read a dataset that no program writes without a lock",
                where, getpid())};
  }
  if (const auto full = full_disk(code, path_)) {
    return {ErrorCode::io_error, fmt::format("{}: {}: {}", where, doing, *full)};
  }
  return {code_of(code), fmt::format("{}: {}: {}", where, doing, mdb_strerror(code))};
}

int Environment::descriptor() const {
  int descriptor = -1;
  return mdb_env_get_fd(env_.get(), &descriptor) == 0 ? descriptor : -1;
}

std::uint64_t Environment::device() const {
  struct stat status = {};
  return fstat(descriptor(), &status) == 0 ? status.st_dev : 0;
}

std::uint64_t Environment::page_bytes() const {
  const MutexLock lock(mutex_);
  return page_bytes_;
}

std::uint64_t Environment::file_bytes() const {
  struct stat status = {};
  return fstat(descriptor(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// The size is read behind the last page's number: a writer makes the file longer first.
Result<void> Environment::check_size() const {
  std::uint64_t found = file_bytes();
  // LMDB's two meta pages: without them mdb_env_info() itself would fault.
  std::uint64_t needed = 2 * page_bytes_;
  MDB_envinfo info = {};
  if (found >= needed && call([&] { return mdb_env_info(env_.get(), &info); }) == 0) {
    needed = (info.me_last_pgno + 1) * page_bytes_;
    found = file_bytes();
  }
  if (found >= needed) return {};
  return Error{ErrorCode::store_unavailable,
               fmt::format("dataset {}: data.mdb is truncated: it has {} bytes, of at least {}",
                           path_.string(), found, needed)};
}

bool Environment::is_lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

Error Environment::lost() const {
  return {ErrorCode::corrupt_record,
          fmt::format("dataset {}: this process met a damaged index while it wrote, and can no "
                      "longer write; earlier commits are intact. Run `batchwright verify`",
                      path_.string())};
}

Error Environment::fault() const {
  // The caller has a transaction alive, so env_ stays as it is. check_size() reads under a guard.
  const MapFault fault = last_fault();
  if (auto sized = check_size(); !sized) return sized.error();
  const std::string where = fmt::format("dataset {}", path_.string());
  const auto offset = fault.signal == SIGBUS ? file_offset_of(fault.address) : std::nullopt;
  // Within the file the kernel failed to read; behind its end a damaged page led there.
  if (fault.signal == SIGBUS && !(offset && *offset >= file_bytes())) {
    return {ErrorCode::store_unavailable,
            fmt::format("{}: data.mdb cannot be read: disk error", where)};
  }
  return {ErrorCode::corrupt_record,
          fmt::format("{}: damaged index: a page of data.mdb leads astray", where)};
}

Environment::FileAt Environment::file_at(const std::filesystem::path& directory) const {
  const MutexLock lock(mutex_);
  if (env_ == nullptr) return FileAt::same;  // the next transaction opens it again
  int descriptor = -1;
  struct stat open_file = {};
  struct stat named_file = {};
  if (mdb_env_get_fd(env_.get(), &descriptor) != 0 || fstat(descriptor, &open_file) != 0 ||
      stat((directory / "data.mdb").c_str(), &named_file) != 0) {
    return FileAt::none;
  }
  return open_file.st_ino == named_file.st_ino && open_file.st_dev == named_file.st_dev
             ? FileAt::same
             : FileAt::another;
}

Result<void> Environment::check_still_there(const std::filesystem::path& directory) {
  if (file_at(directory) != FileAt::same) {
    return Error{
        ErrorCode::store_unavailable,
        fmt::format("dataset {} was removed or replaced while it was open", directory.string())};
  }
  const MutexLock lock(mutex_);
  if (!was_overwritten()) return {};
  if (alive_ != 0) {
    return Error{
        ErrorCode::store_unavailable,
        fmt::format("dataset {} was overwritten while it was open, and is opened anew once "
                    "nothing reads it any longer",
                    directory.string())};
  }
  // LMDB's own memory of it is of another file.
  env_.reset();
  overwritten_ = false;
  return {};
}

Error Environment::overwritten() {
  overwritten_ = true;
  return {ErrorCode::fingerprint_mismatch,
          fmt::format("dataset {}: data.mdb was overwritten in place while it was read, and is of "
                      "other content now; a new dataset takes the place of an old one by mv",
                      path_.string())};
}

Error Environment::may_not_open(Access access) const {
  const std::string where = fmt::format("dataset {}", path_.string());
  const auto data = path_ / "data.mdb";
  const auto lock = path_ / "lock.mdb";
  // data.mdb may be read, so it is lock.mdb that may not be written.
  if (access == Access::read && may_read(data)) {
    return {
        ErrorCode::store_unavailable,
        fmt::format("{}: lock.mdb: Permission denied ({}): data.mdb may be read, but a reader also "
                    "takes a slot in lock.mdb, which keeps writers off the pages it reads. Make "
                    "lock.mdb writable for this user (chown, or chgrp and chmod g+w), or read a "
                    "dataset that no program writes without a lock (lock = false of the feed)",
                    where, permissions_of(lock))};
  }
  const bool is_data = access == Access::read || !may_write(data);
  return {ErrorCode::store_unavailable,
          fmt::format("{}: {}: Permission denied ({})", where, is_data ? "data.mdb" : "lock.mdb",
                      permissions_of(is_data ? data : lock))};
}

Result<EnvironmentHandle> Environment::open_handle(Access access, std::uint64_t map_bytes) const {
  arm_fault_guard();
  if (access == Access::write) create_data_file(path_);
  const auto data = path_ / "data.mdb";
  // NOTLS: a reader slot belongs to its transaction, which may move between threads. NORDAHEAD:
  // records are read in the plan's order, where pages behind the one that is read are no use.
  unsigned flags = MDB_NOTLS | MDB_NORDAHEAD;
  if (access == Access::read) flags |= MDB_RDONLY;
  if (access == Access::read && locking_ == Locking::off) flags |= MDB_NOLOCK;
  const Error no_room{ErrorCode::does_not_fit,
                      fmt::format("dataset {}: no room for a map of {} bytes{}", path_.string(),
                                  map_bytes, kMapLimit)};
  if (!std::in_range<std::size_t>(map_bytes)) return no_room;
  for (;;) {
    EnvironmentHandle env;
    // 0664: readers of the group take slots in lock.mdb, so they must be able to write it.
    const int code = open_environment(env, path_, map_bytes, kTables, flags, 0664);
    if (code == 0) return env;
    const bool without_lock =
        code == EACCES && access == Access::read && (flags & MDB_NOLOCK) == 0 && may_read(data) &&
        // LMDB goes without where a mount refuses to write; permissions are looked at first.
        (locking_ == Locking::permitted || is_read_only_here(path_));
    if (without_lock) {
      flags |= MDB_NOLOCK;
      continue;
    }
    if (code == EACCES) return may_not_open(access);
    if (code == ENOMEM) return no_room;
    // Nothing is known of the file yet, so its size tells nothing about the reason.
    if (code == kFaulted && last_fault().signal == SIGBUS) {
      return Error{ErrorCode::store_unavailable,
                   fmt::format("dataset {}: data.mdb cannot be read", path_.string())};
    }
    if (code == kFaulted) return damaged("open data.mdb", "its meta page makes no sense");
    return error(code, "open data.mdb");
  }
}

Result<void> Environment::reopen(Access access, std::uint64_t map_bytes) {
  if (alive_ != 0) {
    return Error{ErrorCode::busy,
                 fmt::format("dataset {}: this process has a snapshot of it open, so its map "
                             "cannot be changed; release the snapshot, or open the writer first",
                             path_.string())};
  }
  env_.reset();  // one at a time
  auto opened = open_map(access, map_bytes);
  // What was found damaged is not kept open.
  if (!opened) env_.reset();
  return opened;
}

Result<void> Environment::open_map(Access access, std::uint64_t map_bytes) {
  std::error_code ignored;
  const auto file = std::filesystem::file_size(path_ / "data.mdb", ignored);
  const std::uint64_t used = ignored ? 0 : file;
  std::uint64_t wanted = map_bytes != 0 ? map_bytes : std::max(kReservedBytes, 4 * used);
  // A multiple of any page's size: 64 KiB is the largest that Linux uses.
  wanted = (wanted + 65535) / 65536 * 65536;
  auto opened = open_handle(access, wanted);
  // Less where address space is short (ulimit -v), as long as the file fits.
  while (!opened && opened.error().code == ErrorCode::does_not_fit && map_bytes == 0 &&
         wanted / 2 > used + (1 << 20)) {
    wanted /= 2;
    opened = open_handle(access, wanted);
  }
  if (!opened) return opened.error();
  env_ = std::move(*opened);
  access_ = access;
  tables_open_ = false;
  MDB_envinfo info = {};
  MDB_stat stat = {};
  const int code = call([&] {
    mdb_env_info(env_.get(), &info);
    return mdb_env_stat(env_.get(), &stat);
  });
  if (code != 0) return error(code, "read meta page");
  map_bytes_ = info.me_mapsize;
  page_bytes_ = stat.ms_psize;
  // Frees the slots of readers that were killed: they would keep writers from reusing pages.
  int dead = 0;
  mdb_reader_check(env_.get(), &dead);
  if (auto sized = check_size(); !sized) return sized;
  if (auto tables = open_tables(); !tables) return tables;
  // LMDB says nothing when it goes without a lock; but open_tables() has just had a reader slot.
  if (const int asked = call([&] { return mdb_env_info(env_.get(), &info); }); asked != 0) {
    return error(asked, "read meta page");
  }
  lock_ = info.me_numreaders > 0        ? MapLock::slot
          : is_read_only_for_all(path_) ? MapLock::read_only
                                        : MapLock::none;
  return {};
}

Result<void> Environment::open_tables() {
  const Error foreign{
      ErrorCode::store_unavailable,
      fmt::format("{} is an LMDB environment, but not a Batchwright dataset", path_.string())};
  MDB_txn* txn = nullptr;
  int code = call([&] { return mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &txn); });
  if (code != 0) return error(code, "begin to read");
  std::size_t found = 0;
  MDB_stat main = {};
  code = call([&] {
    unsigned root = 0;
    unsigned flags = 0;
    int result = mdb_dbi_open(txn, nullptr, 0, &root);
    if (result == 0) result = mdb_stat(txn, root, &main);
    for (std::size_t i = 0; i < kTables && result == 0; ++i) {
      result = mdb_dbi_open(txn, kTableNames[i], 0, &tables_[i]);
      if (result == 0) result = mdb_dbi_flags(txn, tables_[i], &flags);
      if (result == 0) found += flags == kTableFlags[i];
    }
    return result;
  });
  // Committed, though nothing was written: an abort would close the tables' handles again.
  if (code == 0)
    code = mdb_txn_commit(txn);
  else
    mdb_txn_abort(txn);
  tables_open_ = code == 0 && found == kTables;
  if (tables_open_ || (code == MDB_NOTFOUND && main.ms_entries == 0)) return {};
  if (code == 0 || code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE) return foreign;
  return error(code, "open tables");
}

Result<bool> Environment::has_tables() {
  const MutexLock lock(mutex_);
  // While a transaction of ours is making them, they are not there yet.
  if (tables_open_ || alive_ != 0) return tables_open_;
  if (auto opened = open_tables(); !opened) return opened.error();
  return tables_open_;
}

Result<void> Environment::grow() {
  const MutexLock lock(mutex_);
  const std::uint64_t before = map_bytes_;
  auto grown = reopen(access_, 2 * before);
  // The larger map did not fit; what is committed stays readable, and the writer's data pending.
  if (!grown && env_ == nullptr) static_cast<void>(reopen(access_, before));
  return grown;
}

}  // namespace batchwright
