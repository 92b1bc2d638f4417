#include "daemon/delivery/repeating_timer.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace std::chrono_literals;

TEST_CASE("delivery: rounds come for as long as there is work, and can be started again") {
  boost::asio::io_context io;
  int count = 0;
  RepeatingTimer rounds(io, 1ms, [&] { return ++count < 3; });
  CHECK_FALSE(rounds.is_running());
  rounds.start();
  CHECK(rounds.is_running());
  CHECK(count == 0);
  io.run();
  CHECK(count == 3);
  CHECK_FALSE(rounds.is_running());
  rounds.start();
  io.restart();
  io.run();
  CHECK(count == 4);
}

TEST_CASE("delivery: rounds that are started twice come once at a time") {
  boost::asio::io_context io;
  int count = 0;
  RepeatingTimer rounds(io, 1ms, [&] {
    ++count;
    return false;
  });
  rounds.start();
  rounds.start();
  io.run();
  CHECK(count == 1);
}
