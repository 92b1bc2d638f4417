#include "storage/dataset/lmdb/keyed_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "storage/dataset/lmdb/creation.h"
#include "storage/dataset/lmdb/file_system.h"
#include "storage/dataset/lmdb/lmdb_call.h"

namespace batchwright {
namespace {

constexpr std::uint64_t kLeastReserved = std::uint64_t{1} << 26;

/// A number as a key: 8 bytes big-endian, so that keys lie in the order of their numbers. (Keys of
/// LMDB's MDB_INTEGERKEY have 4 bytes on 32-bit machines.)
class Key {
 public:
  explicit Key(std::uint64_t number) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<std::byte>(number >> (56 - 8 * i));
    }
  }
  static std::uint64_t number_of(const std::byte* bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < kBytes; ++i)
      number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return number;
  }
  MDB_val value() const { return value_of(bytes_); }

  static constexpr std::size_t kBytes = 8;

 private:
  std::array<std::byte, kBytes> bytes_;
};

/// A table that is none of ours. It is found where nothing may be allocated.
struct OtherTable {
  std::array<char, 511> name{};  // LMDB's longest
  std::size_t size = 0;          ///< 0: there is none.
  bool has_our_name = false;     ///< Only its keys are others.
};

/// Looks for a table that is none of `tables`, or has other keys. Returns a code of LMDB's.
int find_other(MDB_txn* txn, std::span<const char* const> tables, OtherTable& other) {
  MDB_dbi root = 0;
  MDB_cursor* cursor = nullptr;  // the transaction's end closes it
  int code = mdb_dbi_open(txn, nullptr, 0, &root);
  if (code == 0) code = mdb_cursor_open(txn, root, &cursor);
  while (code == 0) {
    MDB_val key = {}, value = {};
    code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    if (code != 0) break;
    const std::string_view name(static_cast<const char*>(key.mv_data), key.mv_size);
    const auto ours = std::find(tables.begin(), tables.end(), name);
    MDB_dbi table = 0;
    unsigned kind = 1;
    if (ours != tables.end()) {
      code = mdb_dbi_open(txn, *ours, 0, &table);
      if (code == 0) code = mdb_dbi_flags(txn, table, &kind);
    }
    if (code != 0 || kind == 0) continue;
    other.size = std::min(name.size(), other.name.size());
    std::memcpy(other.name.data(), name.data(), other.size);
    other.has_our_name = ours != tables.end();
    break;
  }
  return code == MDB_NOTFOUND ? 0 : code;
}

}  // namespace

/// One that was left half done is in no state to be closed.
KeyedStore::~KeyedStore() {
  if (lost_) static_cast<void>(env_.release());
}

Error KeyedStore::error(int code, const char* doing) const {
  if (const auto full = full_disk(code, folder_)) {
    return {ErrorCode::io_error, fmt::format("{}: {}: {}", name_, doing, *full)};
  }
  if (code == kFaulted || is_damage(code)) {
    return {ErrorCode::corrupt_record,
            fmt::format("{}: {}: its data.mdb is damaged; move the folder away to begin with an "
                        "empty one",
                        name_, doing)};
  }
  if (code == EACCES || code == EROFS) {
    return {ErrorCode::store_unavailable, fmt::format("{}: {}: {} ({})", name_, doing,
                                                      mdb_strerror(code), permissions_of(folder_))};
  }
  return {code_of(code), fmt::format("{}: {}: {}", name_, doing, mdb_strerror(code))};
}

Result<std::unique_ptr<KeyedStore>> KeyedStore::open(std::string name,
                                                     const std::filesystem::path& folder,
                                                     std::span<const char* const> tables,
                                                     bool synced) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed && !std::filesystem::is_directory(folder)) {
    return Error{ErrorCode::store_unavailable, fmt::format("{}: {}", name, failed.message())};
  }
  auto lock = FileLock::take(folder / "lock", FileLock::Kind::exclusive);
  if (!lock) return Error{lock.error().code, fmt::format("{}: {}", name, lock.error().message)};
  if (!*lock) {
    return Error{ErrorCode::busy, fmt::format("{} is in use by another feed or daemon", name)};
  }
  std::unique_ptr<KeyedStore> store(new KeyedStore(std::move(name), folder, *std::move(*lock)));
  if (auto opened = store->open_map(tables, synced); !opened) return opened.error();
  return store;
}

Result<void> KeyedStore::open_map(std::span<const char* const> tables, bool synced) {
  arm_fault_guard();
  create_data_file(folder_);
  // One process has it, and reads of it only where it does not write: no table of readers.
  const unsigned flags = MDB_NOLOCK | MDB_NOTLS | MDB_NOMEMINIT | (synced ? 0U : MDB_NOSYNC);
  int code = 0;
  for (std::uint64_t bytes = kReservedBytes; bytes >= kLeastReserved; bytes /= 2) {
    code =
        open_environment(env_, folder_, bytes, static_cast<unsigned>(tables.size()), flags, 0640);
    if (code != ENOMEM) break;  // else there is less address space (ulimit -v)
  }
  if (code != 0) return error(code, "open data.mdb");
  return open_tables(tables);
}

