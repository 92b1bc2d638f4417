#include "storage/ingest/file_list.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "tests/storage/ingest/sounds.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 1> kWav = {".wav"};

std::vector<std::string> keys(const FileList& list) {
  std::vector<std::string> keys;
  for (const SourceFile& file : list.files) keys.push_back(file.key);
  return keys;
}

}  // namespace

TEST_CASE("storage: links to folders are followed, and a folder is read once") {
  const TemporaryFolder folder;
  write_file(folder / "elsewhere" / "2.wav", "x");
  write_file(folder / "in" / "a" / "1.wav", "x");
  fs::create_directory_symlink(folder / "elsewhere", folder / "in" / "b");
  fs::create_directory_symlink(folder / "in", folder / "in" / "a" / "back");
  fs::create_directory_symlink(folder / "elsewhere", folder / "in" / "a" / "z");
  fs::create_directory_symlink(folder / "in" / "a", folder / "in" / "0");
  const auto list = find_files(folder / "in", kWav);
  REQUIRE_MESSAGE(list, list.error().message);
  // "a" is where it really lies, though "0" sorts before it; "elsewhere" lies nowhere below.
  CHECK(keys(*list) == std::vector<std::string>{"a/1", "a/z/2"});
  CHECK(list->folders_again == 3);
  CHECK(left_out(*list) == "3 paths to folders that are read by another one (the first: " +
                               (folder / "in" / "0").string() + ")");
}

TEST_CASE("storage: links in a ring, and into themselves, end") {
  const TemporaryFolder folder;
  write_file(folder / "x" / "1.wav", "x");
  write_file(folder / "y" / "2.wav", "x");
  fs::create_directory_symlink(folder / "y", folder / "x" / "to_y");
  fs::create_directory_symlink(folder / "x", folder / "y" / "to_x");
  fs::create_directories(folder / "in");
  fs::create_directory_symlink(folder / "x", folder / "in" / "first");
  fs::create_directory_symlink(folder / "y", folder / "in" / "second");
  fs::create_symlink("itself.wav", folder / "in" / "itself.wav");
  const auto list = find_files(folder / "in", kWav);
  REQUIRE_MESSAGE(list, list.error().message);
  CHECK(keys(*list) == std::vector<std::string>{"first/1", "first/to_y/2", "itself"});
  CHECK(list->folders_again == 2);
  CHECK(list->files[2].unusable == "a link that leads nowhere (to itself.wav)");
}

TEST_CASE("storage: a file counts under each of its names, as in folders of links to blobs") {
  const TemporaryFolder folder;
  write_file(folder / "blobs" / "f00", "x");
  fs::create_directories(folder / "in" / "train");
  for (const char* name : {"a.wav", "b.wav", "train/c.wav"}) {
    fs::create_symlink(folder / "blobs" / "f00", folder / "in" / name);
  }
  const auto list = find_files(folder / "in", kWav);
  REQUIRE(list);
  CHECK(keys(*list) == std::vector<std::string>{"a", "b", "train/c"});
  CHECK(list->files[0].unusable.empty());
  CHECK(left_out(*list).empty());
}

TEST_CASE("storage: links that lead nowhere are errors of their files, or are told") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  fs::create_symlink("/nowhere/b.wav", folder / "in" / "b.wav");
  fs::create_symlink("/nowhere", folder / "in" / "speakers");
  mkfifo((folder / "in" / "pipe.wav").c_str(), 0600);
  const auto list = find_files(folder / "in", kWav);
  REQUIRE_MESSAGE(list, list.error().message);
  CHECK(keys(*list) == std::vector<std::string>{"b", "pipe"});
  CHECK(list->files[0].unusable == "a link that leads nowhere (to /nowhere/b.wav)");
  CHECK(list->files[1].unusable == "not a regular file");
  CHECK(left_out(*list) ==
        "1 links that lead nowhere (" + (folder / "in" / "speakers").string() + ")");
}

TEST_CASE("storage: names that begin with a dot are left out and counted") {
  const TemporaryFolder folder;
  for (const char* name : {"._a.wav", ".cache/b.wav", ".git/x/c.wav", "a.wav", "d/.e.wav"}) {
    write_file(folder / ".in" / name, "x");
  }
  const auto list = find_files(folder / ".in", kWav);
  REQUIRE(list);
  CHECK(keys(*list) == std::vector<std::string>{"a"});
  CHECK(left_out(*list) == "4 whose names begin with a dot");
  fs::remove(folder / ".in" / "a.wav");
  CHECK(find_files(folder / ".in", kWav)
            .error()
            .message.ends_with("no .wav file below it; left out: 4 whose names begin with a dot"));
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
