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
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr Fingerprint kPlan{11, 22, 33};
constexpr QueueOwner kFirstOwner{1};
constexpr QueueOwner kSecondOwner{2};

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

/// A journal whose records are written at once.
class JournalFile {
 public:
  JournalFile(const std::filesystem::path& path, const Fingerprint& plan, WorkQueue& queue) {
    auto opened = open_journal(path.string(), plan, false, queue);
    REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    journal_ = std::move(*opened);
  }

  const JournalState& state() const { return journal_.state; }
  Result<void> append(const JournalRecord& record) {
    const JournalRecord sealed = record.sealed();
    return journal_.file->write(sealed.bytes());
  }
  void given(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
    REQUIRE(append({0, JournalRecord::Kind::given, lease.value, index.value, owner.value}));
  }
  void done(LeaseNumber lease, QueueOwner owner, std::uint64_t how = 0) {
    REQUIRE(append({0, JournalRecord::Kind::done, lease.value, how, owner.value}));
  }
  void returned(LeaseNumber lease, BatchIndex index, QueueOwner owner) {
    REQUIRE(append({0, JournalRecord::Kind::returned, lease.value, index.value, owner.value}));
  }
  void begin(const BeginJournal& epoch, const Sync& sync = {}) {
    auto begun = begin_journal(journal_.file->path(), epoch, sync);
    REQUIRE(begun);
    journal_.file = std::move(*begun);
  }

 private:
  OpenedJournal journal_;
};

JournalFile open(const std::filesystem::path& path, WorkQueue& queue) {
  return {path, kPlan, queue};
}

std::string refusal(const std::filesystem::path& path, const Fingerprint& plan,
                    bool data_may_grow = false) {
  WorkQueue queue;
  const auto journal = open_journal(path.string(), plan, data_may_grow, queue);
  return journal ? "" : journal.error().message;
}

}  // namespace

TEST_CASE("delivery: a journal or ledger without room for more is refused when it is opened") {
  const TemporaryFolder folder;
  const std::string path = (folder / "kept").string();
  WorkQueue queue;
  {
    REQUIRE(open_ledger(path + ".ledger"));
    REQUIRE(open_journal(path, kPlan, false, queue));
  }
  const auto size = std::filesystem::file_size(path);
  {
    const FileLimit limit(32 * 1024);
    const auto ledger = open_ledger(path + ".ledger");
    REQUIRE_FALSE(ledger);
    CHECK(ledger.error().code == ErrorCode::io_error);
    CHECK(ledger.error().message.find(path + ".ledger: write: File too large") !=
          std::string::npos);
    CHECK(open_journal(path, kPlan, false, queue).error().code == ErrorCode::io_error);
  }
  // Asking changes nothing.
  CHECK(std::filesystem::file_size(path) == size);
  REQUIRE(open_journal(path, kPlan, false, queue));
  CHECK(std::filesystem::file_size(path) == size);
}

TEST_CASE("delivery: a ledger that has no room says so, and goes on after the part of a line") {
  const TemporaryFolder folder;
  const std::string path = (folder / "ledger").string();
  {
    const auto ledger = open_ledger(path);
    REQUIRE(ledger);
    const FileLimit limit(10);
    errno = EAGAIN;
    const std::string line = R"({"event":"released"})";
    const auto written = (*ledger)->write(std::as_bytes(std::span(line)));
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::io_error);
    CHECK(written.error().message ==
          "ledger " + path +
              ": write: File too large (a file may have 10 bytes: ulimit -f, LimitFSIZE=)");
  }
  CHECK(content(path) == "{\"event\":\"");
  const auto again = open_ledger(path);
  REQUIRE(again);
  CHECK(content(path) == "{\"event\":\"\n");
}

