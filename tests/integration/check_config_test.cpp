// What --check-config and --reload say of a configuration, by exit code and in words.

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/integration/daemon_process.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A configuration with a sound dataset, to be spoilt.
class Checked {
 public:
  Checked() : daemon_("") {}
  std::string& config() { return daemon_.config(); }
  std::filesystem::path folder() const { return daemon_.folder(); }
  void insert_daemon_key(const std::string& line) {
    config().insert(std::string("[daemon]\n").size(), line + "\n");
  }
  Finished check(std::vector<std::string> words = {}) {
    std::ofstream(folder() / "config.toml") << config();
    // Words of the daemon's own come last, those that become another user first.
    const bool are_options = !words.empty() && words.front().starts_with("--");
    words.insert(are_options ? words.begin() : words.end(),
                 {program("batchwrightd"), "--config", (folder() / "config.toml").string(),
                  "--check-config"});
    return run(words);
  }

 private:
  DaemonProcess daemon_;
};

void expect(const Finished& finished, int code, const std::string& text) {
  CHECK(finished.code == code);
  CHECK_MESSAGE(finished.err.find(text) != std::string::npos, finished.err);
}

}  // namespace

TEST_CASE("daemon: a configuration with which everything is served is ok") {
  Checked checked;
  const Finished finished = checked.check();
  CHECK_MESSAGE(finished.code == 0, finished.err);
  CHECK(finished.out.ends_with("config.toml: ok: 1 feed: train\n"));
}

TEST_CASE("daemon: what the daemon would start with, and not serve, is a warning") {
  Checked checked;
  SUBCASE("a missing dataset") {
    std::filesystem::remove_all(checked.folder() / "data");
    expect(checked.check(), 1, "warning: feed train: dataset ");
    expect(checked.check(), 1, "data does not exist");
  }
  SUBCASE("a plan that cannot be") {
    checked.config() += "[feed.plan]\nsize = 16\nworld = 8\n";
    expect(checked.check(), 1, "fewer than world = 8");
  }
  SUBCASE("an arena above the ceiling") {
    checked.config() += "slots = 60000\n";
    expect(checked.check(), 1, "warning: feed train: its arena needs ");
  }
  SUBCASE("padding for a field that the dataset does not have") {
    checked.config() += "padding = { pitch = 3 }\n";
    expect(checked.check(), 1, "warning: feed train: ");
  }
  SUBCASE("data that were appended and do not fit") {
    checked.config() += "follow = true\n[feed.plan]\ncut = \"frames\"\nmax_frames = 100\n";
    make_small_dataset(checked.folder() / "data", {101}, 60);
    expect(checked.check(), 1,
           "warning: feed train: it begins with its first 60 sequences: 1 of 61 sequences exceed "
           "max_frames = 100,");
  }
  SUBCASE("a journal without its folder") {
    checked.config() += "journal = \"/nowhere/j\"\n";
    expect(checked.check(), 1, "warning: feed train: journal: the folder /nowhere does not exist");
  }
  SUBCASE("a ledger without its folder") {
    checked.config() += "ledger = \"/nowhere/l\"\n";
    expect(checked.check(), 1, "warning: feed train: ledger: the folder /nowhere does not exist");
  }
}

TEST_CASE("daemon: a folder of sockets that is missing is an error, as for the start") {
  Checked checked;
  const std::string given = "ipc://" + checked.folder().string() + "/s";
  const auto place = [&](const std::string& endpoint) {
    std::string& config = checked.config();
    config.replace(config.find(given), given.size(), endpoint);
  };
  place("ipc:///run/nowhere/s");
  const Finished found = checked.check();
  expect(found, 2,
         "error: daemon.endpoints: /run/nowhere/s: the folder /run/nowhere "
         "does not exist; the unit batchwrightd.service makes it");
  // Neither its sockets nor its data are the service's.
  CHECK_FALSE(found.err.find("checked as root") != std::string::npos);
  // The file says where, so `batchwright run` needs the folder, too.
  CHECK(checked.check({"--for-run"}).code == 2);
}

TEST_CASE("daemon: of a file for `batchwright run` the service's folder is not asked for") {
  if (std::filesystem::exists("/run/batchwright")) {
    MESSAGE("skipped: this machine has the service's folder");
    return;
  }
  Checked checked;
  std::string& config = checked.config();
  const std::size_t line = config.find("endpoints");
  config.erase(line, config.find('\n', line) - line);
  const Finished service = checked.check();
  expect(service, 2, "error: daemon.endpoints: ");
  if (geteuid() == 0) CHECK(service.err.find("checked as root") != std::string::npos);
  const Finished run = checked.check({"--for-run"});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(run.err == "");
}

TEST_CASE("daemon: a group that the daemon's user is not in is a warning") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  Checked checked;
  checked.insert_daemon_key("socket_group = \"daemon\"");
  std::filesystem::permissions(checked.folder(), std::filesystem::perms(0777));
  expect(checked.check({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}), 1,
         "warning: daemon.socket_group: uid 65534 is not in group daemon, so it cannot give the "
         "sockets to that; add SupplementaryGroups=daemon to the unit");
}

