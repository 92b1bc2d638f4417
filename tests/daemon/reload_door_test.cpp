#include "daemon/reload/reload_door.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <thread>

using namespace batchwright;

namespace {

/// A door of this process, and its loop on a thread.
class TestDoor {
 public:
  explicit TestDoor(ReloadDoor::Ask ask) {
    auto door = ReloadDoor::open(loop_, ::getpid(), std::move(ask));
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
  std::unique_ptr<ReloadDoor> door_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("daemon: who asks for a reload hears what comes of it") {
  bool applied = true;
  std::string text = "added dev; 1 unchanged";
  SUBCASE("applied") {}
  SUBCASE("refused") {
    applied = false;
    text = std::string(200'000, 'x');  // the line is cut, and ends
  }
  const TestDoor door([&](const ReloadDoor::Answer& answer) { answer(applied, text); });
  const auto heard = ask_for_reload(::getpid());
  CHECK(heard.has_value() == applied);
  if (heard) CHECK(*heard == text);
  if (heard) return;
  CHECK(heard.error().code == ErrorCode::bad_configuration);
  CHECK(heard.error().message == text.substr(0, 1 << 16));
}

TEST_CASE("daemon: a daemon that gives no answer is told from one that refuses") {
  const TestDoor door([](const ReloadDoor::Answer&) {});
  const auto heard = ask_for_reload(::getpid());
  REQUIRE_FALSE(heard);
  CHECK(heard.error().code == ErrorCode::disconnected);
}

TEST_CASE("daemon: a process that is no daemon is asked in vain") {
  const auto heard = ask_for_reload(::getpid());
  REQUIRE_FALSE(heard);
  CHECK(heard.error().code == ErrorCode::not_found);
}

TEST_CASE("daemon: a second door of one process is refused") {
  const TestDoor door([](const ReloadDoor::Answer&) {});
  boost::asio::io_context loop;
  CHECK_FALSE(ReloadDoor::open(loop, ::getpid(), [](const ReloadDoor::Answer&) {}));
}
