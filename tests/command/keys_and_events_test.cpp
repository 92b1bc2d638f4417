#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <csignal>
#include <fstream>
#include <regex>

#include "tests/integration/daemon_process.h"
#include "tests/support/process.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace json = boost::json;

Finished keygen(const std::string& prefix) {
  return run({program("batchwright"), "keygen", "--into", prefix});
}

/// The first line of a file.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// What the daemon's log says after these words, up to a blank or comma.
std::string logged(DaemonProcess& daemon, const std::string& words) {
  std::smatch found;
  const std::string log = daemon.process().err();
  return std::regex_search(log, found, std::regex(words + " ([^ ,\n]+)")) ? found[1].str() : "";
}

/// Lets commands say Hello to the daemon, and so cause events, until one that listens has ended.
bool stir_until_ended(Process& listener, const std::vector<std::string>& hello) {
  return eventually([&] {
    if (!listener.running()) return true;
    Process visitor(hello);
    listener.wait(1);
    return !listener.running();
  });
}

}  // namespace

TEST_CASE("command: keygen writes a pair of keys, the secret one for its owner alone") {
  TemporaryFolder folder;
  const std::string prefix = (folder / "server").string();
  const Finished made = run({program("batchwright"), "keygen", "--into", prefix, "--json"});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  const auto told = json::parse(made.out);
  CHECK(told.at("public_key").as_string() == line_of(prefix + ".public"));
  CHECK(told.at("secret_key_file").as_string() == prefix + ".secret");
  CHECK(line_of(prefix + ".public").size() == 40);
  CHECK(line_of(prefix + ".secret").size() == 40);
  CHECK(line_of(prefix + ".secret") != line_of(prefix + ".public"));
  CHECK(made.out.find(line_of(prefix + ".secret")) == std::string::npos);
  struct stat status {};
  REQUIRE(::stat((prefix + ".secret").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600);
}

TEST_CASE("command: keygen overwrites nothing") {
  TemporaryFolder folder;
  const std::string prefix = (folder / "k").string();
  std::ofstream(prefix + ".secret") << "precious\n";
  const Finished refused = keygen(prefix);
  CHECK(refused.code == 2);
  CHECK(refused.err == "batchwright: " + prefix + ".secret: File exists\n");
  CHECK(line_of(prefix + ".secret") == "precious");
  CHECK_FALSE(std::filesystem::exists(prefix + ".public"));
  CHECK(keygen((folder / "none/k").string()).code == 1);
}

TEST_CASE("command: events are found by the endpoint, and shown as they come") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n");
  REQUIRE(daemon.start());
  const std::vector<std::string> words = {
      program("batchwright"), "events", "--endpoint", daemon.endpoint(), "--count", "2", "--json"};
  Process listener(words);
  REQUIRE(stir_until_ended(listener, words));
  std::istringstream lines(listener.out());
  std::size_t shown = 0;
  for (std::string line; std::getline(lines, line); ++shown) {
    const auto event = json::parse(line);
    const std::string kind(event.at("event").as_string());
    CHECK((kind == "client_joined" || kind == "client_left"));
    CHECK(event.at("text").as_string() == "batchwright events");
  }
  CHECK(shown == 2);
}

TEST_CASE("command: events say at once why a daemon cannot be reached") {
  const Finished wrong = run({program("batchwright"), "events", "--count", "1", "--endpoint",
                              "ipc://no-such-folder/a.sock"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("is a relative path, and there is no folder") != std::string::npos);
}

TEST_CASE("command: an endpoint of another kind is a wrong call") {
  for (const char* command : {"tail", "bench", "events"}) {
    CAPTURE(command);
    std::vector<std::string> words = {program("batchwright"), command, "--endpoint", "http://host"};
    if (std::string(command) != "events") words.insert(words.end(), {"--feed", "train"});
    const Finished wrong = run(words);
    CHECK(wrong.code == 2);
    CHECK(wrong.err.find("found \"http://host\", allowed: ipc://PATH or tcp://HOST:PORT") !=
          std::string::npos);
  }
}

TEST_CASE("command: a daemon that does not answer is named after a second") {
  TemporaryFolder folder;
  const std::string endpoint = "ipc://" + (folder / "none.sock").string();
  for (const char* command : {"tail", "events"}) {
    CAPTURE(command);
    std::vector<std::string> words = {program("batchwright"), command, "--endpoint", endpoint};
    if (std::string(command) == "tail") words.insert(words.end(), {"--feed", "train"});
    Process waiting(words);
    CHECK(eventually([&] {
      return waiting.err().find(endpoint + " has not answered yet; waiting for up to 10 s") !=
             std::string::npos;
    }));
  }
}

TEST_CASE("command: tail says what it waits for, and waits on") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n");
  REQUIRE(daemon.start());
  Process tail({program("batchwright"), "tail", "--endpoint", daemon.endpoint(), "--feed", "train",
                "--epochs", "0", "--json"});
  REQUIRE(eventually([&] { return daemon.counter("batches_delivered") > 0; }));
  daemon.process().signal(SIGSTOP);
  CHECK(eventually([&] { return tail.err().find("batchwright: ") != std::string::npos; }));
  CHECK(tail.running());
  daemon.process().signal(SIGCONT);
}

