// What a run meets: folders, signals, locks, streams and users that others have arranged.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/command/run/run_place.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

/// The words after `env` and these of its options and variables.
std::vector<std::string> with_env(std::vector<std::string> options,
                                  const std::vector<std::string>& words) {
  options.insert(options.begin(), "/usr/bin/env");
  options.insert(options.end(), words.begin() + 1, words.end());
  return options;
}

std::vector<std::string> sh(const std::string& script) { return {"/bin/sh", "-c", script}; }

/// A run of another configuration's file, by a shell.
std::string run_line(const RunPlace& place, const std::string& config, const std::string& command) {
  return "XDG_RUNTIME_DIR=" + place.runtime().string() + " " + program("batchwright") +
         " run --config " + config + " -- /bin/sh -c '" + command + "'";
}

std::string tail_line() {
  return "exec " + program("batchwright") +
         " tail --feed train --json --epochs 1 --endpoint $BATCHWRIGHT_ENDPOINT";
}

bool is_held_back(pid_t process, int number) {
  const std::string place = "/proc/" + std::to_string(process);
  // While it is waited for, the kernel does not show it as blocked.
  if (contains(read_file(place + "/wchan"), "sigtimedwait")) return true;
  const std::string status = read_file(place + "/status");
  const std::size_t at = status.find("SigBlk:");
  if (at == std::string::npos) return false;
  return (std::strtoull(status.c_str() + at + 7, nullptr, 16) >> (number - 1) & 1) != 0;
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("command: runs of one text in two folders have the data of their own folder") {
  const RunPlace place;
  for (const auto& [name, sequences] : {std::pair("a", 30U), std::pair("b", 10U)}) {
    fs::create_directory(place.path(name));
    make_small_dataset(place.path(name) / "data", std::vector<std::uint32_t>(sequences, 5));
    std::ofstream(place.path(name) / "job.toml")
        << "[daemon]\nmemory = \"64MiB\"\nassembly_threads = 1\n[[feed]]\nname = \"train\"\n"
           "dataset = \"data\"\nslots = 4\n[feed.plan]\nsize = 2\n";
  }
  const auto in = [&](const std::string& name, const std::string& command) {
    return sh("cd " + place.path(name).string() + " && " + run_line(place, "job.toml", command));
  };
  Process first(in("a", "echo begun; exec sleep 100"));
  REQUIRE(eventually([&] { return contains(first.out(), "begun"); }));
  const Finished other = run(in("b", tail_line()));
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK(count_lines(other.out) == 5);
  const Finished same = run(in("a", tail_line()));
  CHECK(count_lines(same.out) == 15);
  first.signal(SIGTERM);
}

TEST_CASE("command: run has its command's code, whatever its parent does with signals") {
  const RunPlace place;
  const auto exits = [&](const std::vector<std::string>& options) {
    return run(with_env(options, place.shell("exit 3"))).code;
  };
  CHECK(exits({"--ignore-signal=CHLD"}) == 3);
  CHECK(exits({"--block-signal=CHLD"}) == 3);
  CHECK(exits({"--ignore-signal=PIPE"}) == 3);
  CHECK(place.nothing_left());
  Process ends(with_env({"--block-signal"}, place.shell("echo begun; exec sleep 100")));
  REQUIRE(eventually([&] { return contains(ends.out(), "begun"); }));
  ends.signal(SIGTERM);
  CHECK(ends.wait() == 128 + SIGTERM);
}

TEST_CASE("command: a run's command has signals as a shell would give them") {
  const RunPlace place;
  const Finished done =
      run(with_env({"--ignore-signal=CHLD", "--ignore-signal=PIPE", "--ignore-signal=HUP",
                    "--block-signal=USR1"},
                   place.words({"/bin/grep", "-E", "SigBlk|SigIgn", "/proc/self/status"})));
  CHECK(contains(done.out, "SigBlk:\t0000000000000000"));
  // What nohup has set goes on, and nothing else.
  CHECK(contains(done.out, "SigIgn:\t0000000000000001"));
}

TEST_CASE("command: a run whose folder goes has its command's code, and its daemon comes back") {
  const RunPlace place;
  const std::string remove = "rm -r " + place.runtime().string() + "; ";
  const Finished alone = run(place.shell(remove + "exit 7"));
  CHECK_MESSAGE(alone.code == 7, alone.err);
  CHECK(place.daemons().empty());
  fs::create_directories(place.runtime());
  const Finished served = run(place.shell(remove + tail_line()));
  CHECK_MESSAGE(served.code == 0, served.err);
  CHECK(count_lines(served.out) == 15);
  CHECK(place.daemons().empty());
}

TEST_CASE("command: a folder that another run has made again is left alone by the one before it") {
  const RunPlace place;
  Process first(place.shell("echo begun; while [ ! -e " + place.path("go").string() +
                            " ]; do sleep 0.02; done"));
  REQUIRE(eventually([&] { return contains(first.out(), "begun"); }));
  first.signal(SIGSTOP);  // it sees nothing of what follows
  fs::remove_all(place.runtime());
  fs::create_directory(place.runtime());
  Process second(place.shell("echo begun; exec sleep 100"));
  REQUIRE(eventually([&] { return contains(second.out(), "begun"); }));
  std::ofstream(place.path("go")) << "go";
  first.signal(SIGCONT);
  CHECK(first.wait() == 0);
  const Finished third = run(place.shell(tail_line()));
  CHECK_MESSAGE(third.code == 0, third.err);
  CHECK(count_lines(third.out) == 15);
  second.signal(SIGTERM);
  second.wait();
  CHECK(eventually([&] { return place.nothing_left(); }));
}

TEST_CASE("command: run's folder is in /tmp where the runtime folder will not do, and says why") {
  const RunPlace place;
  const auto with = [&](const std::vector<std::string>& variables) {
    auto words = place.words({"/bin/sh", "-c", "echo $BATCHWRIGHT_ENDPOINT"});
    words.erase(words.begin() + 1);
    return run(with_env(variables, words));
  };
  const Finished slurm = with({"XDG_RUNTIME_DIR=" + place.runtime().string(), "SLURM_JOB_ID=4711"});
  CHECK(contains(slurm.out, "ipc:///tmp/batchwright-4711-"));
  CHECK_FALSE(contains(slurm.err, "XDG_RUNTIME_DIR"));
  const Finished relative = with({"XDG_RUNTIME_DIR=runtime"});
  CHECK(contains(relative.out, "ipc:///tmp/batchwright-"));
  CHECK(contains(relative.err, "XDG_RUNTIME_DIR=runtime is no absolute path"));
  const fs::path deep = place.path(std::string(100, 'x'));
  fs::create_directory(deep);
  const Finished too_long = with({"XDG_RUNTIME_DIR=" + deep.string()});
  CHECK(contains(too_long.out, "ipc:///tmp/batchwright-"));
  CHECK(contains(too_long.err, "XDG_RUNTIME_DIR=" + deep.string() + " is too long"));
  if (::geteuid() != 0) return;  // no one else can give a folder away
  REQUIRE(::chown(place.runtime().c_str(), 65534, 65534) == 0);
  const Finished other = with({"XDG_RUNTIME_DIR=" + place.runtime().string()});
  CHECK(contains(other.out, "ipc:///tmp/batchwright-"));
  CHECK(contains(other.err, "is a folder of user 65534"));
}

TEST_CASE("command: a daemon that is killed before it listens is started again, a few times") {
  const RunPlace place;
  const std::string mark = place.path("mark").string();
  const auto with_daemon = [&](const std::string& script) {
    std::ofstream(place.path("daemon")) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(place.path("daemon"), fs::perms::owner_all);
    auto words = place.words({"/bin/sh", "-c", "exit 4"});
    words.insert(words.end() - 4, {"--daemon", place.path("daemon").string()});
    return words;
  };
  CHECK(run(with_daemon("[ -e " + mark + " ] || { touch " + mark + "; kill -9 $$; }\nexec " +
                        program("batchwrightd") + " \"$@\""))
            .code == 4);
  const Finished never = run(with_daemon("kill -9 $$"));
  CHECK(never.code == 1);
  CHECK(contains(never.err, "was ended by signal 9 before it listened"));
  CHECK(fs::is_empty(place.runtime()));
}

TEST_CASE("command: run hears signals while another has its locks") {
  RunPlace place;
  const std::string socket = place.path("s").string();
  place.write_config("endpoints = [\"ipc://" + socket + "\"]\nstats = \"\"");
  for (const char* const name : {".users", ".owner"}) {
    CAPTURE(name);
    Process holds({"/usr/bin/flock", "--no-fork", socket + name, "/bin/sh", "-c",
                   "echo held; exec sleep 100"});
    REQUIRE(eventually([&] { return contains(holds.out(), "held"); }));
    Process waits(place.shell("exit 5"));
    REQUIRE(eventually([&] { return is_held_back(waits.pid(), SIGTERM); }));
    waits.signal(SIGTERM);
    CHECK(waits.wait() == 128 + SIGTERM);
  }
  CHECK(run(place.shell("exit 5")).code == 5);
}

TEST_CASE("command: a configuration that can be read once only is one") {
  const RunPlace place;
  const std::string command = " -- /bin/sh -c '" + tail_line() + "'";
  const std::string call = "XDG_RUNTIME_DIR=" + place.runtime().string() + " " +
                           program("batchwright") + " run --config ";
  const Finished stdin_ = run(sh("cat " + place.config() + " | " + call + "/dev/stdin" + command));
  CHECK_MESSAGE(stdin_.code == 0, stdin_.err);
  CHECK(count_lines(stdin_.out) == 15);
  const Finished process =
      run({"/bin/bash", "-c", call + "<(cat " + place.config() + ")" + command});
  CHECK_MESSAGE(process.code == 0, process.err);
  CHECK(count_lines(process.out) == 15);
  CHECK(fs::is_empty(place.runtime()));
  REQUIRE(::mkfifo(place.path("pipe").c_str(), 0600) == 0);
  const Finished pipe = run(sh(call + place.path("pipe").string() + command));
  CHECK(pipe.code == 2);
  CHECK(contains(pipe.err, "found a pipe; allowed: a file, or /dev/stdin"));
}

TEST_CASE("command: the end of standard error's reader ends neither run, daemon nor command") {
  const RunPlace place;
  const Finished done = run(sh("( " + run_line(place, place.config(), "sleep 0.3; " + tail_line()) +
                               " > " + place.path("out").string() + "; echo $? > " +
                               place.path("code").string() + " ) 2>&1 | true"));
  CHECK(done.code == 0);
  CHECK(read_file(place.path("code")) == "0\n");
  CHECK(count_lines(read_file(place.path("out"))) == 15);
}

TEST_CASE("command: run joins no daemon of a user who is neither this one nor the folder's owner") {
  if (::geteuid() != 0) return;  // no one else can be another user
  RunPlace place;
  const fs::path open = place.path("open");
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  fs::permissions(open.parent_path(), fs::perms::others_exec, fs::perm_options::add);
  const std::string socket = (open / "s").string();
  place.write_config("endpoints = [\"ipc://" + socket + "\"]\nstats = \"\"");
  Process other({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                 "/usr/bin/python3", "-c",
                 "import socket, time\nkept = []\nfor name in ('', '.arena'):\n"
                 "  kept.append(socket.socket(socket.AF_UNIX))\n  kept[-1].bind('" +
                     socket +
                     "' + name)\n  kept[-1].listen()\nprint('there', flush=True)\n"
                     "time.sleep(100)"});
  REQUIRE(eventually([&] { return contains(other.out(), "there"); }));
  const Finished refused = run(place.shell("echo was-run"));
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "the process that listens there is of user 65534; allowed: user 0"));
  CHECK_FALSE(contains(refused.out, "was-run"));
}
