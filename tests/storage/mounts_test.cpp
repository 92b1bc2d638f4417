// Datasets on mounts that refuse to write, and on full ones. Each test has mounts of its own in a
// child process, which takes root.

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "storage/dataset/lmdb/file_system.h"
#include "tests/storage/child.h"
#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bool skipped(const std::string& answer) {
  if (answer == kNotAllowed) MESSAGE("skipped: a mount of one's own needs root");
  return answer == kNotAllowed;
}

/// Only this process sees `folder` read-only, as a service under ProtectSystem=strict does.
bool make_read_only_here(const std::filesystem::path& folder) {
  return has_own_mounts() &&
         mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
         mount("none", folder.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

bool mount_memory(const std::filesystem::path& folder, const char* options) {
  return has_own_mounts() && mount("none", folder.c_str(), "tmpfs", 0, options) == 0;
}

}  // namespace

TEST_CASE("storage: a mount that is read-only here alone leaves no lock, and loss is named so") {
  const TemporaryFolder folder;
  REQUIRE(make_samples(folder / "d", 0, 300));
  Child reader([&](const Child::Parent& parent) -> std::string {
    if (!make_read_only_here(folder.path())) return kNotAllowed;
    const auto dataset = Catalog().open({folder / "d"});
    if (!dataset) return dataset.error().message;
    const auto snapshot = (*dataset)->snapshot();
    if (!snapshot || !holds_samples(**snapshot, 0)) return "cannot be read";
    std::string said = std::string(name_of((*dataset)->lock())) + "; ";
    if (is_read_only_for_all(folder / "d")) said += "read-only for all; ";
    parent.ready();
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto record = (*snapshot)->record(Ordinal{i});
      if (record) return said + "handed out";
      if (record.error().code != ErrorCode::store_unavailable) return said + record.error().message;
    }
    return said + (*snapshot)->record(Ordinal{7}).error().message;
  });
  if (!reader.is_ready()) {
    const std::string said = reader.answer();
    CHECK_MESSAGE(skipped(said), said);
    return;
  }
  // Each commit takes up pages that the one before the last has freed.
  for (std::uint32_t i = 0; i < 20; ++i) {
    REQUIRE(make_samples(folder / "d", 300 + 20 * i, 320 + 20 * i));
  }
  reader.tell();
  const std::string said = reader.answer();
  CHECK(contains(said, "none; dataset " + (folder / "d").string() + " was written to while"));
}

TEST_CASE("storage: what only root may lock is read without a lock where the mount refuses it") {
  const TemporaryFolder folder;
  chmod(folder.path().c_str(), 0755);
  REQUIRE(make_samples(folder / "d", 0, 30));
  for (const char* file : {"data.mdb", "lock.mdb"}) chmod((folder / "d" / file).c_str(), 0644);
  const std::string said = answer_of([&]() -> std::string {
    if (!make_read_only_here(folder.path())) return kNotAllowed;
    if (setgid(65534) != 0 || setuid(65534) != 0) return kNotAllowed;
    const auto dataset = Catalog().open({folder / "d"});
    return dataset ? std::string(name_of((*dataset)->lock())) : dataset.error().message;
  });
  if (skipped(said)) return;
  CHECK(said == "none");
}

TEST_CASE("storage: a file system that is read-only for all needs no lock") {
  const TemporaryFolder folder;
  const std::string said = answer_of([&]() -> std::string {
    if (!mount_memory(folder.path(), "size=16m")) return kNotAllowed;
    if (const auto made = make_samples(folder / "d", 0, 30); !made) return made.error().message;
    if (mount("none", folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      return kNotAllowed;
    }
    const auto found = examine_dataset({folder / "d"});
    if (!found) return found.error().message;
    return std::string(name_of(found->lock)) + "; " + found->warning;
  });
  if (skipped(said)) return;
  CHECK(said == "read-only; ");
}

TEST_CASE(
    "storage: a full disk is named with the room that is left, and counts what is committed") {
  const TemporaryFolder folder;
  const std::string said = answer_of([&]() -> std::string {
    if (!mount_memory(folder.path(), "size=1m")) return kNotAllowed;
    auto writer = DatasetWriter::open(folder / "d", mixed_schema(), {64 << 10});
    if (!writer) return writer.error().message;
    for (std::uint32_t n = 0;; ++n) {
      const auto added = writer->append(Sample(n).sequence());
      if (added) continue;
      const std::uint64_t committed = writer->committed();
      const auto snapshot = snapshot_of({folder / "d"});
      const bool right = snapshot && (*snapshot)->sequences() == committed && committed > 0 &&
                         committed < n && holds_samples(**snapshot, 0);
      return (right ? "right; " : "wrong; ") + added.error().message;
    }
  });
  if (skipped(said)) return;
  CHECK(contains(said, "right; dataset " + (folder / "d").string() + ": "));
  CHECK(contains(said, ": No space left on device: "));
  CHECK(contains(said, " bytes are left"));
}
