#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "daemon/delivery/feed/queue/journal.h"
#include "daemon/delivery/feed/queue/record_writer.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr Fingerprint kPlan{11, 22, 33};

/// No file of this process grows beyond so many bytes: a write gets there in part, and the next one
/// fails, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_{};
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("delivery: a journal or ledger without room for more is refused when it is opened") {
  const TemporaryFolder folder;
  const std::string path = (folder / "kept").string();
  WorkQueue queue;
  {
    REQUIRE(Ledger::open(path + ".ledger", "train"));
    REQUIRE(QueueJournal::open(path, kPlan, false, queue));
  }
  const auto size = std::filesystem::file_size(path);
  {
    const FileLimit limit(32 * 1024);
    const auto ledger = Ledger::open(path + ".ledger", "train");
    REQUIRE_FALSE(ledger);
    CHECK(ledger.error().code == ErrorCode::io_error);
    CHECK(ledger.error().message.find(path + ".ledger: write: File too large") !=
          std::string::npos);
    CHECK(QueueJournal::open(path, kPlan, false, queue).error().code == ErrorCode::io_error);
  }
  // Asking changes nothing.
  CHECK(std::filesystem::file_size(path) == size);
  REQUIRE(QueueJournal::open(path, kPlan, false, queue));
  CHECK(std::filesystem::file_size(path) == size);
}

TEST_CASE("delivery: a ledger that has no room says so, and goes on behind the part of a line") {
  const TemporaryFolder folder;
  const std::string path = (folder / "ledger").string();
  {
    const auto ledger = Ledger::open(path, "train");
    REQUIRE(ledger);
    const FileLimit limit(10);
    errno = EAGAIN;
    const auto written = (*ledger)->ended({}, {7}, "released");
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::io_error);
    CHECK(written.error().message ==
          "ledger " + path +
              ": write: File too large (a file may have 10 bytes: ulimit -f, LimitFSIZE=)");
  }
  CHECK(content(path) == "{\"event\":\"");
  const auto again = Ledger::open(path, "train");
  REQUIRE(again);
  CHECK(content(path) == "{\"event\":\"\n");
}

TEST_CASE("delivery: a line of the ledger is JSON whatever the feed's name holds") {
  const TemporaryFolder folder;
  const std::string path = (folder / "ledger").string();
  const auto ledger = Ledger::open(path, "a\"b\n");
  REQUIRE(ledger);
  ClientInfo client;
  client.token = 0xAB;
  client.pid = 12;
  REQUIRE((*ledger)->ended(client, {7}, "done"));
  CHECK(content(path) ==
        R"({"event":"done","feed":"a\"b\n","client":"00000000000000ab","pid":12,"lease":7})"
        "\n");
}

TEST_CASE("delivery: a journal of many records is read to its end") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  constexpr std::uint64_t kRecords = 70'000;  // more than twice what is read at once
  {
    WorkQueue queue;
    const auto journal = QueueJournal::open(path, kPlan, false, queue);
    REQUIRE(journal);
    for (std::uint64_t i = 0; i < kRecords / 2; ++i) {
      REQUIRE((*journal)->given({i + 1}, BatchIndex{i}, QueueOwner{1}));
      REQUIRE((*journal)->done({i + 1}, QueueOwner{1}));
    }
  }
  std::ofstream(path, std::ios::app) << "half a record";
  WorkQueue queue;
  const auto journal = QueueJournal::open(path, kPlan, false, queue);
  REQUIRE(journal);
  CHECK(queue.done_count() == kRecords / 2);
  CHECK((*journal)->next_lease() == LeaseNumber{kRecords / 2 + 1});
  CHECK(std::filesystem::file_size(path) == (2 + kRecords) * 32);
}

TEST_CASE("delivery: a journal that begins epoch after epoch is never another daemon's") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  WorkQueue queue;
  const auto journal = QueueJournal::open(path, kPlan, false, queue, [](int) { return 0; });
  REQUIRE(journal);
  std::atomic<bool> over{false};
  std::thread epochs([&] {
    for (std::uint64_t epoch = 1; !over; ++epoch) {
      auto begun = (*journal)->beginning(Epoch{epoch}, kPlan)();
      REQUIRE(begun);
      (*journal)->take_up(std::move(*begun));
    }
  });
  int opened = 0;
  for (int i = 0; i < 20'000; ++i) opened += KeptFile::open_locked("journal", path) ? 1 : 0;
  over = true;
  epochs.join();
  CHECK(opened == 0);
}

TEST_CASE("delivery: a new journal file that another daemon has locked is not emptied") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  WorkQueue queue;
  const auto journal = QueueJournal::open(path, kPlan, false, queue);
  REQUIRE(journal);
  const auto other = KeptFile::open_locked("journal", path + ".new");
  REQUIRE(other);
  REQUIRE((*other)->write(std::as_bytes(std::span("abc", 3))));
  const auto begun = (*journal)->beginning(Epoch{1}, kPlan)();
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::busy);
  CHECK(content(path + ".new") == "abc");
}

TEST_CASE("delivery: a journal is named by its path, though its file was begun beside it") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  WorkQueue queue;
  const auto journal = QueueJournal::open(path, kPlan, false, queue);
  REQUIRE(journal);
  const FileLimit limit(std::filesystem::file_size(path));
  const auto full = (*journal)->given({1}, BatchIndex{0}, QueueOwner{1});
  REQUIRE_FALSE(full);
  CHECK(full.error().message.starts_with("journal " + path + ": write: "));
}
