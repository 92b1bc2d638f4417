// A dataset whose tree is damaged, or that a writer writes over, ends its own feed at most.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"
#include "tests/support/lmdb_pages.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A second feed, of a dataset of its own.
std::string feed_beside(const std::filesystem::path& folder) {
  make_small_dataset(folder / "beside", mixed_lengths(40, 30));
  return "[[feed]]\nname = \"beside\"\ndataset = \"" + (folder / "beside").string() + "\"\n";
}

/// Sets the flag of values with duplicates, which no dataset has, in the node of a sequence.
void damage_node(const std::filesystem::path& dataset, std::uint64_t ordinal) {
  const std::string bytes = read_file(dataset / "data.mdb");
  const LmdbPages pages(bytes);
  for (const std::uint64_t leaf : pages.leaves(pages.root_of("sequences"))) {
    const auto nodes = pages.nodes(leaf);
    if (ordinal >= nodes.size()) {
      ordinal -= nodes.size();
      continue;
    }
    std::fstream file(dataset / "data.mdb", std::ios::in | std::ios::out | std::ios::binary);
    const auto place = static_cast<std::streamoff>(nodes[ordinal] + 4);
    file.seekp(place).put(static_cast<char>(pages.node_flags(nodes[ordinal]) | kDupData));
    return;
  }
}

std::size_t rows_of_an_epoch(const std::string& endpoint, const char* feed) {
  Trainer trainer(endpoint);
  trainer.subscribe([feed](bw_subscribe_options& options) {
    options.feed = feed;
    options.epochs = 1;
  });
  std::size_t rows = 0;
  for (const auto& batch : trainer.ordinals_until_end()) rows += batch.size();
  return rows;
}

/// Commits of another process.
void append_elsewhere(const std::filesystem::path& dataset, std::uint64_t first) {
  const pid_t child = fork();
  if (child == 0) {
    make_small_dataset(dataset, mixed_lengths(5, 30), first);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE(
    "integration: a damaged node of the tree costs one sequence or one feed, never a daemon") {
  for (const std::string policy : {"stop", "skip"}) {
    CAPTURE(policy);
    DaemonProcess daemon("on_corrupt = \"" + policy + "\"\n", 400);
    damage_node(daemon.dataset(), 31);
    daemon.config() += feed_beside(daemon.folder());
    REQUIRE(daemon.start());
    if (policy == "skip") {
      CHECK(rows_of_an_epoch(daemon.endpoint(), "train") == 399);
      CHECK(daemon.counter("corrupt_records") >= 1);
      CHECK(daemon.process().err().find("sequence 31: damaged index") != std::string::npos);
    } else {
      Trainer trainer(daemon.endpoint());
      trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
      bw_status status = BW_OK;
      while ((status = trainer.next()) == BW_OK) continue;
      CHECK(status == BW_CORRUPT_RECORD);
      CHECK(std::string(bw_error_message()).find("sequence 31: damaged index") !=
            std::string::npos);
    }
    CHECK(rows_of_an_epoch(daemon.endpoint(), "beside") == 40);
    CHECK(daemon.process().running());
    const Finished verified = run({program("batchwright"), "verify", daemon.dataset()});
    CHECK(verified.code == 1);
    CHECK(verified.out.find("broken: ordinal 31, key \"\": dataset ") != std::string::npos);
    CHECK(verified.out.find("1 broken records, 0 other problems") != std::string::npos);
  }
}

TEST_CASE("integration: without a lock a feed is served, shown so, and ended by a writer by name") {
  DaemonProcess daemon("lock = false\n", 200);
  daemon.config() += feed_beside(daemon.folder());
  // Else its clients would wait for the feed, which is opened again with what is there then.
  daemon.config().insert(daemon.config().find("[daemon]\n") + 9, "feed_grace = \"0s\"\n");
  REQUIRE(daemon.start());
  CHECK(daemon.process().err().find("feed train: dataset " + daemon.dataset().string() +
                                    " is read without a lock") != std::string::npos);
  const std::string metrics = daemon.page("/metrics");
  CHECK(metrics.find("batchwright_dataset_locked{feed=\"train\"} 0") != std::string::npos);
  CHECK(metrics.find("batchwright_dataset_locked{feed=\"beside\"} 1") != std::string::npos);
  CHECK(daemon.stats().find("\"dataset_lock\":\"none\"") != std::string::npos);
  CHECK(rows_of_an_epoch(daemon.endpoint(), "train") == 200);
  for (std::uint64_t i = 0; i < 3; ++i) append_elsewhere(daemon.dataset(), 200 + 5 * i);
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epoch = 5; });
  bw_status status = BW_OK;
  while ((status = trainer.next()) == BW_OK) continue;
  CHECK(status == BW_STORE_UNAVAILABLE);
  CHECK(std::string(bw_error_message()).find("was written to while") != std::string::npos);
  CHECK(daemon.counter("corrupt_records") == 0);
  CHECK(rows_of_an_epoch(daemon.endpoint(), "beside") == 40);
}

TEST_CASE("integration: a dataset that is not locked is not followed") {
  DaemonProcess daemon("lock = false\nfollow = true\n");
  daemon.config() += feed_beside(daemon.folder());
  daemon.launch();
  CHECK(eventually([&] {
    return daemon.process().err().find("follow = true needs a lock on the dataset") !=
           std::string::npos;
  }));
}
