// What a daemon meets: logs that are not read, limits, other daemons, files that are none.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "client/library/batchwright/client.hpp"
#include "tests/integration/daemon_process.h"
#include "tests/support/text.h"

using namespace batchwright;
using namespace batchwright::test;
namespace fs = std::filesystem;

namespace {

/// Whether a job comes, takes a batch and leaves.
bool serves(const std::string& endpoint) {
  try {
    client::ConnectOptions options;
    options.limit = std::chrono::seconds(10);
    client::Connection connection(endpoint, options);
    auto subscription = connection.subscribe({.feed = "train", .mode = BW_REPLICA});
    return subscription.next(std::chrono::seconds(10)).is_batch();
  } catch (const client::Error& error) {
    MESSAGE(error.what());
    return false;
  }
}

bool answers(const fs::path& socket) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  socket.string().copy(where.sun_path, sizeof where.sun_path - 1);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
}

/// A pipe with a name that is standard error of a daemon, and its end for the reader.
class Log {
 public:
  explicit Log(const fs::path& path) : path_(path) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    reader_ = Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader_);
    REQUIRE(::fcntl(reader_.get(), F_SETPIPE_SZ, 4096) == 4096);
  }

  std::string redirection() const { return "exec 2> " + path_.string(); }
  void leave() { reader_ = Descriptor(); }
  std::string read() const {
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::read(reader_.get(), piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  fs::path path_;
  Descriptor reader_;
};

constexpr int kJobs = 40;  // each logs some lines: more than the pipe has room for

}  // namespace

TEST_CASE("daemon: a log that no one reads stops nothing, and is there when someone does") {
  DaemonProcess daemon("slots = 4");
  const Log log(daemon.folder() / "log");
  daemon.launch_behind(log.redirection());
  REQUIRE(eventually([&] { return answers(daemon.folder() / "s.arena"); }));
  int served = 0;
  for (int i = 0; i < kJobs; ++i) served += serves(daemon.endpoint()) ? 1 : 0;
  CHECK(served == kJobs);
  std::string text;
  // Every line, in order, though most of them were written when there was no room.
  CHECK(eventually([&] {
    text += log.read();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(" subscribes", at)) != std::string::npos; ++at) {
      ++found;
    }
    return found == kJobs;
  }));
  for (int i = 0; i < kJobs; ++i) serves(daemon.endpoint());
  daemon.process().signal(SIGTERM);
  CHECK(daemon.process().wait() == 0);
}

TEST_CASE("daemon: the end of the log's reader does not end it") {
  DaemonProcess daemon("slots = 4");
  Log log(daemon.folder() / "log");
  daemon.launch_behind(log.redirection());
  REQUIRE(eventually([&] { return answers(daemon.folder() / "s.arena"); }));
  log.leave();
  for (int i = 0; i < 3; ++i) CHECK(serves(daemon.endpoint()));
  daemon.process().signal(SIGTERM);
  CHECK(daemon.process().wait() == 0);
}

TEST_CASE("daemon: of several that are started at once after a kill one serves, by both sockets") {
  DaemonProcess first("slots = 4");
  constexpr int kRounds = 6;
  constexpr int kAtOnce = 3;
  REQUIRE(first.start());
  const fs::path socket = first.folder() / "s";
  const std::vector<std::string> words = {program("batchwrightd"), "--config",
                                          (first.folder() / "config.toml").string()};
  std::vector<std::unique_ptr<Process>> daemons;
  first.process().signal(SIGKILL);
  first.process().wait();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kAtOnce; ++i) daemons.push_back(std::make_unique<Process>(words));
    const auto living = [&daemons] {
      std::size_t count = 0;
      for (const auto& each : daemons) count += each->running() ? 1U : 0U;
      return count;
    };
    REQUIRE(eventually([&] { return living() == 1; }));
    REQUIRE(eventually([&] { return answers(socket) && answers(socket.string() + ".arena"); }));
    CHECK(serves(first.endpoint()));
    CHECK(living() == 1);
    for (const auto& each : daemons) each->signal(SIGKILL);
    daemons.clear();
  }
}

TEST_CASE("daemon: each socket that another daemon has is refused, be its own ones free") {
  DaemonProcess first("slots = 4");
  const std::string stats = "unix://" + (first.folder() / "stats").string();
  const std::string events = "ipc://" + (first.folder() / "events").string();
  const auto place = [&](DaemonProcess& daemon) {
    daemon.config().replace(daemon.config().find("127.0.0.1:0"), 11, stats);
    daemon.config().insert(daemon.config().find("memory"), "events = \"" + events + "\"\n");
  };
  place(first);
  REQUIRE(first.start());
  SUBCASE("both") {
    DaemonProcess second("slots = 4");
    place(second);
    const Finished refused = second.start_and_fail();
    CHECK(refused.code == 1);
    CHECK(contains(refused.err, "stats: another daemon answers there"));
  }
  SUBCASE("events") {
    DaemonProcess second("slots = 4");
    second.config().insert(second.config().find("memory"), "events = \"" + events + "\"\n");
    const Finished refused = second.start_and_fail();
    CHECK(refused.code == 1);
    CHECK(contains(refused.err, "events: another daemon answers there"));
  }
  CHECK(first.process().running());
  CHECK(answers(first.folder() / "stats"));
  CHECK(answers(first.folder() / "events"));
}

