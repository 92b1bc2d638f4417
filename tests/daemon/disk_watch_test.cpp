#include "daemon/disk_watch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("daemon: the disk of each journal and ledger is measured, again and again") {
  const TemporaryFolder folder;
  const std::string journal = (folder / "queue.journal").string();
  std::ofstream(journal) << "x";
  std::vector<DiskStats> files = {{"train", "journal", journal},
                                  {"train", "ledger", (folder / "missing" / "ledger").string()}};
  boost::asio::io_context loop;
  const DiskWatch watch(
      loop, [&files] { return files; }, std::chrono::milliseconds(1));
  while (watch.latest().empty()) loop.run_one();
  // What cannot be measured is no disk without room: it has no figure.
  REQUIRE(watch.latest().size() == 1);
  const DiskStats disk = watch.latest().front();
  CHECK(disk.feed == "train");
  CHECK(disk.file == "journal");
  CHECK(disk.path == journal);
  CHECK(disk.size_bytes == std::filesystem::space(journal).capacity);
  CHECK(disk.free_bytes <= disk.size_bytes);
  // A ledger whose disk is mounted later, and a journal that is configured no more.
  std::filesystem::create_directories(folder / "missing");
  std::ofstream(folder / "missing" / "ledger") << "x";
  files.erase(files.begin());
  while (watch.latest().empty() || watch.latest().front().file != "ledger") loop.run_one();
  files.clear();
  while (!watch.latest().empty()) loop.run_one();
}

TEST_CASE("daemon: a disk that does not answer has no figure, and others have theirs meanwhile") {
  const std::vector<DiskStats> files = {{"far", "journal", "/far"}, {"near", "ledger", "/near"}};
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  std::atomic<bool> is_silent = false;
  std::atomic<unsigned> looks = 0;
  const auto measure = [&](DiskStats& disk) {
    if (disk.feed == "far" && is_silent) answered.wait();
    disk.free_bytes = disk.feed == "near" ? ++looks : 0;
    return true;
  };
  boost::asio::io_context loop;
  const DiskWatch watch(
      loop, [&files] { return files; }, std::chrono::milliseconds(1), measure);
  while (watch.latest().size() != 2) loop.run_one();
  is_silent = true;
  while (watch.latest().size() != 1) loop.run_one();
  const unsigned before = looks;
  while (looks < before + 3) loop.run_one();
  CHECK(watch.latest().front().feed == "near");
  answer.set_value();
  while (watch.latest().size() != 2) loop.run_one();
  CHECK(watch.latest().front().feed == "far");
}
