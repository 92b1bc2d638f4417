// What is known of a dataset's lock, and what is said where there is none.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>
#include <thread>

#include "tests/storage/child.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

Result<std::shared_ptr<Dataset>> open_dataset(const std::filesystem::path& path, Locking locking) {
  return Catalog().open({path}, VerifyRecords::once, locking);
}

/// Commits from another process, since one process has an environment open once.
std::string commit_elsewhere(const std::filesystem::path& path, std::uint32_t from,
                             std::uint32_t to) {
  return answer_of([&] {
    const auto made = make_samples(path, from, to);
    return made ? "done" : made.error().message;
  });
}

/// What opening says to a user that may read the files and not write them; `skipped` where this
/// process cannot become one.
std::string opened_by_another_user(const std::filesystem::path& path, Locking locking) {
  return answer_of([&]() -> std::string {
    if (setgid(65534) != 0 || setuid(65534) != 0) return kNotAllowed;
    const auto dataset = open_dataset(path, locking);
    if (!dataset) return dataset.error().message;
    const auto snapshot = (*dataset)->snapshot();
    if (!snapshot) return snapshot.error().message;
    return std::string(name_of((*dataset)->lock())) + ", " +
           (holds_samples(**snapshot, 0) ? "whole" : "broken");
  });
}

}  // namespace

TEST_CASE("storage: a dataset that can be locked is, and is examined in one call") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 30));
  const auto found = examine_dataset({folder / "d"});
  REQUIRE(found);
  CHECK(found->lock == MapLock::slot);
  CHECK(found->sequences == 30);
  CHECK(found->warning == "");
  CHECK(examine_dataset({folder / "nothing"}).error().code == ErrorCode::store_unavailable);
  REQUIRE(make_samples(folder / "empty", 0, 0));
  CHECK(contains(examine_dataset({folder / "empty"})->warning, "has no sequences"));
}

TEST_CASE("storage: a snapshot without a lock is whole until a second commit, and then says why") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 300));
  const auto dataset = open_dataset(folder / "d", Locking::off);
  REQUIRE(dataset);
  CHECK((*dataset)->lock() == MapLock::none);
  CHECK(contains(lock_warning(**dataset), (folder / "d").string() + " is read without a lock"));
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  REQUIRE(commit_elsewhere(folder / "d", 300, 320) == "done");
  CHECK(holds_samples(**snapshot, 0));
  CHECK((*snapshot)->check_unchanged());
  REQUIRE(commit_elsewhere(folder / "d", 320, 340) == "done");
  REQUIRE(commit_elsewhere(folder / "d", 340, 360) == "done");
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto record = (*snapshot)->record(Ordinal{i});
    REQUIRE_FALSE(record);
    CHECK(record.error().code == ErrorCode::store_unavailable);
    CHECK(contains(record.error().message, "was written to while this process reads it without"));
  }
  CHECK((*snapshot)->check_unchanged().error().code == ErrorCode::store_unavailable);
  const auto next = (*dataset)->snapshot();
  REQUIRE(next);
  CHECK((*next)->sequences() == 360);
  CHECK(holds_samples(**next, 0));
}

TEST_CASE("storage: with a lock no number of commits changes a snapshot") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 300));
  const auto snapshot = snapshot_of({folder / "d"});
  REQUIRE(snapshot);
  for (std::uint32_t i = 0; i < 5; ++i) {
    REQUIRE(commit_elsewhere(folder / "d", 300 + 20 * i, 320 + 20 * i) == "done");
  }
  CHECK((*snapshot)->check_unchanged());
  CHECK(holds_samples(**snapshot, 0));
}

TEST_CASE("storage: verify without a lock does not take what was written over for damage") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 3000));
  std::uint32_t next = 3000;
  const auto report = verify_dataset(
      {folder / "d"},
      [&](std::uint64_t, std::uint64_t) {
        commit_elsewhere(folder / "d", next, next + 10);
        next += 10;
      },
      Locking::off);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::store_unavailable);
  CHECK(contains(report.error().message, "was written to"));
}

