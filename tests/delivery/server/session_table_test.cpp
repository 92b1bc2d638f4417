#include "daemon/delivery/session_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

Session of_peer(const std::string& peer, std::uint64_t token = 0, bool inline_batches = false) {
  Session session;
  session.client = {{}, token, "job", 1, inline_batches};
  session.peer = {false, peer};
  return session;
}

}  // namespace

TEST_CASE("delivery: a session is found by its number, its peer, and its client's token") {
  boost::asio::io_context io;
  SessionTable table(io);
  const SessionId a = table.add(of_peer("a", 7)).id();
  const SessionId b = table.add(of_peer("b")).id();
  CHECK(a.value != 0);
  CHECK(a != b);
  CHECK(table.all().size() == 2);
  CHECK(table.find(a)->peer.name == "a");
  CHECK(table.find({false, "b"})->id() == b);
  CHECK(table.find(PeerName{true, "b"}) == nullptr);
  CHECK(table.find_token(7)->id() == a);
  CHECK(table.find_token(8) == nullptr);
  CHECK(table.find_token(0) == nullptr);
}

TEST_CASE("delivery: a session that is taken out is there no longer, nor is its deadline") {
  boost::asio::io_context io;
  SessionTable table(io);
  const SessionId id = table.add(of_peer("a", 7)).id();
  int overdue = 0;
  table.set_deadline(id, 0ms, [&] { ++overdue; });
  const auto taken = table.take(id);
  REQUIRE(taken);
  CHECK(taken->client.token == 7);
  CHECK_FALSE(table.take(id));
  CHECK(table.find(id) == nullptr);
  CHECK(table.find(PeerName{false, "a"}) == nullptr);
  CHECK(table.find_token(7) == nullptr);
  io.run();
  CHECK(overdue == 0);
}

TEST_CASE("delivery: a session is bound once, and one that needs no connection never") {
  boost::asio::io_context io;
  SessionTable table(io);
  const SessionId local = table.add(of_peer("a")).id();
  const SessionId without_arena = table.add(of_peer("b", 0, true)).id();
  CHECK_FALSE(table.find(local)->is_reachable());
  REQUIRE(table.bind(local) == table.find(local));
  CHECK(table.find(local)->is_reachable());
  CHECK(table.bind(local) == nullptr);
  CHECK(table.bind(without_arena) == nullptr);
  CHECK(table.find(without_arena)->is_reachable());
  CHECK(table.bind(SessionId{0}) == nullptr);
}

TEST_CASE("delivery: a deadline passes unless the session is bound by then or has another one") {
  boost::asio::io_context io;
  SessionTable table(io);
  const SessionId silent = table.add(of_peer("a")).id();
  const SessionId bound = table.add(of_peer("b")).id();
  const SessionId moved = table.add(of_peer("c")).id();
  std::vector<std::string> passed;
  for (const SessionId id : {silent, bound, moved}) {
    table.set_deadline(id, 0ms, [&, id] { passed.push_back(table.find(id)->peer.name); });
  }
  table.bind(bound);
  table.set_deadline(moved, 0ms, [&] { passed.emplace_back("again"); });
  table.set_deadline(silent, 0ms, [&] {
    passed.emplace_back("gone");
    table.take(silent);
  });
  io.run();
  CHECK(passed == std::vector<std::string>{"again", "gone"});
  CHECK(table.find(silent) == nullptr);
}

TEST_CASE("delivery: what a client holds when its session ends follows from how that ends") {
  Session local = of_peer("a");
  local.bound = true;
  CHECK(local.ending().lives);
  CHECK_FALSE(local.ending().may_return);
  Session back = local;
  back.returning = true;
  CHECK(back.ending().may_return);
  Session dead = local;
  dead.lost = true;
  CHECK_FALSE(dead.ending().lives);
  CHECK(dead.is_known());
  CHECK_FALSE(dead.is_reachable());
  Session leaving = local;
  leaving.leaving = true;
  CHECK_FALSE(leaving.ending().lives);
  Session remote = of_peer("b", 0, true);
  CHECK(remote.ending().may_return);
  CHECK_FALSE(remote.ending().lives);
  remote.leaving = true;
  CHECK_FALSE(remote.ending().may_return);
}

TEST_CASE("delivery: a session that is bound when its time is just over keeps its place") {
  boost::asio::io_context io;
  SessionTable table(io);
  const SessionId first = table.add(of_peer("first")).id();
  const SessionId second = table.add(of_peer("second")).id();
  // Both are over, and queued, when the first is told so.
  table.set_deadline(first, -2ms, [&] { CHECK(table.bind(second) != nullptr); });
  bool overdue = false;
  table.set_deadline(second, -1ms, [&] { overdue = true; });
  io.run();
  CHECK(table.find(second)->bound);
  CHECK_FALSE(overdue);
}