#ifndef BATCHWRIGHT_SANITIZED  // in a sanitized program mlock() does nothing, and succeeds
TEST_CASE("daemon: pages that may not be locked are told with the limit") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can become another user");
    return;
  }
  Checked checked;
  REQUIRE(checked.check().code == 0);  // and the file is written
  std::filesystem::permissions(checked.folder(), std::filesystem::perms(0777));
  std::filesystem::permissions(checked.folder() / "data", std::filesystem::perms(0777));
  for (const auto& file : std::filesystem::directory_iterator(checked.folder() / "data")) {
    std::filesystem::permissions(file, std::filesystem::perms(0666));
  }
  Process daemon({"/usr/bin/prlimit", "--memlock=65536:65536", "/usr/bin/setpriv", "--reuid=65534",
                  "--regid=65534", "--clear-groups", program("batchwrightd"), "--config",
                  (checked.folder() / "config.toml").string()});
  CHECK_MESSAGE(eventually([&] {
                  return daemon.err().find(
                             "not locked: this process may lock 0.062 MiB "
                             "(LimitMEMLOCK=, ulimit -l)") != std::string::npos;
                }),
                daemon.err());
}
#endif

TEST_CASE("daemon: what the daemon would refuse to start with is an error") {
  Checked checked;
  SUBCASE("a key of the file") {
    checked.config() += "slotz = 4\n";
    expect(checked.check(), 2, "slotz");
  }
  SUBCASE("an unknown group") {
    checked.insert_daemon_key("socket_group = \"no-such-group\"");
    expect(checked.check(), 2, "error: daemon.socket_group: there is no group \"no-such-group\"");
  }
  SUBCASE("an unknown user") {
    checked.insert_daemon_key("allow_uids = [\"no-such-user\"]");
    expect(checked.check(), 2, "error: daemon.allow_uids: there is no user \"no-such-user\"");
  }
  SUBCASE("a missing key file") {
    checked.insert_daemon_key("curve_secret_key_file = \"/nowhere/k\"");
    expect(checked.check(), 2, "error: /nowhere/k: cannot be read");
  }
  SUBCASE("a key that others can read") {
    const auto key = checked.folder() / "key.secret";
    std::ofstream(key) << std::string(40, 'k');
    std::filesystem::permissions(key, std::filesystem::perms(0644));
    checked.insert_daemon_key("curve_secret_key_file = \"" + key.string() + "\"");
    expect(checked.check(), 2, "error: " + key.string());
  }
}

TEST_CASE("daemon: a way to copy that the processor lacks is an error, and ends the start") {
#if defined(__aarch64__)
  const std::string key = "assembly_copy = \"avx512\"";
#else
  const std::string key = "assembly_copy = \"neon\"";
#endif
  const std::string text =
      "which this machine's processor does not have; allowed here: auto memcpy";
  Checked checked;
  checked.insert_daemon_key(key);
  expect(checked.check(), 2, text);
  DaemonProcess daemon("");
  daemon.config().insert(std::string("[daemon]\n").size(), key + "\n");
  const Finished finished = daemon.start_and_fail();
  CHECK(finished.code == 2);
  CHECK_MESSAGE(finished.err.find(text) != std::string::npos, finished.err);
}

TEST_CASE("daemon: every feed is looked at, and the worst finding counts") {
  Checked checked;
  checked.config() +=
      "[[feed]]\nname = \"a\"\ndataset = \"/nowhere/a\"\n"
      "[[feed]]\nname = \"b\"\ndataset = \"/nowhere/b\"\n";
  expect(checked.check(), 1, "feed a: dataset /nowhere/a does not exist");
  expect(checked.check(), 1, "feed b: dataset /nowhere/b does not exist");
}

TEST_CASE("reload: a user of --reload gets the daemon's verdict as exit code and text") {
  DaemonProcess daemon("");
  REQUIRE(daemon.start());
  const auto reload = [&] {
    std::ofstream(daemon.folder() / "config.toml") << daemon.config();
    return run({program("batchwrightd"), "--reload", std::to_string(daemon.process().pid())});
  };
  const Finished applied = reload();
  CHECK_MESSAGE(applied.code == 0, applied.err);
  CHECK(applied.out == "reloaded: 1 unchanged\n");
  daemon.config() += "slotz = 4\n";
  const Finished refused = reload();
  CHECK(refused.code == 1);
  CHECK_MESSAGE(refused.err.starts_with("not reloaded, the running configuration stays in force: "),
                refused.err);
  CHECK(refused.err.find("slotz") != std::string::npos);
  CHECK(daemon.process().running());
  const Finished nobody = run({program("batchwrightd"), "--reload", "1"});
  CHECK(nobody.code == 1);
  CHECK_MESSAGE(nobody.err.find("process 1 is not a batchwrightd") != std::string::npos,
                nobody.err);
}