TEST_CASE("storage: one that reads without a lock keeps no other from having one, and is told") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 30));
  auto without = open_dataset(folder / "d", Locking::off);
  REQUIRE(without);
  auto snapshot = (*without)->snapshot();
  REQUIRE(snapshot);
  const auto refused = open_dataset(folder / "d", Locking::on);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::busy);
  snapshot->reset();
  const auto with = open_dataset(folder / "d", Locking::on);
  REQUIRE(with);
  CHECK((*with)->lock() == MapLock::slot);
}

TEST_CASE("storage: a user that may read and not lock is told which file, and what helps") {
  const TemporaryFolder folder;
  chmod(folder.path().c_str(), 0755);
  REQUIRE(make_samples(folder / "d", 0, 30));
  for (const char* file : {"data.mdb", "lock.mdb"}) chmod((folder / "d" / file).c_str(), 0644);
  const std::string said = opened_by_another_user(folder / "d", Locking::on);
  if (said == kNotAllowed) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  CHECK(contains(said, "lock.mdb: Permission denied (uid 65534, gid 65534; mode 0644, owner 0:0)"));
  CHECK(contains(said, "lock = false"));
  CHECK(opened_by_another_user(folder / "d", Locking::permitted) == "none, whole");
  CHECK(opened_by_another_user(folder / "d", Locking::off) == "none, whole");
  chmod((folder / "d" / "data.mdb").c_str(), 0600);
  CHECK(contains(opened_by_another_user(folder / "d", Locking::permitted),
                 "data.mdb: Permission denied"));
  chmod((folder / "d" / "data.mdb").c_str(), 0666);
  chmod((folder / "d" / "lock.mdb").c_str(), 0666);
  CHECK(opened_by_another_user(folder / "d", Locking::on) == "slot, whole");
}

TEST_CASE("storage: a reader of the same number in another PID namespace is told from a fault") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 30));
  // The first process of a namespace has number 1 there; the two are not told of each other.
  const auto as_process_one = [&folder](const std::function<std::string()>& then) {
    return [&folder, then]() -> std::string {
      if (unshare(CLONE_NEWPID) != 0) return kNotAllowed;
      return answer_of([&]() -> std::string {
        const auto snapshot = snapshot_of({folder / "d"});
        return snapshot ? then() : snapshot.error().message;
      });
    };
  };
  Child first([&](const Child::Parent& parent) {
    return as_process_one([&parent]() -> std::string {
      parent.ready();
      return "read";
    })();
  });
  if (!first.is_ready()) {
    const std::string said = first.answer();
    CHECK_MESSAGE(said == kNotAllowed, said);
    MESSAGE("skipped: PID namespaces need root");
    return;
  }
  const std::string said = answer_of(as_process_one([]() -> std::string { return "read"; }));
  CHECK(contains(said, "has the same process number, 1, in another PID namespace"));
}

TEST_CASE("storage: a dataset that cannot be opened yet keeps no other from being opened") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "far", 0, 30));
  REQUIRE(make_samples(folder / "near", 0, 30));
  // LMDB waits for the holder of the first byte of lock.mdb.
  Child holder([&](const Child::Parent& parent) -> std::string {
    const Descriptor file(::open((folder / "far" / "lock.mdb").c_str(), O_RDWR));
    struct flock first_byte {};
    first_byte.l_type = F_WRLCK;
    first_byte.l_whence = SEEK_SET;
    first_byte.l_len = 1;
    if (::fcntl(file.get(), F_SETLK, &first_byte) != 0) return "not locked";
    parent.ready();
    return "";
  });
  REQUIRE(holder.is_ready());
  std::optional<Result<std::shared_ptr<Dataset>>> far;
  std::jthread opens([&] { far.emplace(open_dataset(folder / "far", Locking::on)); });
  const auto waits = [] {
    const std::string locks = file_text("/proc/locks").value_or("");
    for (const std::string_view line : split_lines(locks)) {
      if (contains(line, "->") && contains(line, fmt::format(" {} ", getpid()))) return true;
    }
    return false;
  };
  while (!waits()) std::this_thread::yield();
  CHECK(open_dataset(folder / "near", Locking::on));
  CHECK(waits());
  holder.tell();
  opens.join();
  CHECK((far && *far));
}
