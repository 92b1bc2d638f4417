#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using batchwright::test::TemporaryFolder;

namespace {

using Kind = FileLock::Kind;

/// Whether another object gets the lock, as another process would.
bool is_free(const std::filesystem::path& file, Kind kind) {
  const auto lock = FileLock::take(file, kind);
  REQUIRE(lock);
  return lock->has_value();
}

}  // namespace

TEST_CASE("formats: an exclusive lock keeps all others out, and goes with its owner") {
  const TemporaryFolder folder;
  {
    const auto lock = FileLock::take(folder / "lock", Kind::exclusive);
    REQUIRE(lock);
    REQUIRE(lock->has_value());
    CHECK_FALSE(is_free(folder / "lock", Kind::exclusive));
    CHECK_FALSE(is_free(folder / "lock", Kind::shared));
  }
  CHECK(is_free(folder / "lock", Kind::exclusive));
}

TEST_CASE("formats: shared locks go together") {
  const TemporaryFolder folder;
  const auto one = FileLock::take(folder / "lock", Kind::shared);
  REQUIRE(one);
  CHECK(is_free(folder / "lock", Kind::shared));
  CHECK_FALSE(is_free(folder / "lock", Kind::exclusive));
}

TEST_CASE("formats: a lock knows that its file is gone, and leaves another's in its place") {
  const TemporaryFolder folder;
  const auto lock = FileLock::take(folder / "lock", Kind::exclusive);
  REQUIRE(lock);
  CHECK((*lock)->is_there());
  std::filesystem::rename(folder / "lock", folder / "elsewhere");
  CHECK_FALSE((*lock)->is_there());
  std::ofstream(folder / "lock") << "another";
  CHECK_FALSE((*lock)->is_there());
  (*lock)->remove();
  CHECK(std::filesystem::exists(folder / "lock"));
}

TEST_CASE("formats: a lock's file says what it is told, and is its user's alone") {
  const TemporaryFolder folder;
  const auto lock = FileLock::take(folder / "lock", Kind::exclusive);
  REQUIRE(lock);
  REQUIRE((*lock)->write("a long text"));
  REQUIRE((*lock)->write("short"));
  CHECK(file_text(folder / "lock").value_or("") == "short");
  struct stat status = {};
  REQUIRE(::stat((folder / "lock").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600U);
}

TEST_CASE("formats: a lock in no folder, through a link, or on a folder is an error") {
  const TemporaryFolder folder;
  const auto nowhere = FileLock::take(folder / "none" / "lock", Kind::shared);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::not_found);
  std::filesystem::create_symlink("elsewhere", folder / "link");
  const auto link = FileLock::take(folder / "link", Kind::shared);
  REQUIRE_FALSE(link);
  CHECK(link.error().message.find("link: open: ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "elsewhere"));
  CHECK_FALSE(FileLock::take(folder.path(), Kind::shared));
}
