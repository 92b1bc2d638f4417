// How a run can be watched: by commands without an endpoint, by Prometheus, in its own log.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/command/run/run_place.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

std::string command() { return program("batchwright"); }

std::vector<fs::path> textfiles(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}

}  // namespace

TEST_CASE("command: what runs beside a run's command looks at its daemon, and at no other") {
  const RunPlace place;
  const auto beside = [&](const std::string& words) {
    const Finished done = run(place.shell("exec " + command() + " " + words));
    CHECK_MESSAGE(done.code == 0, done.err);
    return done.out;
  };
  CHECK(contains(beside("tail --feed train --epochs 1"), "epoch 0 step 14 batch 14"));
  const std::string page = beside("top --once");
  CHECK(contains(page, "train  serving"));
  CHECK(contains(page, "/stats.sock"));
  CHECK(contains(page, place.runtime().string()));
  CHECK(contains(beside("check"), "feed \"train\": 1 of 1 daemons have 30 sequences"));
  CHECK(contains(beside("bench --feed train --seconds 0.1"), "GB/s"));
  CHECK(place.nothing_left());
}

TEST_CASE("command: a run's daemon is found by its endpoint from elsewhere") {
  const RunPlace place;
  Process run_of(place.shell("echo $BATCHWRIGHT_ENDPOINT; exec sleep 100"));
  REQUIRE(eventually([&] { return contains(run_of.out(), "\n"); }));
  const std::string endpoint = run_of.out().substr(0, run_of.out().find('\n'));
  const Finished top = run({command(), "top", "--once", "--endpoint", endpoint});
  CHECK_MESSAGE(top.code == 0, top.err);
  CHECK(contains(top.out, "train  serving"));
  // Nothing else is looked at where no daemon says where its pages are.
  const Finished none = run({command(), "top", "--once", "--endpoint", endpoint + "x"});
  CHECK(none.code == 2);
  CHECK(none.out == "");
  CHECK(contains(none.err, "no daemon there names its pages"));
  CHECK(contains(none.err, "allowed: --stats"));
  run_of.signal(SIGTERM);
  run_of.wait();
  CHECK(place.nothing_left());
}

TEST_CASE("command: the daemon of a run logs no news, unless its configuration asks for them") {
  RunPlace place;
  const Finished quiet = run(place.shell("exit 0"));
  CHECK(quiet.code == 0);
  // On a machine that is busy a turn of its loop may take long, and that is no news.
  CAPTURE(quiet.err);
  CHECK_FALSE(contains(quiet.err, " info "));
  CHECK_FALSE(contains(quiet.err, " error "));
  place.write_config("log_level = \"info\"");
  CHECK(contains(run(place.shell("exit 0")).err, "info"));
}

TEST_CASE("command: a run writes its daemon's metrics for Prometheus, and takes them away") {
  const RunPlace place;
  const fs::path folder = place.path("textfiles");
  fs::create_directory(folder);
  auto words = place.words({"/bin/sh", "-c", "echo begun; exec sleep 100"});
  words.insert(words.end() - 4, {"--textfile", folder.string()});
  Process runs(words);
  REQUIRE(eventually([&] { return contains(runs.out(), "begun"); }));
  REQUIRE(eventually([&] {
    const auto files = textfiles(folder);
    return files.size() == 1 && files[0].extension() == ".prom";
  }));
  const fs::path file = textfiles(folder)[0];
  const std::string text = read_file(file);
  const std::string name = file.stem().string().substr(std::string("batchwright-").size());
  CHECK(contains(text, "batchwright_ready{run=\"" + name + "\"} "));
  CHECK(contains(text, "# TYPE batchwright_ready gauge\n"));
  CHECK(contains(text, "{run=\"" + name + "\",feed=\"train\""));
  std::size_t samples = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] == '#') continue;
    ++samples;
    CHECK(text.find("{run=\"" + name + "\"", at) < text.find('\n', at));
  }
  CHECK(samples > 50);
  struct stat status = {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & S_IROTH) != 0);  // the collector is another user
  runs.signal(SIGTERM);
  runs.wait();
  CHECK(textfiles(folder).empty());
  CHECK(place.nothing_left());
}

