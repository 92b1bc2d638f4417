// What a batch that is held keeps, and what a client lets go of.

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Read-only mappings of a fake daemon's arena in this process; the daemon's own is writable.
int mapped_arenas() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("fake-arena") != std::string::npos && line.find(" r--s ") != std::string::npos) {
      ++count;
    }
  }
  return count;
}

/// Whether the other end of a descriptor is where `endpoint` says.
bool leads_to(int fd, const std::string& endpoint) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  if (peer.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(peer);
    return endpoint.ends_with(":" + std::to_string(ntohs(address.sin_port)));
  }
  const auto& address = reinterpret_cast<const sockaddr_un&>(peer);
  return peer.ss_family == AF_UNIX && endpoint == std::string("ipc://") + address.sun_path;
}

int connections_to(const std::string& endpoint) {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += leads_to(fd, endpoint) ? 1 : 0;
  return count;
}

/// What a forked child finds; it touches nothing that a lock may guard.
int connections_in_child(const std::string& endpoint) {
  const pid_t child = fork();
  if (child == 0) _exit(connections_to(endpoint));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// How often ZeroMQ's threads that move bytes were woken so far.
std::uint64_t wakeups() {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (name.find("/IO/") == std::string::npos) continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      std::uint64_t count = 0;
      if (word == "voluntary_ctxt_switches:" && status >> count) sum += count;
    }
  }
  return sum;
}

constexpr auto kNothingLost = [](const FakeDaemon::Heard& heard) { return heard.lost == 0; };
constexpr auto kOneLost = [](const FakeDaemon::Heard& heard) { return heard.lost == 1; };

}  // namespace

TEST_CASE("client: a held batch keeps its arena's connection when its session is replaced") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 1, 1);
  auto first = next_batch(subscription);
  auto second = next_batch(subscription);
  wire::RefusedT refused;
  refused.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
  refused.message = "no session";
  daemon.send(std::move(refused));
  REQUIRE(hears_in_a_wait(daemon, subscription,
                          [](const auto& heard) { return heard.hellos.size() == 2; }));
  first.reset();
  REQUIRE(hears_in_a_wait(daemon, subscription,
                          [](const auto& heard) { return heard.subscribed.size() == 2; }));
  CHECK(daemon.has_heard(kNothingLost));
  second.reset();
  CHECK(daemon.hears(kOneLost));
}

TEST_CASE("client: memory that cannot be mapped for one feed leaves batches of another alone") {
  FakeDaemon daemon({.second = ThreadPolicy::Second::too_large});
  const auto connection = connect(daemon.endpoint());
  const auto one = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(one);
  const auto two = subscribe(connection);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.hellos.size() == 2 && heard.hellos[1].inline_batches;
  }));
  // The daemon would take Bye for a promise that nothing is held.
  CHECK(daemon.has_heard([](const auto& heard) { return heard.byes == 0 && heard.lost == 0; }));
  batch.reset();
  CHECK(daemon.hears(kOneLost));
}

TEST_CASE("client: an arena that comes too late leaves batches of another feed alone") {
  FakeDaemon daemon({.second = ThreadPolicy::Second::late});
  bw_connect_options options = connecting();
  options.timeout_ms = 500;
  const auto connection = connect(daemon.endpoint(), options);
  const auto one = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  auto batch = next_batch(one);
  const auto again = [](const auto& heard) { return heard.hellos.size() == 2; };
  // The limit counts from when the arena is first asked for: a call whose grant took a while ends
  // before that, and the next call meets the end.
  SubscriptionHandle two;
  for (int i = 0; i < 10 && !daemon.has_heard(again); ++i) {
    bw_subscription* raw = nullptr;
    const bw_subscribe_options what = train();
    static_cast<void>(bw_subscribe(connection.get(), &what, &raw));
    two.reset(raw);
    static_cast<void>(next_status(one, 20));  // a client speaks while it waits
  }
  REQUIRE(hears_in_a_wait(daemon, one, again));
  CHECK(daemon.has_heard(kNothingLost));
  batch.reset();
  CHECK(daemon.hears(kOneLost));
}

TEST_CASE("client: a lost daemon's arena is unmapped although the program makes no call") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  BatchHandle batch = next_batch(subscription);
  REQUIRE(mapped_arenas() == 1);
  SUBCASE("nothing is held") {
    batch.reset();
    CHECK(mapped_arenas() == 1);
    daemon.die();
    CHECK(eventually([] { return mapped_arenas() == 0; }));
  }
  SUBCASE("a batch is held") {
    daemon.die();
    const float value = static_cast<const float*>(bw_batch_tensor(batch.get(), 0)->data)[9];
    CHECK(value == FakeDaemon::value(0, 1, 1, 1));
    CHECK(mapped_arenas() == 1);
    batch.reset();
    CHECK(eventually([] { return mapped_arenas() == 0; }));
  }
}

TEST_CASE("client: a forked child has none of its parent's connections") {
  const std::string any_port = "tcp://127.0.0.1:*";
  for (const std::string& endpoint : {std::string(), any_port}) {
    FakeDaemon daemon({.endpoint = endpoint});
    bw_connect_options options = connecting();
    options.inline_batches = 1;
    const auto connection = connect(daemon.endpoint(), options);
    CHECK(connections_to(daemon.endpoint()) == 1);
    CHECK(connections_in_child(daemon.endpoint()) == 0);
    const auto subscription = subscribe(connection);  // the parent goes on
    daemon.deliver(1, 0, 0, 0);
    CHECK(next_batch(subscription));
  }
}

TEST_CASE("client: at a daemon that is away is knocked ever more seldom") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  daemon.die();
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t first = wakeups();
  REQUIRE(first > 0);
  REQUIRE(eventually([first] { return wakeups() >= first + 24; }));
  // At 20 to 40 ms each it would take less than a second.
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::milliseconds(1500));
}
