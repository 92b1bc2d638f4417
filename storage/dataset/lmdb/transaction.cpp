#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <string>

#include "formats/formats.h"
#include "storage/dataset/lmdb/environment.h"
#include "storage/dataset/lmdb/lmdb_call.h"

namespace batchwright {
namespace {

unsigned flags_of(Put how) {
  switch (how) {
    case Put::append: return MDB_APPEND;
    case Put::insert: return MDB_NOOVERWRITE;
    case Put::replace: return 0;
  }
  return 0;
}

/// What a message says was done.
std::string look_up_in(Table table) {
  return fmt::format("look-up in table {}", kTableNames[static_cast<std::size_t>(table)]);
}

}  // namespace

void Transaction::End::operator()(MDB_txn* txn) const noexcept {
  mdb_txn_abort(txn);
  ended();
}

void Transaction::End::ended() const noexcept {
  const MutexLock lock(environment->mutex_);
  --environment->alive_;
}

Result<Transaction> Transaction::begin(std::shared_ptr<Environment> environment, Access access) {
  auto handle = begin_handle(std::move(environment), access);
  if (!handle) return handle.error();
  return Transaction(std::move(*handle));
}

Result<Transaction::Handle> Transaction::begin_handle(std::shared_ptr<Environment> environment,
                                                      Access access) {
  arm_fault_guard();
  Environment& env = *environment;
  MDB_txn* txn = nullptr;
  int code = MDB_MAP_RESIZED;
  // Another process may have grown the file beyond our map: map again, once.
  for (int attempt = 0; attempt < 2 && code == MDB_MAP_RESIZED; ++attempt) {
    MutexLock lock(env.mutex_);
    if (env.lost_ && access == Access::write) return env.lost();
    if (attempt == 1 || env.env_ == nullptr) {
      if (auto opened = env.reopen(env.access_, 0); !opened) return opened.error();
    }
    if (auto sized = env.check_size(); !sized) return sized.error();
    // Before the lock is given up: while it counts, nothing moves the map under the call below.
    ++env.alive_;
    lock.unlock();  // a writer may have to wait
    const unsigned flags = access == Access::read ? MDB_RDONLY : 0;
    code = call([&] { return mdb_txn_begin(env.env_.get(), nullptr, flags, &txn); });
    lock.lock();
    if (code != 0) --env.alive_;
    // The writer lock was taken, and there is no transaction by which to give it back.
    if (code == kFaulted && access == Access::write) env.lost_ = true;
  }
  if (code != 0) return env.error(code, "begin a transaction");
  return Handle(txn, End{std::move(environment), access});
}

Result<std::optional<MapBytes>> Transaction::get(Table table,
                                                 std::span<const std::byte> key) const {
  MDB_val wanted = value_of(key);
  MDB_val found = {};
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  int code = call([&] { return mdb_get(reader(), dbi, &wanted, &found); });
  // An earlier look-up met a damaged page. One that writes has no substitute: it would not see
  // what this one wrote.
  if (code == MDB_BAD_TXN && handle_.get_deleter().access == Access::read) {
    auto substitute = begin_handle(handle_.get_deleter().environment, Access::read);
    if (!substitute) return substitute.error();
    substitute_ = std::move(*substitute);
    code = call([&] { return mdb_get(reader(), dbi, &wanted, &found); });
  }
  if (code == MDB_NOTFOUND) return std::optional<MapBytes>();
  if (code != 0) return environment().error(code, look_up_in(table));
  return std::optional(MapBytes(static_cast<const std::byte*>(found.mv_data), found.mv_size));
}

Result<void> Transaction::check_unchanged() const {
  const Environment& env = environment();
  if (env.lock() == MapLock::slot) return {};
  MDB_envinfo info = {};
  if (call([&] { return mdb_env_info(env.env_.get(), &info); }) != 0) return env.fault();
  // The commit after ours frees pages that we see, the one after that may write to them.
  if (info.me_last_txnid <= mdb_txn_id(handle_.get()) + 1) return {};
  return Error{ErrorCode::store_unavailable,
               fmt::format("dataset {} was written to while this process reads it without a lock, "
                           "and its pages have been overwritten; lock.mdb must be writable where a "
                           "dataset grows while it is read (under systemd: ReadWritePaths=)",
                           env.path().string())};
}

Result<MDB_stat> Transaction::figures(Table table) const {
  MDB_stat stat = {};
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  const int code = call([&] { return mdb_stat(reader(), dbi, &stat); });
  if (code != 0) return environment().error(code, look_up_in(table));
  return stat;
}

Result<std::uint64_t> Transaction::entries(Table table) const {
  const auto found = figures(table);
  if (!found) return found.error();
  return std::uint64_t{found->ms_entries};
}

Result<std::uint64_t> Transaction::leaf_pages(Table table) const {
  const auto found = figures(table);
  if (!found) return found.error();
  return std::uint64_t{found->ms_leaf_pages};
}

Result<Transaction> Transaction::another() const {
  return begin(handle_.get_deleter().environment, Access::read);
}

/// After a fault LMDB's writer lock is held, and the transaction is in no state to be ended: both
/// stay as they are until this process ends, which frees the lock. Nothing was committed.
void Transaction::lose() {
  static_cast<void>(handle_.release());
  Environment& env = environment();
  const MutexLock lock(env.mutex_);
  env.lost_ = true;  // and alive_ goes on counting it, so that the map stays
}

Result<void> Transaction::written(int code, std::string_view doing) {
  if (code == 0) return {};
  const Error error = environment().error(code, doing);
  if (code == kFaulted && handle_ != nullptr) lose();
  return error;
}

Result<void> Transaction::create_tables() {
  for (std::size_t i = 0; i < kTables; ++i) {
    unsigned* const table = &environment().tables_[i];
    const int code = call([&] {
      return mdb_dbi_open(handle_.get(), kTableNames[i], MDB_CREATE | kTableFlags[i], table);
    });
    if (auto made = written(code, "create tables"); !made) return made;
  }
  return {};
}

Result<void> Transaction::put(Table table, std::span<const std::byte> key,
                              std::span<const std::byte> value, Put how) {
  MDB_val name = value_of(key);
  MDB_val bytes = value_of(value);
  const unsigned dbi = environment().tables_[static_cast<std::size_t>(table)];
  const int code = call([&] { return mdb_put(handle_.get(), dbi, &name, &bytes, flags_of(how)); });
  return written(code, "write");
}

Result<void> Transaction::commit() {
  // LMDB frees it in any case, unless it is left in the middle by a fault.
  MDB_txn* const txn = handle_.get();
  const int code = call([txn] { return mdb_txn_commit(txn); });
  if (code == kFaulted) return written(code, "commit");
  static_cast<void>(handle_.release());
  Environment& env = environment();
  const MutexLock lock(env.mutex_);
  --env.alive_;
  if (code != 0) return env.error(code, "commit");
  env.tables_open_ = true;  // only create_tables() leaves a transaction without
  return {};
}

}  // namespace batchwright
