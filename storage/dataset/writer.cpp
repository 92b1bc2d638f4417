#include "storage/dataset/writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "storage/dataset/history.h"
#include "storage/dataset/length_index.h"
#include "storage/dataset/lmdb/environment.h"
#include "storage/dataset/lmdb/file_system.h"
#include "storage/dataset/pending.h"
#include "storage/dataset/reader.h"
#include "storage/dataset/state.h"

// A write transaction lives only within commit(), and what was appended stays in memory until it
// has succeeded. LMDB alone would let a sequence be written straight into a page, which saves one
// copy beside the page faults and the write to disk. But a full map loses the whole transaction,
// which then could not be repeated; LMDB's writer lock is tied to a thread; and it does not span
// commits, between which another writer could take our ordinals. So a lock on the directory keeps
// other writers out from open() on, and the kernel drops it whatever ends the process.

namespace batchwright {
namespace {

/// The directory, locked as long as this lives.
class DirectoryLock {
 public:
  explicit DirectoryLock(Descriptor directory) : directory_(std::move(directory)) {}
  DirectoryLock(DirectoryLock&&) = default;
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock() {
    // A child that was forked meanwhile shares the lock, and closing alone would leave it there.
    if (directory_ && process_ == getpid()) flock(number(), LOCK_UN);
  }
  int number() const { return directory_.get(); }

