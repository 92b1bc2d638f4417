#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/command/run/run_place.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

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

TEST_CASE(
    "command: where a command fails, a feed that cannot be served is the last that run says") {
  const RunPlace place;
  fs::rename(place.path("data"), place.path("aside"));
  const Finished failed = run(place.shell("echo traceback >&2; exit 3"));
  CHECK(failed.code == 3);
  const std::string line = "batchwright: feed \"train\" is not served: dataset " +
                           place.path("data").string() + " does not exist\n";
  CHECK_MESSAGE(failed.err.ends_with(line), failed.err);
  CHECK(failed.err.find("traceback") < failed.err.rfind(line));
  // A command that does without it succeeds without a word.
  CHECK_FALSE(contains(run(place.shell("exit 0")).err, "batchwright: feed"));
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
