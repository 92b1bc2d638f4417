#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <csignal>

#include "tests/integration/daemon_process.h"

using namespace batchwright::test;

namespace {

std::ptrdiff_t lines_in(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("command: top --once prints one snapshot of a daemon, --json the daemon's own page") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  const Finished plain =
      run({program("batchwright"), "top", "--once", "--stats", daemon.stats_address()});
  CHECK(plain.code == 0);
  CHECK(plain.out.find("\ntrain  ") != std::string::npos);
  CHECK(plain.out.find('\x1b') == std::string::npos);
  const Finished json =
      run({program("batchwright"), "top", "--once", "--json", "--stats", daemon.stats_address()});
  CHECK(json.code == 0);
  CHECK(lines_in(json.out) == 1);
  const auto page = boost::json::parse(json.out);
  CHECK(page.at("feeds").at(0).at("name") == "train");
}

TEST_CASE("command: top shows several daemons as one, and names the one that is gone") {
  DaemonProcess first("slots = 4"), second("slots = 4");
  REQUIRE(first.start());
  REQUIRE(second.start());
  const std::string both = first.stats_address() + "," + second.stats_address();
  const Finished plain = run({program("batchwright"), "top", "--once", "--stats", both});
  CHECK(plain.code == 0);
  CHECK(plain.out.find("2 of 2 daemons answer") != std::string::npos);
  CHECK(plain.out.find("Hosts") != std::string::npos);
  const Finished json = run({program("batchwright"), "top", "--once", "--json", "--stats",
                             first.stats_address(), "--stats", second.stats_address()});
  CHECK(lines_in(json.out) == 2);
  second.process().signal(SIGKILL);
  REQUIRE(eventually([&] { return !second.process().running(); }));
  const Finished one = run({program("batchwright"), "top", "--once", "--stats", both});
  CHECK(one.code == 0);
  CHECK(one.out.find("no answer of " + both.substr(both.find(',') + 1)) != std::string::npos);
  CHECK(run({program("batchwright"), "top", "--once", "--stats", both + ",nonsense"}).code == 2);
}

TEST_CASE("command: top takes a Unix socket for an address") {
  DaemonProcess daemon("slots = 4");
  const std::string address = "unix://" + (daemon.folder() / "stats").string();
  const std::string key = "stats = ";
  const std::size_t at = daemon.config().find(key);
  REQUIRE(at != std::string::npos);
  const std::size_t end = daemon.config().find('\n', at);
  daemon.config().replace(at, end - at, key + "[\"127.0.0.1:0\", \"" + address + "\"]");
  REQUIRE(daemon.start());
  const Finished plain = run({program("batchwright"), "top", "--once", "--stats", address});
  CHECK(plain.code == 0);
  CHECK(plain.out.find("\ntrain  ") != std::string::npos);
}

TEST_CASE("command: top takes host and port as the configuration has them") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  const std::string address = daemon.stats_address().substr(std::string("http://").size());
  const Finished plain = run({program("batchwright"), "top", "--once", "--stats", address});
  CHECK(plain.code == 0);
  CHECK(plain.out.find("\ntrain  ") != std::string::npos);
}

TEST_CASE("command: top says that the clients' socket is not the pages'") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  const std::string address = "unix://" + daemon.endpoint().substr(std::string("ipc://").size());
  const Finished wrong = run({program("batchwright"), "top", "--once", "--stats", address});
  CAPTURE(wrong.err);
  CHECK(wrong.code == 1);
  // What comes first decides: the daemon's greeting, or its end of a connection that sends it HTTP.
  CHECK((wrong.err.find("answers, but not in HTTP") != std::string::npos ||
         wrong.err.find("closed the connection without an answer") != std::string::npos));
  CHECK(wrong.err.find("is it the socket for clients?") != std::string::npos);
}

TEST_CASE("command: top tells a daemon that is gone, and goes on when it is told to end") {
  DaemonProcess daemon("slots = 4");
  REQUIRE(daemon.start());
  Process top(
      {program("batchwright"), "top", "--interval", "0.1", "--stats", daemon.stats_address()});
  REQUIRE(eventually([&] { return lines_in(top.out()) > 20; }));  // several snapshots
  daemon.process().signal(SIGKILL);
  REQUIRE(
      eventually([&] { return top.err().find("no answer, trying again") != std::string::npos; }));
  CHECK(top.running());
  top.signal(SIGINT);
  CHECK(top.wait() == 0);
}

TEST_CASE("command: top ends with 1 where no daemon answers once, with 2 where no address is") {
  TemporaryFolder folder;
  const std::string nobody = "unix://" + (folder / "nobody").string();
  CHECK(run({program("batchwright"), "top", "--once", "--stats", nobody}).code == 1);
  for (const std::string address :
       {"tcp://127.0.0.1:9477", "unix://relative", "http://", "localhost", "127.0.0.1:", ":9477",
        "/run/batchwright/stats.sock", ""}) {
    CAPTURE(address);
    const Finished wrong = run({program("batchwright"), "top", "--stats", address});
    CHECK(wrong.code == 2);
    CHECK(wrong.err.find("is not an address") != std::string::npos);
  }
  for (const char* interval : {"0", "99ms", "2h", "3601", "soon", ""}) {
    CAPTURE(interval);
    const Finished wrong = run({program("batchwright"), "top", "--interval", interval});
    CHECK(wrong.code == 2);
    CHECK(wrong.err.find("allowed: a time such as 500ms or 2s") != std::string::npos);
  }
  // A time with its unit is taken: what fails is the address.
  for (const char* interval : {"100ms", "2s", "0.5"}) {
    CHECK(run({program("batchwright"), "top", "--once", "--stats", nobody, "--interval", interval})
              .code == 1);
  }
}