TEST_CASE("command: a signal that a step's manager sends to all comes to the command once") {
  const RunPlace place;
  // It counts what comes, and tells it when asked to end.
  Process runs(
      place.shell("trap 'n=x$n; echo got $n' USR1; trap 'echo all $n; exit 3' TERM; "
                  "echo begun $$; while :; do sleep 0.02; done"));
  REQUIRE(eventually([&] { return contains(runs.out(), "begun"); }));
  const std::string said = runs.out();
  const std::string pid = said.substr(said.find(' ') + 1, said.find('\n') - said.find(' ') - 1);
  // A program of Slurm's name, which is there as long as the manager is.
  const fs::path manager = place.path("slurmstepd");
  fs::copy_file("/bin/sh", manager);
  Process sends({manager.string(), "-c",
                 "kill -USR1 " + std::to_string(runs.pid()) + " " + pid + "; while [ ! -e " +
                     place.path("go").string() + " ]; do sleep 0.02; done"});
  REQUIRE(eventually([&] { return contains(runs.out(), "got x\n"); }));
  // One of any other sender is passed on, after the first, which run has seen by then.
  runs.signal(SIGUSR1);
  REQUIRE(eventually([&] { return contains(runs.out(), "got xx\n"); }));
  runs.signal(SIGTERM);
  CHECK(runs.wait() == 3);
  CHECK(contains(runs.out(), "all xx\n"));
  std::ofstream(place.path("go")) << "go";
  sends.wait();
}

#ifndef BATCHWRIGHT_SANITIZED  // whose runtime wants to be loaded first
TEST_CASE("command: a step's manager ends a run before its daemon or its command is there") {
  const auto is_stopped = [](pid_t pid) {
    return contains(read_file("/proc/" + std::to_string(pid) + "/status"), "State:\tT");
  };
  for (const int forks : {0, 1}) {
    CAPTURE(forks);
    const RunPlace place;
    std::vector<std::string> words = place.shell("exec sleep 20");
    words.insert(words.begin(), {"/usr/bin/env", "LD_PRELOAD=" STOP_AT_FORK});
    Process runs(words);
    for (int before = 0; before < forks; ++before) {
      REQUIRE(eventually([&] { return is_stopped(runs.pid()); }));
      runs.signal(SIGCONT);
      REQUIRE(eventually([&] { return !is_stopped(runs.pid()); }));
    }
    REQUIRE(eventually([&] { return is_stopped(runs.pid()); }));
    const fs::path manager = place.path("slurmstepd");
    fs::copy_file("/bin/sh", manager);
    Process sends({manager.string(), "-c",
                   "kill -TERM " + std::to_string(runs.pid()) + "; echo sent; while [ ! -e " +
                       place.path("go").string() + " ]; do sleep 0.02; done"});
    REQUIRE(eventually([&] { return contains(sends.out(), "sent"); }));
    // It may have forks to come.
    const auto ended = [&] {
      if (is_stopped(runs.pid())) runs.signal(SIGCONT);
      return !runs.running();
    };
    CHECK(eventually(ended));
    CHECK(runs.wait() == 128 + SIGTERM);
    std::ofstream(place.path("go")) << "go";
    sends.wait();
  }
}
#endif

TEST_CASE("command: a call that is nearly right is told what was meant") {
  const RunPlace place;
  const auto refused = [](const std::vector<std::string>& words) {
    std::vector<std::string> all = {command()};
    all.insert(all.end(), words.begin(), words.end());
    const Finished done = run(all);
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK(contains(refused({"run", "--config", place.config(), "python3", "-c", "pass"}),
                 "write -- before the command"));
  CHECK(contains(refused({"ingest", "audio", "a", "--into", "b", "--mels", "80"}),
                 "no option --mels; did you mean --mel-bands"));
  CHECK(contains(refused({"plan", "--dataset", "a", "--ordr", "random"}),
                 "did you mean --order or --order-file?"));
  CHECK(contains(refused({"plan", "--dataset", "a", "--zzz", "1"}), "--zzz"));
}
