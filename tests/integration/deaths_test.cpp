#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <set>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kSortedPlan = "slots = 8\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";

Process tail_without_end(const DaemonProcess& daemon) {
  return Process({program("batchwright"), "tail", "--feed", "train", "--endpoint",
                  daemon.endpoint(), "--epochs", "0", "--json"});
}

}  // namespace

TEST_CASE("integration: a killed trainer gives its slots back and others go on") {
  DaemonProcess daemon(kSortedPlan);
  REQUIRE(daemon.start());
  Trainer other(daemon.endpoint());
  other.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  REQUIRE(other.next() == BW_OK);
  {
    Process victim = tail_without_end(daemon);
    REQUIRE(eventually([&] { return victim.out().size() > 1000; }));
    victim.signal(SIGKILL);
    REQUIRE(victim.wait());
  }
  CHECK(eventually([&] { return daemon.stats().find("\"sessions\":1") != std::string::npos; }));
  CHECK(other.ordinals_until_end().size() == 14);
}

TEST_CASE("integration: a batch outlives the daemon, and the trainer learns of its death") {
  DaemonProcess daemon(kSortedPlan);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint(), 0);
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  REQUIRE(trainer.next() == BW_OK);
  const bw_tensor* features = bw_batch_tensor_named(trainer.batch(), "features");
  const std::uint64_t ordinal = bw_batch_get_header(trainer.batch())->ordinals[0];
  daemon.process().signal(SIGKILL);
  REQUIRE(daemon.process().wait());
  CHECK(static_cast<const float*>(features->data)[5] == small_value(ordinal, 1, 1));
  bw_status status = BW_OK;
  while (status == BW_OK) status = trainer.next();
  CHECK(status == BW_DISCONNECTED);
}

TEST_CASE(
    "integration: a daemon that was killed leaves nothing that keeps the next from starting") {
  DaemonProcess daemon(kSortedPlan);
  REQUIRE(daemon.start());
  daemon.process().signal(SIGKILL);
  REQUIRE(daemon.process().wait());
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  CHECK(trainer.ordinals_until_end().size() == 15);
}

TEST_CASE("integration: SIGTERM ends the daemon in order, clients attached or not") {
  DaemonProcess daemon(kSortedPlan);
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 0; });
  REQUIRE(trainer.next() == BW_OK);
  daemon.process().signal(SIGTERM);
  CHECK(daemon.process().wait() == 0);
  CHECK_FALSE(std::filesystem::exists(daemon.folder() / "s.arena"));
  CHECK_FALSE(std::filesystem::exists(daemon.folder() / "s"));
  CHECK(bw_batch_get_header(trainer.batch())->sequences == 4);
}

TEST_CASE("integration: a dataset that shrinks under the daemon fails its feed and nothing else") {
  DaemonProcess daemon(kSortedPlan, 3000);
  daemon.config().insert(std::string("[daemon]\n").size(), "feed_grace = \"0s\"\n");
  const std::string other = (daemon.folder() / "other").string();
  make_small_dataset(other, mixed_lengths(40, 50));
  daemon.config() += "[[feed]]\nname = \"dev\"\ndataset = \"" + other +
                     "\"\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";
  REQUIRE(daemon.start());
  std::filesystem::resize_file(daemon.dataset() / "data.mdb", 64 * 1024);
  // A client that subscribes is told, at once or with the first batch past the cut.
  Trainer trainer(daemon.endpoint());
  std::string reason;
  try {
    trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 0; });
    while (trainer.next() == BW_OK) {
    }
    reason = bw_error_message();
  } catch (const std::runtime_error& refused) {
    reason = refused.what();
  }
  CHECK_MESSAGE(reason.find("feed train ") != std::string::npos, reason);
  CHECK_MESSAGE(reason.find("truncated") != std::string::npos, reason);
  CHECK(daemon.process().running());
  Trainer dev(daemon.endpoint());
  dev.subscribe([](bw_subscribe_options& options) {
    options.feed = "dev";
    options.epochs = 1;
  });
  CHECK(dev.ordinals_until_end().size() == 10);
}

TEST_CASE("integration: a queue goes on with the data it began with, whatever was appended") {
  DaemonProcess daemon("");
  daemon.config().insert(std::string("[daemon]\n").size(), "queue_grace = \"100ms\"\n");
  daemon.config() += "follow = true\njournal = \"" + (daemon.folder() / "journal").string() +
                     "\"\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";
  REQUIRE(daemon.start());
  const auto in_queue = [](bw_subscribe_options& options) {
    options.mode = BW_QUEUE;
    options.window = 1;
    options.epochs = 1;
  };
  std::vector<std::vector<std::uint64_t>> seen;
  {
    Trainer worker(daemon.endpoint());
    worker.subscribe(in_queue);
    for (int i = 0; i < 3; ++i) seen.push_back(worker.next_ordinals());
  }
  const std::size_t taken = seen.size();
  daemon.process().signal(SIGKILL);
  REQUIRE(daemon.process().wait());
  make_small_dataset(daemon.dataset(), {5, 6, 7, 8}, daemon.lengths().size());
  REQUIRE(daemon.start());
  CHECK(eventually([&] { return !daemon.page("/readyz").empty(); }));  // with no client there
  Trainer worker(daemon.endpoint());
  worker.subscribe(in_queue);
  const auto rest = worker.ordinals_until_end();
  // What the first worker held last may come again.
  CHECK((rest.size() == 15 - taken || rest.size() == 16 - taken));
  seen.insert(seen.end(), rest.begin(), rest.end());
  std::set<std::uint64_t> all;
  for (const auto& batch : seen) all.insert(batch.begin(), batch.end());
  CHECK(all.size() == 60);
  CHECK(*all.rbegin() == 59);
}