Result<void> KeyedStore::open_tables(std::span<const char* const> tables) {
  tables_.resize(tables.size());
  auto txn = begin(false);
  if (!txn) return txn.error();
  OtherTable other;
  int code = call([&] { return find_other(*txn, tables, other); });
  for (std::size_t i = 0; i < tables.size() && code == 0 && other.size == 0; ++i) {
    code = call([&] { return mdb_dbi_open(*txn, tables[i], MDB_CREATE, &tables_[i]); });
  }
  if (code == 0 && other.size == 0) {
    code = call([&] { return mdb_txn_commit(*txn); });
  } else if (code != kFaulted) {
    mdb_txn_abort(*txn);
  }
  lost_ = code == kFaulted;
  if (code != 0) return error(code, "open its tables");
  if (other.size == 0) return {};
  if (other.has_our_name) {
    return Error{ErrorCode::unsupported_version,
                 fmt::format("{} was made by another version, with other keys: let that version "
                             "deliver what is in it, or move the folder away",
                             name_)};
  }
  return Error{ErrorCode::store_unavailable,
               fmt::format("{}: found the table \"{}\" in its data.mdb, of a dataset or another "
                           "program; allowed: a folder of its own",
                           name_, printable(std::string(other.name.data(), other.size)))};
}

Result<MDB_txn*> KeyedStore::begin(bool reads) const {
  if (lost_) return error(MDB_CORRUPTED, "write");
  MDB_txn* txn = nullptr;
  const int code =
      call([&] { return mdb_txn_begin(env_.get(), nullptr, reads ? MDB_RDONLY : 0, &txn); });
  if (code != 0) return error(code, "begin");
  return txn;
}

std::span<std::byte> KeyedStore::Batch::reserve(std::size_t table, std::uint64_t key,
                                                std::size_t bytes) {
  const Key number(key);
  MDB_val name = number.value();
  MDB_val value{bytes, nullptr};
  if (code_ == 0) {
    code_ = call([&] { return mdb_put(txn_, tables_[table], &name, &value, MDB_RESERVE); });
  }
  if (code_ == 0) return {static_cast<std::byte*>(value.mv_data), bytes};
  nowhere_.resize(bytes);
  return nowhere_;
}

void KeyedStore::Batch::erase(std::size_t table, std::uint64_t key) {
  if (code_ != 0) return;
  const Key number(key);
  MDB_val name = number.value();
  code_ = call([&] { return mdb_del(txn_, tables_[table], &name, nullptr); });
  if (code_ == MDB_NOTFOUND) code_ = 0;
}

Result<void> KeyedStore::write(const std::function<void(Batch&)>& fill) {
  auto txn = begin(false);
  if (!txn) return txn.error();
  Batch batch(*txn, tables_);
  fill(batch);
  int code = batch.code_;
  if (code == 0) {
    code = call([&] { return mdb_txn_commit(*txn); });
  } else if (code != kFaulted) {
    mdb_txn_abort(*txn);
  }
  lost_ |= code == kFaulted;
  if (code != 0) return error(code, "write");
  return {};
}

Result<void> KeyedStore::clear() {
  return write([](Batch& batch) {
    for (const unsigned table : batch.tables_) {
      if (batch.code_ == 0) batch.code_ = call([&] { return mdb_drop(batch.txn_, table, 0); });
    }
  });
}

/// Values are copied where a fault is caught, and looked at elsewhere.
Result<void> KeyedStore::read(std::size_t table, const Take& take) const {
  auto txn = begin(true);
  if (!txn) return txn.error();
  MDB_cursor* cursor = nullptr;
  int code = call([&] { return mdb_cursor_open(*txn, tables_[table], &cursor); });
  Result<void> taken;
  std::vector<std::byte> copy;
  while (code == 0 && taken) {
    MDB_val key = {}, value = {};
    code = call([&] { return mdb_cursor_get(cursor, &key, &value, MDB_NEXT); });
    if (code != 0) break;
    copy.resize(std::max(copy.size(), value.mv_size));
    std::uint64_t number = 0;
    code = call([&] {
      if (key.mv_size != Key::kBytes) return MDB_CORRUPTED;
      number = Key::number_of(static_cast<const std::byte*>(key.mv_data));
      if (value.mv_size != 0) std::memcpy(copy.data(), value.mv_data, value.mv_size);
      return 0;
    });
    if (code == 0) taken = take(number, std::span(copy).first(value.mv_size));
  }
  if (code == kFaulted) return error(code, "read");
  if (cursor != nullptr) mdb_cursor_close(cursor);
  mdb_txn_abort(*txn);
  if (!taken) return taken;
  if (code != 0 && code != MDB_NOTFOUND) return error(code, "read");
  return {};
}

}  // namespace batchwright
