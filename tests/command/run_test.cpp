#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

/// A configuration without an endpoint, and a runtime folder of its own.
class RunPlace {
 public:
  explicit RunPlace(const std::string& daemon = "") {
    make_small_dataset(folder_ / "data", std::vector<std::uint32_t>(30, 5));
    write_config(daemon);
    fs::create_directory(runtime());
  }

  void write_config(const std::string& daemon) const {
    std::ofstream(config()) << "[daemon]\nmemory = \"64MiB\"\nassembly_threads = 1\n"
                            << daemon << "\n[[feed]]\nname = \"train\"\ndataset = \""
                            << (folder_ / "data").string()
                            << "\"\nslots = 4\n[feed.plan]\nsize = 2\n";
  }

  fs::path runtime() const { return folder_ / "runtime"; }
  std::string config() const { return (folder_ / "config.toml").string(); }
  fs::path path(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> words(const std::vector<std::string>& command) const {
    std::vector<std::string> all = {"/usr/bin/env",
                                    "XDG_RUNTIME_DIR=" + runtime().string(),
                                    program("batchwright"),
                                    "run",
                                    "--config",
                                    config(),
                                    "--"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  /// A shell's script as the command.
  std::vector<std::string> shell(const std::string& script) const {
    return words({"/bin/sh", "-c", script});
  }
  /// Takes all batches of so many epochs, slowly at first.
  std::vector<std::string> taker(int epochs) const {
    return shell("exec " + program("batchwright") + " tail --feed train --json --epochs " +
                 std::to_string(epochs) + " --endpoint $BATCHWRIGHT_ENDPOINT");
  }

  /// Daemons that serve the configuration.
  std::vector<pid_t> daemons() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        continue;
      }
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      std::ostringstream read;  // of a process that ends meanwhile: nothing, and no exception
      read << file.rdbuf();
      const std::string words = read.str();
      const std::string program = words.substr(0, words.find('\0'));
      if (program.ends_with("batchwrightd") && contains(words, config())) {
        found.push_back(std::stoi(name));
      }
    }
    return found;
  }
  bool nothing_left() const { return daemons().empty() && fs::is_empty(runtime()); }

 private:
  TemporaryFolder folder_;
};

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("command: run gives a command a daemon, its exit code, and leaves nothing") {
  const RunPlace place;
  const Finished done =
      run(place.shell("echo $BATCHWRIGHT_ENDPOINT; ls $(dirname "
                      "${BATCHWRIGHT_ENDPOINT#ipc://}); exit 7"));
  CHECK(done.code == 7);
  CHECK(contains(done.out, "ipc://" + place.runtime().string() + "/batchwright-"));
  CHECK(contains(done.out, "batchwright.sock"));
  CHECK(contains(done.out, "stats.sock"));
  CHECK(place.nothing_left());
  CHECK(run(place.shell("kill -9 $$")).code == 128 + SIGKILL);
  const Finished batches = run(place.taker(2));
  CHECK_MESSAGE(batches.code == 0, batches.err);
  CHECK(lines_of(batches.out) == 30);
  CHECK(place.nothing_left());
}

TEST_CASE("command: runs of one configuration share a daemon, which ends with the last of them") {
  const RunPlace place;
  Process first(place.shell("echo begun; while [ ! -e " + place.path("go-1").string() +
                            " ]; do sleep 0.02; done; exit 3"));
  REQUIRE(eventually([&] { return contains(first.out(), "begun"); }));
  Process second(place.shell("echo begun; while [ ! -e " + place.path("go-2").string() +
                             " ]; do sleep 0.02; done; exit 4"));
  REQUIRE(eventually([&] { return contains(second.out(), "begun"); }));
  const auto shared = place.daemons();
  CHECK(shared.size() == 1);
  // The first owns the daemon, and waits for the other.
  std::ofstream(place.path("go-1")) << "go";
  CHECK_FALSE(first.wait(1));
  CHECK(place.daemons() == shared);
  std::ofstream(place.path("go-2")) << "go";
  CHECK(second.wait() == 4);
  CHECK(first.wait() == 3);
  CHECK(place.nothing_left());
}

TEST_CASE("command: runs that come and go at once never meet without a daemon, or with two") {
  const RunPlace place;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<Process>> runs;
    for (int i = 0; i < 6; ++i) runs.push_back(std::make_unique<Process>(place.taker(1)));
    for (const auto& run : runs) {
      CHECK_MESSAGE(run->wait(60) == 0, run->err());
      CHECK(lines_of(run->out()) == 15);
    }
    CHECK(place.nothing_left());
  }
}

