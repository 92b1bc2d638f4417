// The files of a record: what is written, what a death leaves, and what is refused.

#include "daemon/delivery/feed/live/record/step_record.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

const Schema kTokens{{{"tokens", FieldKind::primary, DType::int32, {}, {}, 0}}, {}};

std::shared_ptr<const PushedSequence> sequence(const std::string& key) {
  static const std::array<std::int32_t, 3> values{1, 2, 3};
  PushedSequence pushed;
  pushed.key = key;
  pushed.fields = {{std::as_bytes(std::span(values)), 3}};
  return std::make_shared<const PushedSequence>(std::move(pushed));
}

/// A record in a folder, of steps of two batches.
struct Recorded {
  Result<std::unique_ptr<StepRecord>> open(std::uint32_t world = 2,
                                           const Schema& schema = kTokens) const {
    return StepRecord::open(dataset, schema, world);
  }
  std::string order() const { return file_text(order_file_of(dataset).string()).value_or(""); }
  /// Those of batches.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream text(order());
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("# ")) all.push_back(line);
    }
    return all;
  }
  void append(const std::string& text) const {
    std::ofstream(order_file_of(dataset), std::ios::app | std::ios::binary) << text;
  }
  /// A step with these sequences, the first of which become `first` and so on.
  static void write(StepRecord& to, std::uint64_t first, const std::vector<std::string>& keys,
                    const std::string& lines) {
    RecordedStep step;
    step.first = first;
    for (const std::string& key : keys) step.sequences.push_back(sequence(key));
    step.lines = lines;
    const std::array steps{static_cast<const RecordedStep*>(&step)};
    const auto written = to.write(steps);
    REQUIRE_MESSAGE(written, (written ? "" : written.error().message));
  }

  TemporaryFolder folder;
  std::filesystem::path dataset = folder / "run";
};

constexpr const char* kHead = "# batchwright record, world = 2\n";
constexpr const char* kFirst = "# step 0, version 0\n#0\n#1 *0.5\n";

}  // namespace

TEST_CASE("delivery: a record goes on after what it has, and names each sequence once") {
  const Recorded recorded;
  {
    const auto record = recorded.open();
    REQUIRE_MESSAGE(record, (record ? "" : record.error().message));
    Recorded::write(**record, 0, {"a", "b"}, kFirst);
    const auto second = recorded.open();
    REQUIRE_FALSE(second);  // one process writes it at a time
    CHECK(second.error().code == ErrorCode::busy);
  }
  {
    const auto record = recorded.open();
    REQUIRE(record);
    CHECK((*record)->sequences() == 2);
    Recorded::write(**record, 2, {"a", "a~2"}, "# step 0, version 0\n#2\n#3\n");
  }
  CHECK(recorded.order() == std::string(kHead) + kFirst + "# step 0, version 0\n#2\n#3\n");
  Catalog catalog;
  const auto dataset = catalog.open({recorded.dataset});
  REQUIRE(dataset);
  const auto snapshot = (*dataset)->snapshot();
  REQUIRE(snapshot);
  CHECK((*snapshot)->find("a")->value() == Ordinal{0});
  CHECK((*snapshot)->find("a~2")->value() == Ordinal{2});
  CHECK((*snapshot)->find("a~2~3")->value() == Ordinal{3});
}

TEST_CASE("delivery: lines of a record that a death left behind are cut off") {
  for (const char* const rest :
       {"# step 1, version 0\n", "# step 1, version 0\n#0\n", "# step 1, version 0\n#0\n#1",
        "# step 1, version 0\n#0\n#2\n# step 2, version 0\n#0\n#1\n", "#0\t"}) {
    CAPTURE(rest);
    const Recorded recorded;
    Recorded::write(**recorded.open(), 0, {"a", "b"}, kFirst);
    recorded.append(rest);
    REQUIRE(recorded.open());
    CHECK(recorded.order() == std::string(kHead) + kFirst);
    recorded.append(std::string(4096, '\0'));
    recorded.append("\n#0\n#1\n");
    REQUIRE(recorded.open());
    CHECK(recorded.order() == std::string(kHead) + kFirst);
  }
  const Recorded torn;
  torn.append(std::string(kHead).substr(0, 9));
  REQUIRE(torn.open());
  CHECK(torn.order() == kHead);
}

TEST_CASE("delivery: a record whose process is killed has each sequence once, and goes on") {
  const Recorded recorded;
  std::uint64_t had = 0;
  for (int kill = 0; kill < 5; ++kill) {
    const pid_t writer = ::fork();
    if (writer == 0) {
      const auto record = recorded.open();
      for (std::uint64_t next = (*record)->sequences();; next += 2) {
        Recorded::write(**record, next, {"k", "k"}, fmt::format("#{}\n#{}\n", next, next + 1));
      }
    }
    const auto has_more = [&] { return recorded.lines().size() > had + 20; };
    while (!has_more() && ::waitpid(writer, nullptr, WNOHANG) == 0) std::this_thread::yield();
    ::kill(writer, SIGKILL);
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
    const auto record = recorded.open();
    REQUIRE_MESSAGE(record, (record ? "" : record.error().message));
    had = (*record)->sequences();
    CHECK(had >= 20);
    const std::vector<std::string> lines = recorded.lines();
    REQUIRE(lines.size() == had);
    for (std::size_t i = 0; i < had; ++i) CHECK(lines[i] == fmt::format("#{}", i));
  }
}

TEST_CASE("delivery: a record whose file or dataset is another's is refused, and stays as it is") {
  const auto why = [](const Result<std::unique_ptr<StepRecord>>& record) {
    REQUIRE_FALSE(record);
    return record.error().message;
  };
  const Recorded recorded;
  Recorded::write(**recorded.open(), 0, {"a", "b"}, kFirst);
  const std::string file = "order file " + order_file_of(recorded.dataset).string();
  CHECK(why(recorded.open(3)) ==
        file +
            ": line 1: found \"# batchwright record, world = 2\"; allowed: "
            "\"# batchwright record, world = 3\", as plan.world is, or "
            "another record");
  Schema other = kTokens;
  other.fields[0].dtype = DType::int64;
  CHECK(why(recorded.open(2, other))
            .starts_with("dataset " + recorded.dataset.string() + " has other fields: "));
  recorded.append("a key\n");
  CHECK(why(recorded.open()) == file +
                                    ": line 5: found \"a key\"; allowed: #ORDINAL, #ORDINAL "
                                    "*WEIGHT, the same with START COUNT behind the ordinal, or "
                                    "-, as a record writes it");
  CHECK(recorded.order() == std::string(kHead) + kFirst + "a key\n");
  const Recorded taken;
  taken.append("mine");
  CHECK(why(taken.open()).find("found \"mine\"; allowed: a file that a record began") !=
        std::string::npos);
  CHECK(taken.order() == "mine");
  const Recorded in_a_file;
  std::ofstream(in_a_file.folder / "run") << "no folder";
  CHECK(why(in_a_file.open()).find(in_a_file.dataset.string()) != std::string::npos);
}

TEST_CASE("delivery: a record's order file lies beside its dataset") {
  CHECK(order_file_of("/data/run") == "/data/run.order");
  CHECK(order_file_of("/data/run/") == "/data/run.order");
}
