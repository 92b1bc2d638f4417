#include "client/library/reach.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "formats/base/kernel/descriptor.h"
#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr uid_t kNobody = 65534;

/// What `act` writes, run in a child as another user; "" as far as this process is not root.
std::string as_nobody(const std::function<std::string()>& act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::string text = "no other user";
    const bool left = setgroups(0, nullptr) == 0 && setgid(kNobody) == 0;
    if (left && setuid(kNobody) == 0) text = act();
    static_cast<void>(!write(ends[1], text.data(), text.size()));
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char byte = 0;
  while (read(ends[0], &byte, 1) == 1) text += byte;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

std::string text_of(const std::optional<Error>& error) { return error ? error->message : ""; }

/// Why this process cannot connect.
std::string refusal_of(const std::string& endpoint) {
#ifdef BATCHWRIGHT_SANITIZED  // TSan lets no forked child begin a thread
  return std::to_string(BW_IO_ERROR) + ": " + text_of(diagnose_endpoint(endpoint));
#else
  bw_connection* raw = nullptr;
  const bw_status status = bw_connect(endpoint.c_str(), nullptr, &raw);
  return std::to_string(status) + ": " + bw_error_message();
#endif
}

bool contains(const std::string& text, const std::string& words) {
  const bool found = text.find(words) != std::string::npos;
  if (!found) MESSAGE("the text is: " << text);
  return found;
}

bool can_become_another_user() {
  if (geteuid() == 0) return true;
  MESSAGE("skipped: only root can become another user");
  return false;
}

}  // namespace

TEST_CASE("client: a client that may not write to the socket is told so at once, and what to do") {
  if (!can_become_another_user()) return;
  FakeDaemon daemon;
  const std::string socket = daemon.endpoint().substr(6);
  const auto folder = std::filesystem::path(socket).parent_path().string();
  REQUIRE(chmod(folder.c_str(), 0755) == 0);
  REQUIRE(chmod(socket.c_str(), 0660) == 0);
  const auto start = std::chrono::steady_clock::now();
  const std::string text = as_nobody([&] { return refusal_of(daemon.endpoint()); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(contains(text, std::to_string(BW_IO_ERROR) + ": permission denied: uid 65534 (nobody)"));
  CHECK(contains(text, socket + " (0660 root:root); join its group (usermod -aG root nobody"));
  CHECK(contains(text, "socket_mode and socket_group"));
}

TEST_CASE("client: a folder that may not be searched is named") {
  if (!can_become_another_user()) return;
  const TemporaryFolder folder;
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
  const auto inner = folder / "inner";
  std::filesystem::create_directory(inner);
  REQUIRE(chmod(inner.c_str(), 0700) == 0);
  const std::string endpoint = "ipc://" + (inner / "s").string();
  const std::string text = as_nobody([&] { return text_of(diagnose_endpoint(endpoint)); });
  CHECK(contains(text, "may not search the folder " + inner.string() + " (0700 root:root)"));
  CHECK_FALSE(diagnose_endpoint(endpoint));
}

TEST_CASE("client: a relative path whose folder is not there is told at once") {
  const auto error = diagnose_endpoint("ipc://no-such-folder/a.sock");
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_argument);
  CHECK(contains(error->message, "is a relative path, and there is no folder no-such-folder here"));
  CHECK(contains(error->message, "ipc:///no-such-folder/a.sock"));
  CHECK_FALSE(diagnose_endpoint("ipc://a.sock"));  // its folder is here
  CHECK_FALSE(diagnose_endpoint("ipc:///no-such-folder/a.sock"));
  CHECK_FALSE(diagnose_endpoint("tcp://127.0.0.1:1"));
  bw_connection* raw = nullptr;
  CHECK(bw_connect("ipc://no-such-folder/a.sock", nullptr, &raw) == BW_INVALID_ARGUMENT);
}

TEST_CASE("client: a client that is out of descriptors is told so at once, with the limit") {
  FakeDaemon daemon;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 200;
  std::vector<ConnectionHandle> connections;
  bw_status status = BW_OK;
  const auto start = std::chrono::steady_clock::now();
  // UBSan needs descriptors where a sentence is made for the first time.
  bw_connection* none = nullptr;
  REQUIRE(bw_connect("ipc://no-such-folder/s", nullptr, &none) != BW_OK);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  while (status == BW_OK && connections.size() < 100) {
    bw_connection* raw = nullptr;
    status = bw_connect(daemon.endpoint().c_str(), nullptr, &raw);
    if (status == BW_OK) connections.emplace_back(raw);
  }
  const std::string text = bw_error_message();
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(9));
  CHECK(status == BW_IO_ERROR);
  CHECK(contains(text, "no file descriptors are left"));
  CHECK(contains(text, "200 (ulimit -n)"));
}