TEST_CASE("delivery: a journal of many records is read to its end") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  constexpr std::uint64_t kRecords = 70'000;  // more than twice what is read at once
  {
    WorkQueue queue;
    JournalFile journal(path, kPlan, queue);
    for (std::uint64_t i = 0; i < kRecords / 2; ++i) {
      journal.given({i + 1}, BatchIndex{i}, QueueOwner{1});
      journal.done({i + 1}, QueueOwner{1});
    }
  }
  std::ofstream(path, std::ios::app) << "half a record";
  WorkQueue queue;
  const auto journal = open_journal(path, kPlan, false, queue);
  REQUIRE(journal);
  CHECK(queue.done_count() == kRecords / 2);
  CHECK(journal->state.next_lease == LeaseNumber{kRecords / 2 + 1});
  CHECK(std::filesystem::file_size(path) == (2 + kRecords) * 32);
}

TEST_CASE("delivery: a journal that begins epoch after epoch is never another daemon's") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  WorkQueue queue;
  JournalFile journal(path, kPlan, queue);
  std::atomic<bool> over{false};
  std::thread epochs([&] {
    for (std::uint64_t epoch = 1; !over; ++epoch) {
      journal.begin({Epoch{epoch}, kPlan, {1}}, [](int) { return 0; });
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
  const auto journal = open_journal(path, kPlan, false, queue);
  REQUIRE(journal);
  const auto other = KeptFile::open_locked("journal", path + ".new");
  REQUIRE(other);
  REQUIRE((*other)->write(std::as_bytes(std::span("abc", 3))));
  const auto begun = begin_journal(path, {Epoch{1}, kPlan, {1}});
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::busy);
  CHECK(content(path + ".new") == "abc");
}

TEST_CASE("delivery: a journal is named by its path, though its file was begun beside it") {
  const TemporaryFolder folder;
  const std::string path = (folder / "journal").string();
  WorkQueue queue;
  JournalFile journal(path, kPlan, queue);
  const FileLimit limit(std::filesystem::file_size(path));
  const auto full = journal.append({0, JournalRecord::Kind::given, 1, 0, 1});
  REQUIRE_FALSE(full);
  CHECK(full.error().message.starts_with("journal " + path + ": write: "));
}

TEST_CASE("delivery: a journal gives back the queue it was told of") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    journal.given({7}, BatchIndex{0}, kFirstOwner);
    journal.given({8}, BatchIndex{1}, kSecondOwner);
    journal.given({9}, BatchIndex{2}, kSecondOwner);
    journal.done({8}, kSecondOwner);
    journal.given({10}, BatchIndex{0}, kSecondOwner);  // it had come back
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(journal.state().next_lease == LeaseNumber{11});
  CHECK(queue.epoch() == Epoch{0});
  CHECK(queue.done_count() == 1);
  CHECK(queue.out().size() == 2);
  CHECK(queue.out().at({9}).kept_until);
  CHECK(queue.out().at({10}).index == BatchIndex{0});
  CHECK(queue.ahead(0, 5)->value == 3);
}

TEST_CASE("delivery: a journal goes on from epoch to epoch, and lease numbers with it") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    journal.given({1}, BatchIndex{0}, kFirstOwner);
    journal.begin({Epoch{1}, kPlan, {2}});
    journal.given({2}, BatchIndex{0}, kFirstOwner);
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(queue.epoch() == Epoch{1});
  CHECK(queue.out().size() == 1);
  CHECK(journal.state().next_lease == LeaseNumber{3});
}

TEST_CASE("delivery: a journal tells what was given up and what was set aside") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    journal.given({1}, BatchIndex{0}, kFirstOwner);
    journal.given({2}, BatchIndex{1}, kFirstOwner);
    journal.returned({1}, BatchIndex{0}, kFirstOwner);
    journal.done({2}, kFirstOwner, JournalRecord::kSetAside);
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(queue.out().empty());
  CHECK(queue.done_count() == 1);
  CHECK(queue.attempt(BatchIndex{0}) == 2);
  CHECK(queue.gave_up(kFirstOwner, BatchIndex{0}));
  CHECK(queue.undone().at(1).set_aside);
}

