#include "storage/environment.h"

#include <lmdb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "storage/fault_guard.h"

namespace batchwright {
namespace {

// Tables have integer keys in the order of the machine, values are little-endian.
static_assert(std::endian::native == std::endian::little && sizeof(std::size_t) == 8);

constexpr std::array<const char*, kTables> kTableNames = {"meta", "sequences", "keys", "lengths"};
constexpr std::array<unsigned, kTables> kTableFlags = {0, MDB_INTEGERKEY, 0, MDB_INTEGERKEY};

/// Not a code of LMDB's, nor an errno: the map faulted.
constexpr int kFaulted = -1;

/// Address space for a dataset, if there is that much: it costs nothing until it is used.
constexpr std::uint64_t kReservedBytes = std::uint64_t{1} << 40;

/// Calls LMDB where it reads the map. It holds no lock there, so being left costs at worst the
/// memory of one transaction.
template <class Call>
int call(Call lmdb) {
  int code = kFaulted;
  return guarded([&] { code = lmdb(); }) ? code : kFaulted;
}

/// LMDB found its tree in a state that must not be.
void on_failed_assertion(MDB_env*, const char*) { abandon_guarded_read(); }

MDB_val value_of(std::span<const std::byte> bytes) {
  // LMDB does not write through the pointer: the type serves both ways.
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}

unsigned flags_of(Put how) {
  switch (how) {
    case Put::append: return MDB_APPEND;
    case Put::insert: return MDB_NOOVERWRITE;
    case Put::replace: return 0;
  }
  return 0;
}

ErrorCode code_of(int code) {
  switch (code) {
    case MDB_MAP_FULL:
    case MDB_READERS_FULL: return ErrorCode::does_not_fit;
    case MDB_KEYEXIST: return ErrorCode::already_exists;
    case MDB_VERSION_MISMATCH: return ErrorCode::unsupported_version;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL: return ErrorCode::corrupt_record;
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ErrorCode::io_error;
    default: return ErrorCode::store_unavailable;
  }
}

}  // namespace

void CloseEnvironment::operator()(MDB_env* env) const noexcept { mdb_env_close(env); }

Error Environment::error(int code, std::string_view doing) const {
  if (code == kFaulted) return fault();
  const std::string where = "dataset " + path_.string() + ": ";
  if (code == MDB_INVALID) {
    return {ErrorCode::store_unavailable, where + "data.mdb is not an LMDB file"};
  }
  if (code == MDB_READERS_FULL) {
    return {ErrorCode::does_not_fit, where + "all reader slots of lock.mdb are taken"};
  }
  return {code_of(code), where + std::string(doing) + ": " + mdb_strerror(code)};
}

std::uint64_t Environment::file_bytes() const {
  int descriptor = -1;
  struct stat status = {};
  if (mdb_env_get_fd(env_.get(), &descriptor) != 0 || fstat(descriptor, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

/// The size is read behind the last page's number: a writer makes the file longer first.
Result<void> Environment::check_size() const {
  std::uint64_t found = file_bytes();
  std::uint64_t needed = 2 * page_bytes_;
  MDB_envinfo info = {};
  if (found >= needed && call([&] { return mdb_env_info(env_.get(), &info); }) == 0) {
    needed = (info.me_last_pgno + 1) * page_bytes_;
    found = file_bytes();
  }
  if (found >= needed) return {};
  return Error{ErrorCode::store_unavailable,
               "dataset " + path_.string() + ": data.mdb is truncated: it has " +
                   std::to_string(found) + " bytes, of at least " + std::to_string(needed)};
}

Error Environment::fault() const {
  // The caller has a transaction alive, so env_ stays as it is.
  if (auto sized = check_size(); !sized) return sized.error();
  return {ErrorCode::store_unavailable,
          "dataset " + path_.string() + ": data.mdb cannot be read: disk error or damaged index"};
}

Result<void> Environment::check_still_there() const {
  const std::lock_guard lock(mutex_);
  if (env_ == nullptr) return {};  // the next transaction opens it anew
  int descriptor = -1;
  struct stat open_file = {};
  struct stat named_file = {};
  if (mdb_env_get_fd(env_.get(), &descriptor) != 0 || fstat(descriptor, &open_file) != 0 ||
      stat((path_ / "data.mdb").c_str(), &named_file) != 0 ||
      open_file.st_ino != named_file.st_ino || open_file.st_dev != named_file.st_dev) {
    return Error{ErrorCode::store_unavailable,
                 "dataset " + path_.string() + " was removed or replaced while it was open"};
  }
  return {};
}

Result<Environment::Handle> Environment::open_handle(Access access, std::uint64_t map_bytes) const {
  MDB_env* raw = nullptr;
  if (const int code = mdb_env_create(&raw); code != 0) return error(code, "create environment");
  Handle env(raw);
  mdb_env_set_maxdbs(raw, kTables);
  mdb_env_set_mapsize(raw, map_bytes);
  mdb_env_set_assert(raw, on_failed_assertion);
  const unsigned flags =
      MDB_NOTLS | MDB_NORDAHEAD | (access == Access::read ? unsigned{MDB_RDONLY} : 0U);
  const int code = call([&] { return mdb_env_open(raw, path_.c_str(), flags, 0664); });
  if (code == ENOMEM) {
    return Error{ErrorCode::does_not_fit, "dataset " + path_.string() + ": no room for a map of " +
                                              std::to_string(map_bytes) + " bytes"};
  }
  if (code == kFaulted) {
    return Error{ErrorCode::store_unavailable,
                 "dataset " + path_.string() + ": data.mdb cannot be read"};
  }
  if (code != 0) return error(code, "open data.mdb");
  return env;
}

Result<void> Environment::reopen(Access access, std::uint64_t map_bytes) {
  if (alive_ != 0) {
    return Error{ErrorCode::busy, "dataset " + path_.string() +
                                      ": this process has a snapshot of it open, so its map "
                                      "cannot be changed; release the snapshot, or open the "
                                      "writer first"};
  }
  env_.reset();  // one at a time
  std::error_code ignored;
  const auto file = std::filesystem::file_size(path_ / "data.mdb", ignored);
  const std::uint64_t used = ignored ? 0 : file;
  std::uint64_t wanted = map_bytes != 0 ? map_bytes : std::max(kReservedBytes, 4 * used);
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
  int dead = 0;
  mdb_reader_check(env_.get(), &dead);
  if (auto sized = check_size(); !sized) return sized;
  return open_tables();
}

Result<void> Environment::open_tables() {
  const Error foreign{ErrorCode::store_unavailable,
                      path_.string() + " is an LMDB environment, but not a Batchwright dataset"};
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
  const std::lock_guard lock(mutex_);
  // While a transaction of ours is making them, they are not there yet.
  if (tables_open_ || alive_ != 0) return tables_open_;
  if (auto opened = open_tables(); !opened) return opened.error();
  return tables_open_;
}

Result<void> Environment::grow() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = map_bytes_;
  auto grown = reopen(access_, 2 * before);
  if (!grown && env_ == nullptr) static_cast<void>(reopen(access_, before));
  return grown;
}

void Transaction::End::operator()(MDB_txn* txn) const noexcept {
  mdb_txn_abort(txn);
  ended();
}

void Transaction::End::ended() const noexcept {
  const std::lock_guard lock(environment->mutex_);
  --environment->alive_;
}

Result<Transaction> Transaction::begin(std::shared_ptr<Environment> environment, Access access) {
  Environment& env = *environment;
  MDB_txn* txn = nullptr;
  int code = MDB_MAP_RESIZED;
  // Another process may have grown the file beyond our map: map anew, once.
  for (int attempt = 0; attempt < 2 && code == MDB_MAP_RESIZED; ++attempt) {
    std::unique_lock lock(env.mutex_);
    if (attempt == 1 || env.env_ == nullptr) {
      if (auto opened = env.reopen(env.access_, 0); !opened) return opened.error();
    }
    if (auto sized = env.check_size(); !sized) return sized.error();
    ++env.alive_;
    lock.unlock();  // a writer may have to wait
    const unsigned flags = access == Access::read ? MDB_RDONLY : 0;
    code = call([&] { return mdb_txn_begin(env.env_.get(), nullptr, flags, &txn); });
    lock.lock();
    if (code != 0) --env.alive_;
  }
  if (code != 0) return env.error(code, "begin a transaction");
  return Transaction(Handle(txn, End{std::move(environment)}));
}

Result<std::optional<MapBytes>> Transaction::get(Table table,
                                                 std::span<const std::byte> key) const {
  MDB_val wanted = value_of(key);
  MDB_val found = {};
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  const int code = call([&] { return mdb_get(handle_.get(), dbi, &wanted, &found); });
  if (code == MDB_NOTFOUND) return std::optional<MapBytes>();
  if (code != 0) return environment().error(code, "look up");
  return std::optional(MapBytes(static_cast<const std::byte*>(found.mv_data), found.mv_size));
}

Result<std::uint64_t> Transaction::entries(Table table) const {
  MDB_stat stat = {};
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  const int code = call([&] { return mdb_stat(handle_.get(), dbi, &stat); });
  if (code != 0) return environment().error(code, "count");
  return std::uint64_t{stat.ms_entries};
}

Result<void> Transaction::create_tables() {
  for (std::size_t i = 0; i < kTables; ++i) {
    const int code = mdb_dbi_open(handle_.get(), kTableNames[i], MDB_CREATE | kTableFlags[i],
                                  &environment().tables_[i]);
    if (code != 0) return environment().error(code, "create tables");
  }
  return {};
}

Result<void> Transaction::put(Table table, std::span<const std::byte> key,
                              std::span<const std::byte> value, Put how) {
  MDB_val name = value_of(key);
  MDB_val bytes = value_of(value);
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  const int code = mdb_put(handle_.get(), dbi, &name, &bytes, flags_of(how));
  if (code != 0) return environment().error(code, "write");
  return {};
}

Result<void> Transaction::commit() {
  const int code = mdb_txn_commit(handle_.release());
  Environment& env = environment();
  const std::lock_guard lock(env.mutex_);
  --env.alive_;
  if (code != 0) return env.error(code, "commit");
  env.tables_open_ = true;  // only create_tables() leaves a transaction without
  return {};
}

void prefetch(MapBytes bytes) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  // A hint: when it fails, the page is read when it is needed.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED));
}

}  // namespace batchwright
