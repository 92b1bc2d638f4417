#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/formats.h"
#include "tests/integration/daemon_process.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Kind = JournalRecord::Kind;

/// Batch 0 is done, 1 is out, 2 was given back undone, 3 is set aside.
std::vector<JournalRecord> some_journal() {
  return {{0, Kind::plan, 1, 2, 3},  {0, Kind::epoch, 1, 7, 0},    {0, Kind::given, 1, 0, 9},
          {0, Kind::given, 2, 1, 9}, {0, Kind::given, 3, 2, 9},    {0, Kind::given, 4, 3, 9},
          {0, Kind::done, 1, 0, 9},  {0, Kind::returned, 3, 2, 9}, {0, Kind::done, 4, 1, 9}};
}

void write_journal(const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  for (const JournalRecord& record : some_journal()) {
    const JournalRecord sealed = record.sealed();
    file.write(reinterpret_cast<const char*>(sealed.bytes().data()), sizeof sealed);
  }
}

void flip(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 4));
}

Finished journal(const std::vector<std::string>& words) {
  std::vector<std::string> all = {program("batchwright"), "journal"};
  all.insert(all.end(), words.begin(), words.end());
  return run(all);
}

}  // namespace

TEST_CASE("command: journal shows what is done, out, undone and set aside") {
  const TemporaryFolder folder;
  const std::string path = (folder / "j").string();
  write_journal(path);
  const Finished text = journal({path});
  CHECK(text.code == 0);
  CHECK(text.out.find("2 done, 1 out, given 4 times") != std::string::npos);
  const Finished shown = journal({path, "--json"});
  CHECK(shown.code == 0);
  const auto all = boost::json::parse(shown.out);
  CHECK(all.at("sound").as_bool());
  CHECK(all.at("epoch") == 7);
  CHECK(all.at("done") == 2);
  CHECK(all.at("returned") == 1);
  CHECK(all.at("out").at(0).at("batch") == 1);
  CHECK(all.at("undone").at(0).at("batch") == 2);
  CHECK(all.at("set_aside").at(0) == 3);
}

TEST_CASE("command: journal names damage, and writes what is sound to another file") {
  const TemporaryFolder folder;
  const std::string path = (folder / "j").string();
  const std::string mended = (folder / "mended").string();
  write_journal(path);
  flip(path, 6 * 32 + 8);  // that batch 0 is done
  const Finished damaged = journal({path});
  CHECK(damaged.code == 1);
  CHECK(damaged.err.find("from byte 192 on 1 of its records is not sound") != std::string::npos);
  CHECK(journal({path, "--salvage", mended}).code == 0);
  const auto all = boost::json::parse(journal({mended, "--json"}).out);
  CHECK(all.at("sound").as_bool());
  CHECK(all.at("done") == 1);
  CHECK(all.at("out").as_array().size() == 2);
  const Finished twice = journal({path, "--salvage", mended});
  CHECK(twice.code == 1);
  CHECK(twice.err.find("File exists") != std::string::npos);
}

TEST_CASE("command: journal salvages nothing that has no epoch, and says so") {
  const TemporaryFolder folder;
  const std::string path = (folder / "j").string();
  write_journal(path);
  flip(path, 32 + 8);
  const Finished refused = journal({path, "--salvage", (folder / "mended").string()});
  CHECK(refused.code == 1);
  CHECK(refused.err.find("nothing can be salvaged") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "mended"));
  CHECK(journal({(folder / "nowhere").string()}).code != 0);
  std::ofstream(folder / "empty").close();
  CHECK(journal({(folder / "empty").string()}).err.find("is empty") != std::string::npos);
}
