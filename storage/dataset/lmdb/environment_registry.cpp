#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "formats/formats.h"
#include "storage/dataset/lmdb/environment.h"

// LMDB forbids a process to have an environment open twice: closing one drops the file locks of
// both, and opening the second resets the reader table under the first. So this file keeps the
// one list of what is open, by the directory's device and inode, for the whole process; any other
// owner could exist twice. A forked child has none of its parent's locks: it starts a new list.
//
// Opening and closing wait for the file system, so each environment has a lock of its own for them:
// one whose file system does not answer keeps no other from being opened. That lock is taken before
// the list's.

namespace batchwright {

class EnvironmentRegistry {
 public:
  static EnvironmentRegistry& of_this_process();

  /// How an environment is asked for.
  struct Request {
    const std::filesystem::path& path;
    Access access = Access::read;
    Locking locking = Locking::on;
    std::uint64_t map_bytes = 0;
  };
  Result<std::shared_ptr<Environment>> acquire(const Request& request);

 private:
  using FileId = std::pair<dev_t, ino_t>;
  struct Entry {
    Mutex mutex;  ///< While the environment is opened or closed.
    std::unique_ptr<Environment> environment GUARDED_BY(mutex);
    bool writing GUARDED_BY(mutex) = false;
    std::size_t users = 0;  ///< Guarded by mutex_; those that wait for `mutex` included.
  };
  using SharedEntry = std::shared_ptr<Entry>;

  void forget_parent() REQUIRES(mutex_);
  SharedEntry use(FileId id);
  SharedEntry find(FileId id);
  void leave(FileId id, const SharedEntry& entry) REQUIRES(entry->mutex);
  Result<void> prepare(Entry& entry, const Request& request) REQUIRES(entry.mutex);
  Result<void> prepare_again(const Entry& entry, const Request& request) REQUIRES(entry.mutex);
  void release(const Environment* environment, FileId id, Access access);

  Mutex mutex_;  // of the list; never held while a file system is waited for
  pid_t process_ GUARDED_BY(mutex_) = getpid();
  std::map<FileId, SharedEntry> entries_ GUARDED_BY(mutex_);
  std::vector<std::map<FileId, SharedEntry>> inherited_
      GUARDED_BY(mutex_);  // the parent's: not ours to close
};

namespace {

Error unavailable(const std::filesystem::path& path, const std::string& what) {
  return {ErrorCode::store_unavailable, fmt::format("dataset {}{}", path.string(), what)};
}

Result<void> check_readable(const std::filesystem::path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) {
    return unavailable(path, " does not exist");
  }
  if (code) return unavailable(path, fmt::format(": {}", code.message()));
  if (!std::filesystem::is_directory(status)) {
    return unavailable(path, " is not a directory; a dataset is one that holds data.mdb");
  }
  const auto bytes = std::filesystem::file_size(path / "data.mdb", code);
  if (code == std::errc::no_such_file_or_directory) {
    return unavailable(path, " holds no data.mdb: not a Batchwright dataset");
  }
  if (code) return unavailable(path, fmt::format("/data.mdb: {}", code.message()));
  if (bytes == 0) return unavailable(path, ": data.mdb is empty: not a Batchwright dataset");
  return {};
}

/// Makes the directory, but not its parents, so that a misspelt path is an error.
Result<void> check_writable(const std::filesystem::path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) {
    if (std::filesystem::create_directory(path, code); !code) return {};
    return Error{ErrorCode::io_error,
                 fmt::format("dataset {}: make directory: {}", path.string(), code.message())};
  }
  if (!std::filesystem::is_directory(status)) {
    return unavailable(path, " is not a directory; a dataset is one that holds data.mdb");
  }
  if (std::filesystem::exists(path / "data.mdb", code)) return {};
  for (const auto& file : std::filesystem::directory_iterator(path, code)) {
    // A lock.mdb alone is what a writer leaves that was killed before it made data.mdb.
    if (file.path().filename() != "lock.mdb") {
      return unavailable(path, ": the directory is not empty, and holds no dataset");
    }
  }
  return {};
}

}  // namespace

EnvironmentRegistry& EnvironmentRegistry::of_this_process() {
  // Never destroyed: datasets may live as long as the process.
  static auto* const registry = new EnvironmentRegistry;
  return *registry;
}

void EnvironmentRegistry::forget_parent() {
  if (process_ == getpid()) return;
  inherited_.push_back(std::exchange(entries_, {}));
  process_ = getpid();
}