TEST_CASE("daemon: a file above the limit of sizes is an error that names the limit") {
  DaemonProcess daemon("slots = 64", 4000);
  daemon.launch_behind("ulimit -f 32");
  const auto said = [&] {
    return contains(daemon.process().err(), "a file may have 16384 bytes: ulimit -f");
  };
  CHECK(eventually([&] { return said() || !daemon.process().running(); }));
  CHECK_MESSAGE(said(), daemon.process().err());
  CHECK(daemon.process().running());
}

TEST_CASE("daemon: where threads lack the start says how many it needs") {
  DaemonProcess daemon("slots = 4");
  // A stack that no address space has room for: no thread can be had.
  daemon.launch_behind("ulimit -s 137438953472");
  CHECK(daemon.process().wait() == 1);
  CHECK_MESSAGE(contains(daemon.process().err(), "needs 6 threads, and none could be started"),
                daemon.process().err());
}

TEST_CASE("daemon: a client that has no threads gets an error") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  const Finished done = run({"/bin/sh", "-c",
                             "ulimit -s 137438953472; exec " + program("batchwright") +
                                 " tail --feed train --epochs 1 --endpoint " + daemon.endpoint()});
  CHECK(done.code == 1);
  CHECK_MESSAGE(contains(done.err, "a connection needs 2 threads, and none could be started"),
                done.err);
}

TEST_CASE("daemon: a reload of what is no file, or has very deep keys, is refused") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  const fs::path file = daemon.folder() / "config.toml";
  const std::string before = daemon.config();
  daemon.config() += "[x";
  for (int i = 0; i < 100'000; ++i) daemon.config() += ".a";
  daemon.config() += "]\n";
  CHECK_FALSE(daemon.reload());
  CHECK(contains(daemon.process().err(), "more than 64 dots"));
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_FALSE(daemon.reload_as_it_is());
  CHECK(contains(daemon.process().err(), "found a pipe; allowed: a file, or /dev/stdin"));
  CHECK(run({program("batchwrightd"), "--check-config", "--config", file}).code == 2);
  daemon.process().signal(SIGTERM);
  CHECK(daemon.process().wait() == 0);
}

TEST_CASE("daemon: a configuration from a pipe is served, and not read again") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(::mkfifo((daemon.folder() / "pipe").c_str(), 0600) == 0);
  daemon.launch_behind("set -- \"$1\" --config /dev/stdin; exec < " +
                       (daemon.folder() / "pipe").string());
  std::ofstream(daemon.folder() / "pipe") << daemon.config();
  REQUIRE(eventually([&] { return contains(daemon.process().err(), "ready: "); }));
  CHECK_FALSE(daemon.reload_as_it_is());
  CHECK(contains(daemon.process().err(), "is no file, and was read when the daemon started"));
  CHECK(serves(daemon.endpoint()));
}

TEST_CASE("daemon: signals are heard whatever the parent has done with them") {
  DaemonProcess daemon("slots = 4");
  for (const char* const how : {"--ignore-signal", "--block-signal"}) {
    CAPTURE(how);
    daemon.launch_behind("set -- env " + std::string(how) + "=TERM,INT,PIPE,CHLD \"$@\"");
    REQUIRE(eventually([&] { return contains(daemon.process().err(), "ready: "); }));
    daemon.process().signal(SIGTERM);
    CHECK(daemon.process().wait() == 0);
  }
}

TEST_CASE("daemon: a client's limits hold while the daemon is stopped") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  client::Connection connection(daemon.endpoint());
  auto subscription = connection.subscribe({.feed = "train", .mode = BW_REPLICA, .window = 1});
  const client::Event first = subscription.next(std::chrono::seconds(20));
  REQUIRE(first.is_batch());
  daemon.process().signal(SIGSTOP);
  constexpr std::chrono::milliseconds kLimit{100};
  constexpr std::chrono::seconds kFar{5};  // a crowded machine's, and less than any limit of ours
  const auto ends_soon = [&](const auto& call) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_AS(call(), client::Error);
    CHECK(std::chrono::steady_clock::now() - begin < kFar);
  };
  ends_soon([&] { static_cast<void>(subscription.next(kLimit)); });
  client::ConnectOptions options;
  options.limit = kLimit;
  ends_soon([&] { client::Connection another(daemon.endpoint(), options); });
  ends_soon([&] { client::Connection unknown("tcp://no-such-host.invalid:9476", options); });
  daemon.process().signal(SIGCONT);
}