TEST_CASE("command: tail waits for a feed that is absent, and has the daemon's reason") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n", 0);  // it has no dataset
  REQUIRE(daemon.start());
  Process tail({program("batchwright"), "tail", "--endpoint", daemon.endpoint(), "--feed", "train",
                "--epochs", "1"});
  CHECK(eventually([&] {
    return tail.err().find(
               "batchwright: feed \"train\" is not served, and is waited for: dataset " +
               daemon.dataset().string() + " does not exist") != std::string::npos;
  }));
  make_small_dataset(daemon.dataset(), mixed_lengths(40, 50));
  REQUIRE(tail.wait());
  CHECK(tail.out().find("epoch 0 step 9 ") != std::string::npos);
}

TEST_CASE("command: with keys, events and batches go over tcp, and no one else gets any") {
  std::string host;
  SUBCASE("of IPv4") { host = "127.0.0.1"; }
  SUBCASE("of IPv6") { host = "[::1]"; }
  DaemonProcess daemon("[feed.plan]\nsize = 4\n");
  const std::string server = (daemon.folder() / "server").string();
  const std::string trainer = (daemon.folder() / "trainer").string();
  REQUIRE(keygen(server).code == 0);
  REQUIRE(keygen(trainer).code == 0);
  std::string& config = daemon.config();
  const std::string local = "\"" + daemon.endpoint() + "\"";
  config.replace(config.find(local), local.size(), "\"tcp://" + host + ":0\"");
  config.replace(config.find("[daemon]\n"), 9,
                 "[daemon]\nevents = \"tcp://" +
                     std::string(host[0] == '[' ? "[0:0:0:0:0:0:0:1]" : "*") +
                     ":0\"\ncurve_secret_key_file = \"" + server +
                     ".secret\"\nauthorized_keys_file = \"" + trainer + ".public\"\n");
  REQUIRE(daemon.start());
  const std::string endpoint = logged(daemon, "listening at");
  REQUIRE(endpoint.starts_with("tcp://" + host + ":"));
  CHECK(logged(daemon, "public key") == line_of(server + ".public"));
  const std::vector<std::string> words = {
      program("batchwright"),      "events",     "--endpoint",        endpoint,  "--server-key",
      line_of(server + ".public"), "--key-file", trainer + ".secret", "--count", "1"};
  Process listener(words);
  CHECK(stir_until_ended(listener, words));
  CHECK(std::regex_match(listener.out(),
                         std::regex("session [0-9a-f]+ (joins|leaves): batchwright events\n")));
  const Finished tail = run({program("batchwright"), "tail", "--feed", "train", "--endpoint",
                             endpoint, "--server-key", line_of(server + ".public"), "--key-file",
                             trainer + ".secret", "--epochs", "1", "--json"});
  CHECK_MESSAGE(tail.code == 0, tail.err);
  CHECK(std::count(tail.out.begin(), tail.out.end(), '\n') > 1);
  const Finished bench =
      run({program("batchwright"), "bench", "--feed", "train", "--endpoint", endpoint,
           "--server-key", line_of(server + ".public"), "--key-file", trainer + ".secret",
           "--seconds", "0.1", "--stats", daemon.stats_address()});
  CHECK_MESSAGE(bench.code == 0, bench.err);
  const std::vector<std::string> stranger(words.begin(), words.begin() + 6);
  Process refused(stranger);
  CHECK(eventually([&] {
    return daemon.process().err().find("its key is not in authorized_keys_file") !=
           std::string::npos;
  }));
}

TEST_CASE("command: a secret key that others can read keeps the daemon from starting") {
  DaemonProcess daemon("[feed.plan]\nsize = 4\n");
  const std::string server = (daemon.folder() / "server").string();
  REQUIRE(keygen(server).code == 0);
  ::chmod((server + ".secret").c_str(), 0644);
  daemon.config().replace(daemon.config().find("[daemon]\n"), 9,
                          "[daemon]\ncurve_secret_key_file = \"" + server + ".secret\"\n");
  const Finished failed = daemon.start_and_fail();
  CHECK(failed.code == 2);
  CHECK(failed.err.find("found mode 0644") != std::string::npos);
}
