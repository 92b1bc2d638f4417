#include "daemon/delivery/feed/queue/record_writer.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A writer whose thread is the test: what is to be done elsewhere is done when the test says so.
class SlowWriter {
 public:
  SlowWriter() : writer([this](auto work) { works_.push_back(std::move(work)); }) {}
  SlowWriter(const SlowWriter&) = delete;
  SlowWriter& operator=(const SlowWriter&) = delete;

  /// The thread has done all that it was asked for, and the loop is told.
  void go_on() {
    for (auto& work : std::exchange(works_, {})) tell(work());
  }
  /// The same of one thing.
  void go_on_once() {
    const auto work = works_.front();
    works_.erase(works_.begin());
    tell(work());
  }
  std::size_t asked() const { return works_.size(); }

  RecordWriter writer;
  std::vector<std::string> failures;

 private:
  void tell(const RecordWriter::Progress& progress) {
    writer.told(progress);
    if (progress.failure) failures.push_back(progress.failure->message);
  }

  std::vector<std::function<RecordWriter::Progress()>> works_;
};

std::shared_ptr<KeptFile> file_in(const TemporaryFolder& folder, const std::string& name) {
  auto file = KeptFile::open(name, (folder / name).string());
  REQUIRE(file);
  return std::move(*file);
}

/// A file that takes no record.
std::shared_ptr<KeptFile> full_file() {
  auto file = KeptFile::open("journal", "/dev/full");
  REQUIRE(file);
  return std::move(*file);
}

constexpr SubscriptionKey kWorker{SessionId{1}, {1}};
constexpr SubscriptionKey kOther{SessionId{1}, {2}};

}  // namespace

TEST_CASE("delivery: records that gather while the kernel has others go there together, in order") {
  const TemporaryFolder folder;
  const auto journal = file_in(folder, "journal");
  const auto ledger = file_in(folder, "ledger");
  SlowWriter slow;
  slow.writer.put(journal, "a");
  slow.writer.put(journal, "b");
  slow.writer.put(ledger, "1");
  slow.writer.put(journal, "c");
  CHECK(slow.asked() == 1);
  CHECK(slow.writer.last() == 4);
  CHECK(slow.writer.has_written(0));
  CHECK_FALSE(slow.writer.has_written(1));
  slow.go_on();
  CHECK(slow.writer.has_written(4));
  CHECK(file_text((folder / "journal").string()).value_or("") == "abc");
  CHECK(file_text((folder / "ledger").string()).value_or("") == "1");
  slow.writer.put(ledger, "2");
  CHECK(slow.asked() == 1);
  slow.go_on();
  CHECK(file_text((folder / "ledger").string()).value_or("") == "12");
}

TEST_CASE("delivery: a message waits for the records before it, and those to others do not") {
  const TemporaryFolder folder;
  const auto journal = file_in(folder, "journal");
  SlowWriter slow;
  RecordWriter& writer = slow.writer;
  std::string sent;
  const auto hold = [&](const SubscriptionKey& to, std::uint64_t record, char name) {
    writer.hold(
        to, record, [&sent, name] { sent += name; }, nullptr);
  };
  writer.put(journal, "a");
  CHECK_FALSE(writer.lets_pass(kWorker, 1));
  hold(kWorker, 1, 'x');
  CHECK_FALSE(writer.lets_pass(kWorker, 0));  // it would overtake
  hold(kWorker, 0, 'y');
  CHECK(writer.lets_pass(kOther, 0));
  slow.writer.put(journal, "b");
  hold(kOther, 2, 'z');
  CHECK(sent.empty());
  slow.go_on();
  CHECK(sent == "xyz");
  CHECK(writer.lets_pass(kWorker, 2));
}

TEST_CASE("delivery: of records behind one that failed none is written, and no message is sent") {
  const TemporaryFolder folder;
  const auto ledger = file_in(folder, "ledger");
  SlowWriter slow;
  slow.writer.put(ledger, "1");
  slow.writer.put(full_file(), "a");
  slow.writer.put(ledger, "2");
  bool sent = false;
  bool dropped = false;
  slow.writer.hold(
      kWorker, 3, [&] { sent = true; }, [&] { dropped = true; });
  bool told_of_it = false;
  slow.writer.run("journal", [&](const auto& failure) { told_of_it = failure.has_value(); });
  slow.go_on();
  CHECK(file_text((folder / "ledger").string()).value_or("") == "1");
  CHECK(slow.writer.has_written(1));
  CHECK_FALSE(slow.writer.has_written(2));
  CHECK(told_of_it);
  REQUIRE(!slow.failures.empty());
  CHECK(slow.failures[0].starts_with("journal /dev/full: write: "));
  CHECK_FALSE(sent);
  slow.writer.stop_holding();
  CHECK(dropped);
  CHECK(slow.writer.lets_pass(kWorker, 3));
  slow.writer.put(ledger, "3");
  slow.go_on();
  CHECK(file_text((folder / "ledger").string()).value_or("") == "1");
}

TEST_CASE("delivery: work that takes long keeps no record before it from being told of") {
  const TemporaryFolder folder;
  const auto journal = file_in(folder, "journal");
  SlowWriter slow;
  bool done = false;
  bool sent = false;
  slow.writer.put(journal, "a");
  slow.writer.hold(
      kWorker, 1, [&] { sent = true; }, nullptr);
  slow.writer.run("journal", [&](const auto&) { done = true; });
  slow.writer.put(journal, "b");
  REQUIRE(slow.asked() == 3);
  slow.go_on_once();
  CHECK(sent);
  CHECK_FALSE(done);
  slow.go_on_once();
  CHECK(done);
  CHECK_FALSE(slow.writer.has_written(2));
  slow.go_on_once();
  CHECK(slow.writer.has_written(2));
}

TEST_CASE("delivery: a file is closed behind its last record, where records are written") {
  const TemporaryFolder folder;
  auto journal = file_in(folder, "journal");
  const std::weak_ptr<KeptFile> watched = journal;
  SlowWriter slow;
  slow.writer.put(journal, "a");
  slow.writer.close(std::move(journal));
  CHECK_FALSE(watched.expired());
  slow.go_on();
  CHECK(watched.expired());
  CHECK(file_text((folder / "journal").string()).value_or("") == "a");
}
