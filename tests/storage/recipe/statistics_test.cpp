// The file of sums for CMVN: what is damaged, and how it is replaced.

#include "storage/features/recipe/sources/statistics.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/storage/ingest/samples.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

CmvnStatistics sums_of(float value) {
  CmvnStatistics statistics;
  statistics.made_by = "like = kaldi\nmel_bands = 2\n";
  statistics.all = CmvnSums(2);
  const std::vector<float> frames = {value, 0.25F, 1.5F, -value};
  statistics.all.add(frames);
  statistics.speakers.emplace("7", statistics.all);
  return statistics;
}

}  // namespace

TEST_CASE("recipe: no flipped bit and no cut of statistics is taken for sums") {
  const TemporaryFolder folder;
  const auto path = folder / "cmvn";
  REQUIRE(write_statistics(path, sums_of(3)));
  const std::string whole = read_bytes(path);
  const auto refusal = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const auto read = read_statistics(path);
    return read ? "" : read.error().message;
  };
  CHECK(refusal(whole).empty());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      CAPTURE(at);
      CAPTURE(bit);
      CHECK(refusal(flipped).starts_with(path.string()));
    }
    CHECK(refusal(whole.substr(0, at)).starts_with(path.string()));
  }
  std::string other = whole;
  other[other.size() - 3] ^= 1;
  CHECK(refusal(other).find(":2: damaged: its checksum is ") != std::string::npos);
}

TEST_CASE("recipe: statistics without a checksum, as they were written before, are read") {
  const TemporaryFolder folder;
  const auto path = folder / "cmvn";
  REQUIRE(write_statistics(path, sums_of(3)));
  std::string text = read_bytes(path);
  const auto line = text.find("crc32c ");
  REQUIRE(line != std::string::npos);
  text.erase(line, text.find('\n', line) + 1 - line);
  std::ofstream(path, std::ios::binary) << text;
  const auto read = read_statistics(path);
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(content_of(*read) == content_of(sums_of(3)));
  CHECK(read->made_by == sums_of(3).made_by);
}

TEST_CASE("recipe: a reader of statistics that are being written has the old ones whole") {
  const TemporaryFolder folder;
  const auto path = folder / "cmvn";
  REQUIRE(write_statistics(path, sums_of(3)));
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  std::filesystem::create_symlink("cmvn", folder / "link");
  const std::string before = read_bytes(path);
  std::ifstream opened(path, std::ios::binary);
  REQUIRE(write_statistics(folder / "link", sums_of(4)));
  CHECK(std::string(std::istreambuf_iterator<char>(opened), {}) == before);
  CHECK(read_bytes(path) != before);
  // The link is one still, the rights are as they were, and nothing is left over.
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms(0640));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("recipe: statistics that cannot be written leave what is there, and say why") {
  const TemporaryFolder folder;
  const auto written = write_statistics(folder / "none" / "cmvn", sums_of(3));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::io_error);
  CHECK(written.error().message.find("cannot be written: open: No such file") != std::string::npos);
  // What is no file cannot be replaced.
  CHECK(write_statistics("/dev/null", sums_of(3)));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}
