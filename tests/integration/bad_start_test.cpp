// Only the text of the configuration ends a start: what is wrong with the data of one feed, or with
// the memory that it finds, is that feed's own.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <boost/json.hpp>
#include <csignal>
#include <fstream>

#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The daemon ends with this exit code, and its last line holds `text`.
void check_refusal(DaemonProcess& daemon, int code, const std::string& text) {
  const Finished finished = daemon.start_and_fail();
  CHECK(finished.code == code);
  CHECK_MESSAGE(finished.err.find(text) != std::string::npos, finished.err);
}

/// The daemon runs, and /stats says that the feed is not served, with this reason.
void check_absent(DaemonProcess& daemon, const std::string& text) {
  REQUIRE(daemon.start());
  const std::string stats = daemon.stats_now();
  CHECK(stats.find("\"state\":\"failed\"") != std::string::npos);
  CHECK(daemon.page("/readyz").empty());
  CHECK(daemon.process().err().find(text) != std::string::npos);
}

constexpr const char* kStartFeed = "slots = 4\n[feed.plan]\norder = \"sorted\"\nsize = 4\n";

/// Another feed in the file, after those that are there.
void append_feed(DaemonProcess& daemon, const std::string& name, const std::string& rest) {
  daemon.config() += "[[feed]]\nname = \"" + name + "\"\ndataset = \"" +
                     (daemon.folder() / name).string() + "\"\n" + rest;
}

/// The batches of one epoch.
std::size_t epoch_batches(DaemonProcess& daemon, const char* feed, std::uint64_t epoch = 0) {
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([feed, epoch](bw_subscribe_options& options) {
    options.feed = feed;
    options.epoch = epoch;
    options.epochs = 1;
  });
  return trainer.ordinals_until_end().size();
}

bool says(DaemonProcess& daemon, const std::string& text) {
  return daemon.process().err().find(text) != std::string::npos;
}

/// The feed as /stats has it.
boost::json::value feed_figures(DaemonProcess& daemon, const std::string& name) {
  const auto page = boost::json::parse(daemon.stats_now());
  for (const auto& feed : page.at("feeds").as_array()) {
    if (feed.at("name").as_string() == name) return feed;
  }
  return {};
}

}  // namespace

TEST_CASE("daemon: a missing dataset fails its feed alone") {
  DaemonProcess daemon("", 0);
  check_absent(daemon, "dataset " + daemon.dataset().string() + " does not exist");
}

TEST_CASE("daemon: a file that is not LMDB is named") {
  DaemonProcess daemon("", 0);
  std::filesystem::create_directory(daemon.dataset());
  std::ofstream(daemon.dataset() / "data.mdb") << std::string(100'000, 'x');
  check_absent(daemon, daemon.dataset().string());
}

TEST_CASE("daemon: a truncated data file is told from a whole one") {
  DaemonProcess daemon("", 400);
  const auto file = daemon.dataset() / "data.mdb";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2 / 4096 * 4096);
  check_absent(daemon, "truncated");
}

TEST_CASE("daemon: a feed of an empty dataset is not served") {
  DaemonProcess daemon("", 0);
  make_small_dataset(daemon.dataset(), {});
  check_absent(daemon, "the dataset has no sequences");
}

TEST_CASE("daemon: a feed with a world that no epoch can fill is not served") {
  DaemonProcess daemon("[feed.plan]\nsize = 16\nworld = 8");
  check_absent(daemon, "fewer than world = 8");
}

TEST_CASE("daemon: an arena above the ceiling fails its feed alone, with the bytes it needs") {
  DaemonProcess daemon("slots = 4000");
  daemon.config().replace(daemon.config().find("256MiB"), 6, "1MiB");
  check_absent(daemon, "feed train: not served; the daemon keeps trying: its arena needs ");
  CHECK(daemon.process().err().find("the memory ceiling leaves 1.0 MiB") != std::string::npos);
}

