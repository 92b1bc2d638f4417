#include <doctest/doctest.h>

#include <fstream>

#include "tests/integration/daemon_process.h"

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
  CHECK_MESSAGE(stats.find(text) != std::string::npos, stats);
  CHECK(daemon.page("/readyz").empty());
  CHECK(daemon.process().err().find(text) != std::string::npos);
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

TEST_CASE("daemon: an arena above the ceiling is refused with the bytes it needs") {
  DaemonProcess daemon("slots = 4000");
  daemon.config().replace(daemon.config().find("256MiB"), 6, "1MiB");
  check_refusal(daemon, 2, "feed train: its arena needs ");
  check_refusal(daemon, 2, "the memory ceiling leaves 1.0 MiB");
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