TEST_CASE("command: a daemon that dies is started again, and one whose owner was killed") {
  const RunPlace place;
  Process owner(place.shell("echo begun; sleep 100"));
  REQUIRE(eventually([&] { return contains(owner.out(), "begun"); }));
  // More batches than both deaths take time.
  Process taker(place.taker(60));
  REQUIRE(eventually([&] { return lines_of(taker.out()) > 10; }));
  SUBCASE("the daemon") {
    const auto before = place.daemons();
    REQUIRE(before.size() == 1);
    ::kill(before.front(), SIGKILL);
  }
  SUBCASE("its owner") { owner.signal(SIGKILL); }
  CHECK(taker.wait(60) == 0);
  CHECK(lines_of(taker.out()) == 60 * 15);
  owner.signal(SIGTERM);
  owner.wait();
  CHECK(eventually([&] { return place.nothing_left(); }));
}

TEST_CASE("command: run passes signals on, and ends before the daemon is ready when asked to") {
  const RunPlace place;
  Process runs(
      place.shell("trap 'echo told; exit 5' USR1; echo begun; while :; do sleep 0.02; done"));
  REQUIRE(eventually([&] { return contains(runs.out(), "begun"); }));
  runs.signal(SIGUSR1);
  CHECK(runs.wait() == 5);
  CHECK(contains(runs.out(), "told"));
  Process ends(place.shell("echo begun; exec sleep 100"));
  REQUIRE(eventually([&] { return contains(ends.out(), "begun"); }));
  ends.signal(SIGTERM);
  CHECK(ends.wait() == 128 + SIGTERM);
  CHECK(place.nothing_left());
  // A shell that is stopped, and so never becomes a daemon that listens.
  const auto words = place.words({"/bin/true"});
  std::vector<std::string> never(words.begin(), words.end() - 2);
  std::ofstream(place.path("never")) << "#!/bin/sh\nexec sleep 100\n";
  fs::permissions(place.path("never"), fs::perms::owner_all);
  never.insert(never.end(), {"--daemon", place.path("never"), "--", "/bin/true"});
  Process waits(never);
  REQUIRE(eventually([&] { return !fs::is_empty(place.runtime()); }));
  waits.signal(SIGTERM);
  CHECK(waits.wait() == 128 + SIGTERM);
  CHECK(fs::is_empty(place.runtime()));
}

TEST_CASE("command: what a run cannot have is told, and the command is not run") {
  RunPlace place;
  const auto refused = [&](int code) {
    const Finished done = run(place.words({"/bin/echo", "was-run"}));
    CHECK(done.code == code);
    CHECK_FALSE(contains(done.out, "was-run"));
    return done.err;
  };
  CHECK(contains(run(place.words({"/no/such/program"})).err, "/no/such/program: No such file"));
  CHECK(place.nothing_left());
  place.write_config("endpoints = [\"tcp://127.0.0.1:1\"]\ninsecure = true");
  CHECK(contains(refused(2), "run needs one that begins with ipc://"));
  place.write_config("memory_ = 1");
  CHECK(contains(refused(2), "memory_"));
  // The daemon itself has to refuse this one.
  place.write_config("stats = \"192.0.2.1:1\"");
  CHECK(contains(refused(2), "serves nothing"));
  place.write_config("");
  const Finished once = run(place.shell("dirname ${BATCHWRIGHT_ENDPOINT#ipc://}"));
  const fs::path folder = once.out.substr(0, once.out.find('\n'));
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::all);
  CHECK(contains(refused(1), "it is not a folder of this user alone"));
}

TEST_CASE("command: a run at a named endpoint joins what listens there, if it has the feeds") {
  RunPlace place;
  const std::string endpoint = "ipc://" + place.path("s").string();
  place.write_config("endpoints = [\"" + endpoint + "\"]\nstats = \"\"");
  Process first(place.shell("echo begun; exec sleep 100"));
  REQUIRE(eventually([&] { return contains(first.out(), "begun"); }));
  // Another text, and so perhaps other batches, at the same place.
  const std::string before = read_file(place.config());
  std::ofstream(place.config(), std::ios::app) << "seed = 8\n";
  const Finished other = run(place.words({"/bin/echo", "was-run"}));
  CHECK(other.code != 0);
  CHECK(contains(other.err, "a daemon of another configuration runs at " + endpoint));
  std::ofstream(place.config()) << before;
  first.signal(SIGTERM);
  CHECK(first.wait() == 128 + SIGTERM);
  CHECK(place.daemons().empty());
  // One that no run has started.
  Process daemon({program("batchwrightd"), "--config", place.config()});
  REQUIRE(eventually([&] { return contains(daemon.err(), "feed train: arena"); }));
  CHECK(run(place.shell("exit 9")).code == 9);
  CHECK(daemon.running());
  std::ofstream(place.config(), std::ios::app)
      << "[[feed]]\nname = \"more\"\ndataset = \"" << place.path("data").string() << "\"\n";
  const Finished lacking = run(place.words({"/bin/echo", "was-run"}));
  CHECK(lacking.code != 0);
  CHECK(contains(lacking.err, "has no feed \"more\"; it has: train"));
  daemon.signal(SIGTERM);
  CHECK(daemon.wait() == 0);
}
