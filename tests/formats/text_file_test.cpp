#include "formats/base/text/text_file.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using batchwright::test::TemporaryFolder;

TEST_CASE("formats: a file is read whole, whatever its length, or as far as is asked for") {
  const TemporaryFolder folder;
  for (const std::size_t length : {0U, 1U, 16'383U, 16'384U, 16'385U, 100'000U}) {
    std::string written(length, '\0');
    for (std::size_t i = 0; i < length; ++i) written[i] = static_cast<char>(i * 7);
    std::ofstream(folder / "file", std::ios::binary) << written;
    const auto whole = file_text(folder / "file");
    REQUIRE(whole);
    CHECK(*whole == written);
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, length, length + 1}) {
      CHECK(*file_text(folder / "file", most) == written.substr(0, most));
    }
  }
}

TEST_CASE("formats: a file of /proc, which tells no length, is read whole") {
  const auto maps = file_text("/proc/self/maps");
  REQUIRE(maps);
  CHECK(maps->find("[stack]") != std::string::npos);
  CHECK(maps->ends_with('\n'));
}

TEST_CASE("formats: what cannot be read is named with the reason") {
  const TemporaryFolder folder;
  const auto missing = file_text(folder / "missing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::io_error);
  CHECK(missing.error().message ==
        (folder / "missing").string() + ": cannot be read: No such file or directory");
  const auto is_folder = file_text(folder.path());
  REQUIRE_FALSE(is_folder);
  CHECK(is_folder.error().message == folder.path().string() + ": cannot be read: Is a directory");
  CHECK(file_text(folder / "missing").value_or("nothing") == "nothing");
}

TEST_CASE(
    "formats: a file that is put is whole and has its mode, and the old one stays until then") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "file";
  const std::filesystem::path fresh = folder / "file.new";
  std::ofstream(fresh) << "what another process left, which is longer";
  REQUIRE(put_file(path, "old", 0640));
  CHECK(file_text(path).value_or("") == "old");
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
        std::filesystem::perms{0640});
  const auto refused = put_file(path, "new", 0600, [&](const std::string& written) {
    CHECK(written == fresh.string());
    CHECK(file_text(written).value_or("") == "new");
    CHECK(file_text(path).value_or("") == "old");
    return Result<void>(Error{ErrorCode::busy, "not now"});
  });
  REQUIRE(!refused);
  CHECK(refused.error().message == "not now");
  CHECK(file_text(path).value_or("") == "old");
  CHECK(!std::filesystem::exists(fresh));
  REQUIRE(put_file(path, "new", 0600));
  CHECK(file_text(path).value_or("") == "new");
  CHECK(!std::filesystem::exists(fresh));
}

TEST_CASE("formats: a file is not put where there is no folder, or a folder of its name") {
  const TemporaryFolder folder;
  const auto nowhere = put_file(folder / "none" / "file", "text", 0600);
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == ErrorCode::io_error);
  CHECK(nowhere.error().message ==
        (folder / "none" / "file").string() + ": No such file or directory");
  std::filesystem::create_directory(folder / "folder");
  CHECK(!put_file(folder / "folder", "text", 0600));
  CHECK(!std::filesystem::exists(folder / "folder.new"));
  // A link in the way is replaced, and not followed.
  std::ofstream(folder / "other") << "other";
  std::filesystem::create_symlink(folder / "other", folder / "file.new");
  REQUIRE(put_file(folder / "file", "text", 0600));
  CHECK(file_text(folder / "other").value_or("") == "other");
  CHECK(file_text(folder / "file").value_or("") == "text");
}