Result<void> EnvironmentRegistry::prepare(Entry& entry, const Request& request) {
  if (entry.environment != nullptr) return prepare_again(entry, request);
  // An entry has one that is open or none, whatever is thrown meanwhile.
  std::unique_ptr<Environment> made(new Environment(request.path, request.locking));
  {
    const MutexLock lock(made->mutex_);
    if (auto opened = made->reopen(request.access, request.map_bytes); !opened) return opened;
  }
  entry.environment = std::move(made);
  return {};
}

/// What is open already goes on as it is, where that is enough.
Result<void> EnvironmentRegistry::prepare_again(const Entry& entry, const Request& request) {
  Environment& environment = *entry.environment;
  if (auto there = environment.check_still_there(request.path); !there) return there;
  if (request.access == Access::write && entry.writing) {
    return Error{ErrorCode::busy,
                 fmt::format("dataset {}: this process has a writer of it open already",
                             request.path.string())};
  }
  const MutexLock lock(environment.mutex_);
  if (request.access == Access::write) {
    if (environment.lost_) return environment.lost();
    if (environment.access_ == Access::write) return {};
    // A writer needs LMDB's lock, whatever readers before it went without.
    environment.locking_ = Locking::on;
    return environment.reopen(Access::write, request.map_bytes);
  }
  // What is open will do, unless it is without the lock that is asked for.
  if (request.locking != Locking::on || environment.locking_ != Locking::off) return {};
  if (environment.alive_ != 0) {
    return Error{ErrorCode::busy,
                 fmt::format("dataset {}: this process reads it without a lock (lock = false), and "
                             "cannot take one before that has ended",
                             request.path.string())};
  }
  environment.locking_ = request.locking;
  return environment.reopen(Access::read, request.map_bytes);
}

EnvironmentRegistry::SharedEntry EnvironmentRegistry::use(FileId id) {
  const MutexLock lock(mutex_);
  forget_parent();
  SharedEntry& entry = entries_[id];
  if (!entry) entry = std::make_shared<Entry>();
  ++entry->users;
  return entry;
}

EnvironmentRegistry::SharedEntry EnvironmentRegistry::find(FileId id) {
  const MutexLock lock(mutex_);
  forget_parent();
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second;
}

/// With the entry's lock: one user less, of whom the last closes the environment. One that is lost
/// holds LMDB's writer lock, which cannot be given back: it stays open.
void EnvironmentRegistry::leave(FileId id, const SharedEntry& entry) {
  {
    const MutexLock lock(mutex_);
    if (--entry->users != 0) return;
  }
  if (entry->environment && entry->environment->is_lost()) return;
  entry->environment.reset();
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  // Those that came meanwhile open it again.
  if (found != entries_.end() && found->second == entry && entry->users == 0) entries_.erase(found);
}

Result<std::shared_ptr<Environment>> EnvironmentRegistry::acquire(const Request& request) {
  struct stat status = {};
  if (stat(request.path.c_str(), &status) != 0) {
    return unavailable(request.path, fmt::format(": {}", strerror(errno)));
  }
  const FileId id(status.st_dev, status.st_ino);
  const SharedEntry entry = use(id);
  MutexLock lock(entry->mutex);
  if (auto prepared = prepare(*entry, request); !prepared) {
    leave(id, entry);  // others may use the environment as it was
    return prepared.error();
  }
  const Access access = request.access;
  entry->writing = entry->writing || access == Access::write;
  Environment* const opened = entry->environment.get();
  // For lack of memory the pointer calls release() here, which takes the lock.
  lock.unlock();
  return std::shared_ptr<Environment>(opened, [this, id, access](const Environment* environment) {
    release(environment, id, access);
  });
}

void EnvironmentRegistry::release(const Environment* environment, FileId id, Access access) {
  // In a forked child the parent's environments are not in this list, or others are in their place.
  const SharedEntry entry = find(id);
  if (!entry) return;
  const MutexLock lock(entry->mutex);
  if (entry->environment.get() != environment) return;
  if (access == Access::write) entry->writing = false;
  leave(id, entry);
}

Result<std::shared_ptr<Environment>> Environment::open(const std::filesystem::path& path,
                                                       Locking locking) {
  if (auto checked = check_readable(path); !checked) return checked.error();
  return EnvironmentRegistry::of_this_process().acquire({path, Access::read, locking, 0});
}

Result<std::shared_ptr<Environment>> Environment::open_to_write(const std::filesystem::path& path,
                                                                std::uint64_t map_bytes) {
  if (auto checked = check_writable(path); !checked) return checked.error();
  return EnvironmentRegistry::of_this_process().acquire(
      {path, Access::write, Locking::on, map_bytes});
}

}  // namespace batchwright
