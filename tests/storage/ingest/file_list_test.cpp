#include "storage/ingest/file_list.h"

#include <doctest/doctest.h>

#include <array>

#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::array<std::string_view, 1> kWav = {".wav"};

std::vector<std::string> keys(const FileList& list) {
  std::vector<std::string> keys;
  for (const SourceFile& file : list.files) keys.push_back(file.key);
  return keys;
}

}  // namespace

TEST_CASE("storage: links to folders are followed, but not back to one above them") {
  const TemporaryFolder folder;
  write_file(folder / "elsewhere" / "2.wav", "x");
  write_file(folder / "in" / "a" / "1.wav", "x");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "in" / "b");
  std::filesystem::create_directory_symlink(folder / "in", folder / "in" / "a" / "back");
  std::filesystem::create_directory_symlink("/nowhere", folder / "in" / "gone");
  const auto list = find_files(folder / "in", kWav);
  REQUIRE_MESSAGE(list, list.error().message);
  CHECK(keys(*list) == std::vector<std::string>{"a/1", "b/2"});
  CHECK(list->loops == 1);
}

TEST_CASE("storage: files of other kinds are counted by extension") {
  const TemporaryFolder folder;
  for (const char* name : {"1.wav", "2.mp3", "3.MP3", "README", "4.WAV"}) {
    write_file(folder / "in" / name, "x");
  }
  const auto list = find_files(folder / "in", kWav);
  REQUIRE(list);
  CHECK(keys(*list) == std::vector<std::string>{"1", "4"});
  CHECK(passed_over(*list) == "1 without extension, 2 .mp3");
  std::filesystem::remove(folder / "in" / "1.wav");
  std::filesystem::remove(folder / "in" / "4.WAV");
  CHECK(
      find_files(folder / "in", kWav).error().message.find("found: 1 without extension, 2 .mp3") !=
      std::string::npos);
}
