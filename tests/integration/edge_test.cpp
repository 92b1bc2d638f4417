// The example that trains beside a sensor, as its first comment says to run it.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kWindows = 1024;

/// A row of the example's table.
struct TableRow {
  double seconds = 0;
  std::uint64_t written = 0;
  std::uint64_t in_epoch = 0;
  std::uint64_t epochs = 0;
  std::uint64_t steps = 0;
  double right_percent = 0;
  double trainer_mib = 0;
  double daemon_mib = 0;
};

std::vector<TableRow> rows_of(const std::string& output) {
  std::vector<TableRow> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    TableRow row;
    std::string percent;
    if (words >> row.seconds >> row.written >> row.in_epoch >> row.epochs >> row.steps >>
        row.right_percent >> percent >> row.trainer_mib >> row.daemon_mib) {
      rows.push_back(row);
    }
  }
  return rows;
}

/// The example with a daemon of its own, in a folder where nothing is.
class EdgeRun {
 public:
  EdgeRun() {
    std::filesystem::create_directory(runtime());
    finished_ =
        run({"/usr/bin/env", "--chdir=" + folder_.path().string(),
             "XDG_RUNTIME_DIR=" + runtime().string(), program("batchwright"), "run", "--config",
             BATCHWRIGHT_SOURCE "/client/examples/edge/edge.toml", "--", program("edge"), "windows",
             "--windows", std::to_string(kWindows), "--per-second", "2000", "--epochs", "20"});
    rows_ = rows_of(finished_.out);
    REQUIRE_MESSAGE(finished_.code == 0, finished_.err);
    REQUIRE(rows_.size() >= 2);
  }

  const TableRow& first() const { return rows_.front(); }
  const TableRow& last() const { return rows_.back(); }
  std::filesystem::path runtime() const { return folder_ / "runtime"; }
  /// Files and folders of the folder, the dataset left out.
  std::size_t left_behind() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return static_cast<std::size_t>(std::count_if(begin(all), end(all), [](const auto& entry) {
      return entry.path().filename() != "windows" && entry.path().filename() != "runtime";
    }));
  }

 private:
  TemporaryFolder folder_;
  Finished finished_;
  std::vector<TableRow> rows_;
};

}  // namespace

TEST_CASE("integration: the edge example learns from windows that come while it trains") {
  const EdgeRun edge;
  CHECK(edge.first().in_epoch < kWindows);
  CHECK(edge.first().in_epoch > 0);
  CHECK(edge.last().written == kWindows);
  CHECK(edge.last().in_epoch == kWindows);
  CHECK(edge.last().right_percent > 90);
#ifndef BATCHWRIGHT_SANITIZED  // sanitizers take memory of their own
  CHECK(edge.last().trainer_mib + edge.last().daemon_mib < 64);
#endif
  CHECK(std::filesystem::is_empty(edge.runtime()));
  CHECK(edge.left_behind() == 0);
}