TEST_CASE("daemon: a configuration that is wrong is refused with the place and what is allowed") {
  SUBCASE("unknown key") {
    DaemonProcess daemon("slotz = 4");
    check_refusal(daemon, 2, "config.toml:8:");
    check_refusal(daemon, 2, "slotz");
  }
  SUBCASE("wrong type") {
    DaemonProcess daemon("slots = \"many\"");
    check_refusal(daemon, 2, "config.toml:8:");
  }
  SUBCASE("unknown choice") {
    DaemonProcess daemon("[feed.plan]\norder = \"shuffled\"");
    check_refusal(daemon, 2, "semi-sorted");
  }
  SUBCASE("no file") {
    const Finished finished = run({program("batchwrightd"), "--config", "/nowhere/at/all.toml"});
    CHECK(finished.code == 2);
    CHECK(finished.err.find("/nowhere/at/all.toml") != std::string::npos);
  }
}

TEST_CASE("daemon: a second daemon at the same endpoint is refused and harms nothing") {
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  check_refusal(daemon, 1, "another daemon answers there");
  CHECK(daemon.process().running());
  CHECK(daemon.stats().find("\"train\"") != std::string::npos);
}

TEST_CASE("daemon: a folder for sockets that is not there is named, with what makes it") {
  DaemonProcess daemon("");
  const auto nowhere = daemon.folder() / "nowhere";
  const std::string before = daemon.endpoint();
  daemon.config().replace(daemon.config().find(before), before.size(),
                          "ipc://" + (nowhere / "s").string());
  check_refusal(daemon, 1, "the folder " + nowhere.string() + " does not exist; make it");
}