 private:
  Descriptor directory_;
  pid_t process_ = getpid();
};

using Clock = std::chrono::steady_clock;

/// flock() has no time limit of its own, and only a signal ends it: so it is asked again and again.
/// The lock, or the errno; EWOULDBLOCK when the wait ended.
int lock_within(int directory, const WriterLimits& limits) {
  constexpr std::chrono::milliseconds kPause{10};
  constexpr std::chrono::milliseconds kToldEvery{100};
  const auto start = Clock::now();
  auto tell_next = start;
  for (;;) {
    if (flock(directory, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EINTR) continue;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (errno != EWOULDBLOCK || waited >= limits.wait) return errno;
    if (limits.waiting && start + waited >= tell_next) {
      // The caller's wish to end the wait is reported like the end of its time.
      if (!limits.waiting({waited, flock_owner(directory)})) return EWOULDBLOCK;
      tell_next = start + waited + kToldEvery;
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// Waits until no other writer has the directory.
Result<DirectoryLock> lock_directory(const std::filesystem::path& path,
                                     const WriterLimits& limits) {
  const std::string where = fmt::format("dataset {}", path.string());
  DirectoryLock directory(Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  const auto start = Clock::now();
  const int code = directory.number() < 0 ? errno : lock_within(directory.number(), limits);
  if (code == 0) return directory;
  if (code == EWOULDBLOCK) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    const auto owner = flock_owner(directory.number());
    return Error{ErrorCode::timed_out,
                 fmt::format("{}: another process writes it{}, for longer than {} ms", where,
                             owner ? fmt::format(" (pid {})", *owner) : "", waited.count())};
  }
  return Error{ErrorCode::io_error,
               fmt::format("{}: lock for writing: {}", where, std::strerror(code))};
}

Result<void> create(const std::shared_ptr<Environment>& environment, const Schema& schema) {
  auto transaction = Transaction::begin(environment, Access::write);
  if (!transaction) return transaction.error();
  // Tables, schema and first state in one transaction: a dataset is there whole, or not.
  if (auto made = transaction->create_tables(); !made) return made;
  if (auto written = write_schema(*transaction, schema); !written) return written;
  const DatasetState empty = empty_state(schema);
  if (auto written = write_state(*transaction, empty); !written) return written;
  const Commit first = commit_of(empty);
  if (auto entered = remember(*transaction, first, first); !entered) return entered;
  return transaction->commit();
}

}  // namespace

struct DatasetWriter::State {
  std::shared_ptr<Environment> environment;
  DirectoryLock directory;
  WriterLimits limits;
  Schema schema;
  DatasetState committed;
  Pending pending;
  bool has_new_categories = false;  // which the next commit writes
  /// A transaction for look-ups of committed keys; a commit drops it.
  mutable std::optional<Transaction> lookup;

  Result<bool> contains(std::string_view key) const;
  Result<Ordinal> append(const Sequence& sequence);
  Result<void> check_new(const Sequence& sequence) const;
  Result<void> commit();
  Result<void> try_commit();
  Result<void> write(Transaction& transaction, DatasetState& state) const;
};

namespace {

Error nothing_to_append_to(const std::filesystem::path& path) {
  return {ErrorCode::not_found,
          fmt::format("there is no dataset at {} to append to", path.string())};
}

/// A writer that was killed between the last two acts of its commit leaves a state that is whole
/// and that LMDB tells no reader of, as long as other processes keep its lock file in use. The next
/// write transaction, even one without a write, finds the dead writer's lock and makes up for it.
Result<void> finish_last_commit(const std::shared_ptr<Environment>& environment) {
  const auto transaction = Transaction::begin(environment, Access::write);
  if (!transaction) return transaction.error();
  return {};
}

/// Creates the dataset where there is none. Errors: as DatasetWriter::open().
Result<Meta> load_or_create(const std::shared_ptr<Environment>& environment, const Schema& schema,
                            Opening opening) {
  const auto there = environment->has_tables();
  if (!there) return there.error();
  if (*there && opening == Opening::create) {
    return Error{ErrorCode::already_exists,
                 fmt::format("dataset {} is there already, and was to be created",
                             environment->path().string())};
  }
  if (!*there && opening == Opening::append) return nothing_to_append_to(environment->path());
  if (!*there) {
    auto created = create(environment, schema);
    if (!created && created.error().code == ErrorCode::does_not_fit) {
      if (auto grown = environment->grow(); !grown) return grown.error();
      created = create(environment, schema);
    }
    if (!created) return created.error();
  }
  const auto transaction = Transaction::begin(environment, Access::read);
  if (!transaction) return transaction.error();
  auto meta = read_meta(*transaction);
  if (!meta) return meta.error();
  const std::string difference = describe_field_difference(schema, meta->schema);
  if (difference.empty()) return meta;
  return Error{ErrorCode::schema_mismatch, fmt::format("dataset {} has other fields: {}",
                                                       environment->path().string(), difference)};
}

Result<Pending> load_tail(const std::shared_ptr<Environment>& environment, const Meta& meta,
                          std::uint64_t commit_bytes) {
  const auto transaction = Transaction::begin(environment, Access::read);
  if (!transaction) return transaction.error();
  // The last record before a commit goes beyond the limit; a larger buffer grows when needed.
  constexpr std::uint64_t kMostReserved = std::uint64_t{64} << 20;
  Pending pending(meta.schema, std::min(commit_bytes, kMostReserved) / 4 * 5);
  if (auto loaded = pending.load_tail(*transaction, meta.state.sequences); !loaded) {
    return loaded.error();
  }
  return pending;
}

}  // namespace

Result<bool> DatasetWriter::State::contains(std::string_view key) const {
  if (pending.contains(key)) return true;
  // No dataset has such a key, and LMDB calls it an error to look for an empty one.
  if (key.empty() || key.size() > kMaxKeyBytes) return false;
  // Kept for the next keys: an ingest looks each one up, and beginning takes a reader slot.
  if (!lookup) {
    auto transaction = Transaction::begin(environment, Access::read);
    if (!transaction) return transaction.error();
    lookup.emplace(std::move(*transaction));
  }
  const auto found = lookup->get(Table::keys, as_key(key));
  if (!found) return found.error();
  return found->has_value();
}

Result<void> DatasetWriter::State::check_new(const Sequence& sequence) const {
  if (auto checked = check_sequence(schema, sequence); !checked) return checked;
  if (const std::size_t bytes = record_bytes(sequence); bytes > kMaxRecordBytes) {
    return Error{ErrorCode::does_not_fit,
                 fmt::format("key \"{}\": its record takes {} bytes, of at most {}", sequence.key,
                             bytes, kMaxRecordBytes)};
  }
  const auto taken = contains(sequence.key);
  if (!taken) return taken.error();
  if (!*taken) return {};
  return Error{ErrorCode::already_exists, fmt::format("key \"{}\" is already in dataset {}",
                                                      sequence.key, environment->path().string())};
}

Result<Ordinal> DatasetWriter::State::append(const Sequence& sequence) {
  if (auto checked = check_new(sequence); !checked) return checked.error();
  const Ordinal ordinal{committed.sequences + pending.size()};
  pending.add(sequence, ordinal);
  if (pending.size() >= limits.commit_sequences || pending.bytes() >= limits.commit_bytes) {
    if (auto done = commit(); !done) {
      // The caller is told that this one was not taken; those before it stay, for another try.
      pending.drop_last();
      return done.error();
    }
  }
  return ordinal;
}

Result<void> DatasetWriter::State::commit() {
  if (pending.size() == 0) return {};
  // It does not see what the commit adds; and grow() can move the map without transactions alone.
  lookup.reset();
  for (;;) {
    auto done = try_commit();
    if (done || done.error().code != ErrorCode::does_not_fit) return done;
    // The map is full, and the transaction is gone; all it held is still pending.
    if (auto grown = environment->grow(); !grown) return grown;
  }
}

Result<void> DatasetWriter::State::try_commit() {
  auto transaction = Transaction::begin(environment, Access::write);
  if (!transaction) return transaction.error();
  // A copy: what a failed commit would have made of it must not be believed.
  DatasetState state = committed;
  if (auto written = write(*transaction, state); !written) return written;
  if (has_new_categories) {
    if (auto written = write_schema(*transaction, schema); !written) return written;
  }
  if (auto done = transaction->commit(); !done) return done;
  has_new_categories = false;
  committed = state;
  pending.clear();
  return {};
}

Result<void> DatasetWriter::State::write(Transaction& transaction, DatasetState& state) const {
  const auto found = read_state(transaction);
  if (!found) return found.error();
  // The lock on the directory binds only programs that ask for it; py-lmdb, for one, does not.
  if (*found != committed) {
    return Error{ErrorCode::store_unavailable,
                 fmt::format("dataset {} was written to by another program without the lock",
                             environment->path().string())};
  }
  for (std::size_t i = 0; i < pending.size(); ++i) extend(state, pending.summary(i));
  ++state.generation;
  if (auto written = pending.write(transaction, committed.sequences); !written) return written;
  if (auto written = write_state(transaction, state); !written) return written;
  return remember(transaction, commit_of(committed), commit_of(state));
}

DatasetWriter::DatasetWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&&) noexcept = default;
DatasetWriter::~DatasetWriter() = default;

Result<DatasetWriter> DatasetWriter::open(const std::filesystem::path& path, const Schema& schema,
                                          const WriterLimits& limits, Opening opening) {
  if (auto checked = validate(schema); !checked) return checked.error();
  std::error_code unreadable;  // then opening it says why
  if (opening == Opening::append && !std::filesystem::exists(path / "data.mdb", unreadable) &&
      !unreadable) {
    return nothing_to_append_to(path);
  }
  auto environment = Environment::open_to_write(path, limits.map_bytes);
  if (!environment) return environment.error();
  // After the environment: opening it makes the directory where there is none.
  auto directory = lock_directory(path, limits);
  if (!directory) return directory.error();
  // Under the lock on the directory: no writer that lives is in the middle of a commit.
  if (auto finished = finish_last_commit(*environment); !finished) return finished.error();
  auto meta = load_or_create(*environment, schema, opening);
  if (!meta) return meta.error();
  auto pending = load_tail(*environment, *meta, limits.commit_bytes);
  if (!pending) return pending.error();
  const bool has_new_categories = append_categories(meta->schema, schema);
  return DatasetWriter(std::unique_ptr<State>(new State{std::move(*environment),
                                                        std::move(*directory),
                                                        limits,
                                                        std::move(meta->schema),
                                                        meta->state,
                                                        std::move(*pending),
                                                        has_new_categories,
                                                        {}}));
}

const Schema& DatasetWriter::schema() const { return state_->schema; }

std::uint64_t DatasetWriter::sequences() const {
  return state_->committed.sequences + state_->pending.size();
}

std::uint64_t DatasetWriter::committed() const { return state_->committed.sequences; }
std::uint64_t DatasetWriter::pending_bytes() const { return state_->pending.bytes(); }

Result<bool> DatasetWriter::contains(std::string_view key) const { return state_->contains(key); }
Result<Ordinal> DatasetWriter::append(const Sequence& sequence) { return state_->append(sequence); }
Result<void> DatasetWriter::commit() { return state_->commit(); }

}  // namespace batchwright
