#include "daemon/delivery/feed/record_writer.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr Fingerprint kWrittenPlan{11, 22, 33};

JournalRecord given(std::uint64_t lease) {
  return {0, JournalRecord::Kind::given, lease, lease - 1, 1};
}

/// A writer of a journal and a ledger in a folder. Its thread is the test: what is to be done
/// elsewhere is done when the test says so.
class SlowWriter {
 public:
  explicit SlowWriter(const TemporaryFolder& folder, const std::string& ledger = "")
      : journal_((folder / "journal").string()),
        ledger_(ledger.empty() ? (folder / "ledger").string() : ledger),
        writer_(open(), [this](auto work) { works_.push_back(std::move(work)); }) {}
  SlowWriter(const SlowWriter&) = delete;
  SlowWriter& operator=(const SlowWriter&) = delete;

  void put(std::vector<Record> records) { writer_.put(std::move(records)); }
  /// The thread has done all that it was asked for, and the loop is told.
  void go_on() {
    while (!works_.empty()) go_on_once();
  }
  /// The same of one thing.
  void go_on_once() {
    const auto work = works_.front();
    works_.erase(works_.begin());
    const Written written = writer_.told(work());
    upto_ = written.upto;
    if (written.failure) failures_.push_back(written.failure->message);
  }
  /// The thread does all that it was asked for, and the loop is not told.
  void end() {
    for (const auto& work : std::exchange(works_, {})) work();
  }
  std::size_t asked() const { return works_.size(); }
  std::uint64_t upto() const { return upto_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const RecordWriter& writer() const { return writer_; }

  std::string journal() const { return file_text(journal_).value_or(""); }
  std::string ledger() const { return file_text(ledger_).value_or(""); }
  /// Whether another daemon could have the journal.
  bool is_closed() const { return KeptFile::open_locked("journal", journal_).has_value(); }

 private:
  RecordFiles open() const {
    WorkQueue queue;
    RecordFiles files;
    auto opened = open_journal(journal_, kWrittenPlan, false, queue);
    REQUIRE(opened);
    files.journal = std::move(opened->file);
    auto kept = KeptFile::open("ledger", ledger_);
    REQUIRE(kept);
    files.ledger = std::move(*kept);
    return files;
  }

  std::string journal_;
  std::string ledger_;
  std::vector<std::function<Written()>> works_;
  RecordWriter writer_;
  std::uint64_t upto_ = 0;
  std::vector<std::string> failures_;
};

/// A file that takes no record.
constexpr const char* kFull = "/dev/full";

/// Of plan and epoch.
constexpr std::size_t kBegun = 64;

}  // namespace

TEST_CASE("delivery: records that gather while the kernel has others go there together, in order") {
  const TemporaryFolder folder;
  SlowWriter slow(folder);
  slow.put({given(1), given(2), LedgerLine{"1"}});
  slow.put({given(3)});
  CHECK(slow.asked() == 1);
  slow.go_on();
  CHECK(slow.upto() == 4);
  const std::string journal = slow.journal();
  REQUIRE(journal.size() == kBegun + 3 * sizeof(JournalRecord));
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(static_cast<std::uint64_t>(journal[kBegun + i * sizeof(JournalRecord) + 8]) == i + 1);
  }
  CHECK(slow.ledger() == "1");
  slow.put({LedgerLine{"2"}});
  CHECK(slow.asked() == 1);
  slow.go_on();
  CHECK(slow.upto() == 5);
  CHECK(slow.ledger() == "12");
}

TEST_CASE("delivery: no record after one that failed is written, and that is told once") {
  const TemporaryFolder folder;
  SlowWriter slow(folder, kFull);
  slow.put({given(1), LedgerLine{"1"}, given(2)});
  slow.put({BeginJournal{Epoch{1}, kWrittenPlan, {3}}});
  slow.go_on();
  CHECK(slow.upto() == 1);
  CHECK(slow.journal().size() == kBegun + sizeof(JournalRecord));
  REQUIRE(slow.failures().size() == 1);
  CHECK(slow.failures()[0].starts_with("ledger /dev/full: write: "));
  slow.put({given(3)});
  slow.go_on();
  CHECK(slow.upto() == 1);
  CHECK(slow.journal().size() == kBegun + sizeof(JournalRecord));
  CHECK(slow.failures().size() == 1);
  CHECK_FALSE(slow.writer().untold());
}

TEST_CASE("delivery: a failure of which the loop has heard nothing is known at the end") {
  const TemporaryFolder folder;
  SlowWriter slow(folder, kFull);
  slow.put({LedgerLine{"1"}});
  slow.end();
  const auto untold = slow.writer().untold();
  REQUIRE(untold);
  CHECK(untold->message.starts_with("ledger /dev/full: write: "));
}

TEST_CASE("delivery: a journal that begins with an epoch keeps no record before it waiting") {
  const TemporaryFolder folder;
  SlowWriter slow(folder);
  slow.put({given(1), BeginJournal{Epoch{1}, kWrittenPlan, {2}}});
  slow.put({given(2)});
  REQUIRE(slow.asked() == 3);
  slow.go_on_once();
  CHECK(slow.upto() == 1);
  slow.go_on_once();
  CHECK(slow.upto() == 2);
  CHECK(slow.journal().size() == kBegun);
  CHECK_FALSE(slow.is_closed());
  slow.go_on_once();
  CHECK(slow.upto() == 3);
  CHECK(slow.journal().size() == kBegun + sizeof(JournalRecord));
}

TEST_CASE("delivery: files are closed after their last record, also after a failure") {
  const TemporaryFolder folder;
  for (const char* ledger : {"", kFull}) {
    SlowWriter slow(folder, ledger);
    slow.put({given(1), LedgerLine{"1"}, CloseFiles{}});
    CHECK_FALSE(slow.is_closed());
    slow.go_on();
    CHECK(slow.is_closed());
    CHECK(slow.failures().size() == (ledger == std::string() ? 0 : 1));
    CHECK_FALSE(slow.writer().at_work());
  }
  CHECK(file_text((folder / "journal").string()).value_or("").size() ==
        kBegun + 2 * sizeof(JournalRecord));
}