TEST_CASE("daemon: memory goes to the feeds in the order of the file, and the holder is named") {
  DaemonProcess daemon(kStartFeed);
  daemon.config().replace(daemon.config().find("256MiB"), 6, "3MiB");
  // The second is opened later than the third: its dataset is larger.
  append_feed(daemon, "second", "slots = 4\n[feed.plan]\nsize = 1\n");
  make_small_dataset(daemon.folder() / "second", std::vector<std::uint32_t>(300, 30'000));
  append_feed(daemon, "third", "slots = 4\n[feed.plan]\nsize = 1\n");
  make_small_dataset(daemon.folder() / "third", {35'000});
  REQUIRE(daemon.start());
  CHECK(epoch_batches(daemon, "second") == 300);
  const std::string reason{feed_figures(daemon, "third").at("reason").as_string()};
  CHECK_MESSAGE(reason.find("; feeds hold: second 1.8") != std::string::npos, reason);
  CHECK_MESSAGE(reason.find(", train 0.0") != std::string::npos, reason);
  // Once the feed above it has gone there is room.
  const auto begin = daemon.config().find("[[feed]]\nname = \"second\"");
  daemon.config().erase(begin, daemon.config().find("[[feed]]\nname = \"third\"") - begin);
  CHECK(daemon.reload());
  CHECK(epoch_batches(daemon, "third") == 1);
}

TEST_CASE("daemon: a feed that leaves out what was appended is served after a restart as before") {
  struct Case {
    std::string settings;
    std::uint32_t appended;
    std::string why;
  };
  for (const auto& [settings, appended, why] :
       {Case{"cut = \"frames\"\nmax_frames = 100\n", 101,
             "1 of 61 sequences exceed max_frames = 100,"},
        Case{"size = 4\n", 5'000'000, "its arena needs "}}) {
    DaemonProcess daemon("slots = 4\nfollow = true\n[feed.plan]\norder = \"sorted\"\n" + settings);
    REQUIRE(daemon.start());
    const std::size_t batches = epoch_batches(daemon, "train");
    make_small_dataset(daemon.dataset(), {appended}, 60);
    // It is told while the daemon runs, when an epoch is planned.
    std::uint64_t epoch = 0;
    CHECK(eventually([&] {
      return epoch_batches(daemon, "train", ++epoch) == batches &&
             says(daemon, "continues with 60");
    }));
    daemon.process().signal(SIGKILL);
    REQUIRE(daemon.process().wait());
    REQUIRE(daemon.start());
    CHECK(epoch_batches(daemon, "train") == batches);
    CHECK_FALSE(daemon.page("/readyz").empty());
    CHECK_MESSAGE(says(daemon, "feed train: epoch 0 continues with 60 sequences: " + why),
                  daemon.process().err());
    const std::string reason{feed_figures(daemon, "train").at("reason").as_string()};
    CHECK(reason.starts_with("sequences that were appended are left out: "));
  }
}

TEST_CASE("daemon: data that no longer suit a feed leave it absent, and the others served") {
  DaemonProcess daemon(kStartFeed);
  make_small_dataset(daemon.folder() / "dev", mixed_lengths(40, 50));
  std::string reason;
  SUBCASE("padding for a field that it lacks") {
    append_feed(daemon, "dev", "padding = { pitch = 3 }\n");
    reason = "padding.pitch: the dataset has no such field";
  }
  SUBCASE("a recipe of sound for features") {
    append_feed(daemon, "dev", "[feed.features]\nlike = \"kaldi\"\nsample_rate = 16000\n");
    reason = "features: ";
  }
  SUBCASE("a sequence that exceeds max_frames") {
    append_feed(daemon, "dev", "[feed.plan]\ncut = \"frames\"\nmax_frames = 20\n");
    reason = "sequences exceed max_frames = 20,";
  }
  SUBCASE("an arena above the ceiling") {
    append_feed(daemon, "dev", "slots = 60000\n");
    reason = "its arena needs ";
  }
  REQUIRE(daemon.start());
  CHECK(epoch_batches(daemon, "train") == 15);
  CHECK_MESSAGE(says(daemon, reason), daemon.process().err());
  CHECK(says(daemon, "ready: serving 1 of 2 feeds, failed: dev"));
}

TEST_CASE("daemon: a ledger without room keeps its feed absent, which is told once") {
  DaemonProcess daemon(kStartFeed);
  const auto ledger = daemon.folder() / "ledger";
  daemon.config().replace(daemon.config().find("slots = 4"), 9,
                          "slots = 4\nledger = \"" + ledger.string() + "\"");
  daemon.config().insert(std::string("[daemon]\n").size(), "feed_grace = \"300ms\"\n");
  std::ofstream(ledger) << "";
  constexpr std::uint64_t kLimit = std::uint64_t{4} << 20;
  std::filesystem::resize_file(ledger, kLimit - 100);
  daemon.launch_behind("ulimit -f " + std::to_string(kLimit / 512));
  REQUIRE(eventually([&] { return says(daemon, "ready: "); }));
  for (int i = 0; i < 3; ++i) {
    std::string reason;
    try {
      epoch_batches(daemon, "train");
    } catch (const std::runtime_error& refused) {
      reason = refused.what();
    }
    CHECK_MESSAGE(reason.find("ledger") != std::string::npos, reason);
  }
  const std::string log = daemon.process().err();
  const std::string line = "feed train: not served; the daemon keeps trying: ledger ";
  CHECK(log.find(line) != std::string::npos);
  CHECK(log.find(line) == log.rfind(line));
  CHECK(log.find("feed train failed") == std::string::npos);
  // Its disk is measured all the same.
  CHECK(eventually(
      [&] { return daemon.stats_now().find("\"file\":\"ledger\"") != std::string::npos; }));
}

TEST_CASE("daemon: the pages show which clients wait for a feed that is absent") {
  DaemonProcess daemon(kStartFeed, 0);
  REQUIRE(daemon.start());
  Process tail(
      {program("batchwright"), "tail", "--feed", "train", "--endpoint", daemon.endpoint()});
  CHECK(eventually([&] {
    const auto feed = feed_figures(daemon, "train");
    const auto& clients = feed.at("subscribers").as_array();
    return clients.size() == 1 &&
           contains(std::string(clients[0].at("client").as_string()), "batchwright") &&
           clients[0].at("waiting") == "daemon";
  }));
  // It does not count as a trainer that starves.
  CHECK(daemon.page("/metrics").find("client_waited_seconds_total{") == std::string::npos);
}
