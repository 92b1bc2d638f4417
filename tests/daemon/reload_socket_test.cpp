#include "daemon/reload/reload_socket.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <thread>
#include <vector>

#include "formats/formats.h"

using namespace batchwright;

namespace {

/// A door of this process, and its loop on a thread.
class TestDoor {
 public:
  explicit TestDoor(ReloadSocket::Ask ask) {
    auto door = ReloadSocket::open(loop_, ::getpid(), std::move(ask));
    REQUIRE(door);
    door_ = std::move(*door);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TestDoor() {
    loop_.stop();
    thread_.join();
  }
  TestDoor(const TestDoor&) = delete;
  TestDoor& operator=(const TestDoor&) = delete;

 private:
  boost::asio::io_context loop_{1};
  std::unique_ptr<ReloadSocket> door_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("daemon: a program that asks for a reload hears what comes of it") {
  bool applied = true;
  std::string text = "added dev; 1 unchanged";
  SUBCASE("applied") {}
  SUBCASE("refused") {
    applied = false;
    text = std::string(200'000, 'x');  // the line is cut, and ends
  }
  const TestDoor door([&](const ReloadSocket::Answer& answer) { answer(applied, text); });
  const auto heard = ask_for_reload(::getpid());
  CHECK(heard.has_value() == applied);
  if (heard) CHECK(*heard == text);
  if (heard) return;
  CHECK(heard.error().code == ErrorCode::bad_configuration);
  CHECK(heard.error().message == text.substr(0, 1 << 16));
}

TEST_CASE("daemon: a daemon that gives no answer is told from one that refuses") {
  const TestDoor door([](const ReloadSocket::Answer&) {});
  const auto heard = ask_for_reload(::getpid());
  REQUIRE_FALSE(heard);
  CHECK(heard.error().code == ErrorCode::disconnected);
}

TEST_CASE("daemon: a process that is no daemon is asked in vain") {
  const auto heard = ask_for_reload(::getpid());
  REQUIRE_FALSE(heard);
  CHECK(heard.error().code == ErrorCode::not_found);
}

TEST_CASE("daemon: a reload is answered once descriptors are there again") {
  boost::asio::io_context loop{1};
  bool asked = false;
  const auto door =
      ReloadSocket::open(loop, ::getpid(), [&](const ReloadSocket::Answer&) { asked = true; });
  REQUIRE(door);
  // UBSan needs descriptors where the loop and a timer run for the first time.
  boost::asio::steady_timer first(loop, std::chrono::milliseconds(0));
  first.async_wait([](const boost::system::error_code&) {});
  loop.run_one();
  boost::asio::local::stream_protocol::socket asker(loop);
  asker.open();
  // Every number up to the highest that is open is taken, so that accepting fails.
  std::vector<Descriptor> taken;
  do taken.emplace_back(::dup(0));
  while (taken.back() && taken.back().get() < asker.native_handle());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(asker.native_handle()) + 1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  asker.connect({std::string(1, '\0') + "batchwrightd/reload/" + std::to_string(::getpid())});
  REQUIRE(loop.run_one_for(std::chrono::seconds(30)) == 1);
  CHECK_FALSE(asked);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  while (!asked && loop.run_one_for(std::chrono::seconds(30)) == 1) continue;
  CHECK(asked);
}

TEST_CASE("daemon: a second door of one process is refused") {
  const TestDoor door([](const ReloadSocket::Answer&) {});
  boost::asio::io_context loop;
  CHECK_FALSE(ReloadSocket::open(loop, ::getpid(), [](const ReloadSocket::Answer&) {}));
}