TEST_CASE("delivery: a journal that was cut anywhere after its epoch holds what came before") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < 5; ++i) journal.given({i + 1}, BatchIndex{i}, kFirstOwner);
  }
  const auto size = std::filesystem::file_size(folder / "j");
  for (std::uintmax_t at = 64; at < size; at += 7) {
    std::filesystem::copy_file(folder / "j", folder / "cut",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut", at);
    WorkQueue queue;
    auto journal = open(folder / "cut", queue);
    CHECK(queue.out().size() == (at - 64) / 32);
    CHECK(journal.state().lost_records == 0);
    journal.given({100}, BatchIndex{queue.out().size()}, kSecondOwner);
  }
}

TEST_CASE("delivery: a journal that is damaged is refused, and stays as it is") {
  const TemporaryFolder folder;
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < 6; ++i) {
      journal.given({i + 1}, BatchIndex{i}, kFirstOwner);
      journal.done({i + 1}, kFirstOwner);
    }
  }
  const auto flip = [&folder](std::streamoff at) {
    std::fstream file(folder / "j", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  };
  const auto size = std::filesystem::file_size(folder / "j");
  for (std::streamoff record = 0; record < static_cast<std::streamoff>(size / 32) - 1; ++record) {
    flip(record * 32 + 9);
    CHECK(refusal(folder / "j", kPlan).find("damaged") != std::string::npos);
    CHECK(std::filesystem::file_size(folder / "j") == size);
    flip(record * 32 + 9);
  }
  CHECK(refusal(folder / "j", kPlan).empty());
  for (const std::uintmax_t cut : {63U, 32U, 31U, 1U}) {
    std::filesystem::resize_file(folder / "j", cut);
    CHECK(refusal(folder / "j", kPlan) != "");
    CHECK(std::filesystem::file_size(folder / "j") == cut);
  }
}

TEST_CASE("delivery: what a power cut took of a journal is given again, and counted") {
  const TemporaryFolder folder;
  constexpr std::uint64_t kBatches = 254;  // two pages, with plan and epoch
  {
    WorkQueue queue;
    auto journal = open(folder / "j", queue);
    for (std::uint64_t i = 0; i < kBatches; ++i) {
      journal.given({i + 1}, BatchIndex{i}, kFirstOwner);
    }
  }
  {
    std::fstream file(folder / "j", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096 - 320);
    const std::string zeros(320, 0);
    file.write(zeros.data(), 320);
  }
  WorkQueue queue;
  const auto journal = open(folder / "j", queue);
  CHECK(journal.state().lost_records == 10);
  CHECK(journal.state().lost_batches == 10);
  CHECK(queue.out().size() == kBatches - 10);
  CHECK(queue.ahead(0, kBatches) == BatchIndex{116});
}

TEST_CASE("delivery: a journal of another plan, of another daemon, or none is refused") {
  const TemporaryFolder folder;
  WorkQueue queue;
  {
    const auto journal = open(folder / "j", queue);
    CHECK(refusal(folder / "j", kPlan).find("in use by another daemon") != std::string::npos);
  }
  const std::string settings = refusal(folder / "j", {11, 23, 33});
  CHECK(settings.find("is of another plan: settings (or planner) changed") != std::string::npos);
  CHECK(settings.find("remove the file") != std::string::npos);
  CHECK(refusal(folder / "j", {12, 22, 33}).find("data changed") != std::string::npos);
  CHECK(refusal(folder / "j", {12, 22, 33}, true).empty());
  std::ofstream(folder / "text") << std::string(1000, 'x');
  CHECK(refusal(folder / "text", kPlan).find("is not the journal of a queue") != std::string::npos);
  CHECK(refusal(folder / "nowhere" / "j", kPlan).find("No such file") != std::string::npos);
}
