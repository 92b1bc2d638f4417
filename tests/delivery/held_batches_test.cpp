// A batch that a client holds is its own until it releases it, detaches or dies, whatever becomes
// of its session.

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/delivery/delayed_replies.h"
#include "daemon/delivery/feed/core/subscription_table.h"
#include "daemon/delivery/peer_limiter.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kToken = 77;

/// Slots enough for one batch that is held, and few enough that an epoch uses all others again.
FeedSettings few_slots() {
  FeedSettings settings = sorted_feed(4);
  settings.slots = 4;
  settings.poison = true;  // a slot that is free changes at once
  return settings;
}

wire::HelloT known() {
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = "hol\x1b[1mder";
  hello.pid = 7;
  hello.token = kToken;
  return hello;
}

/// A client with one batch in its hands, which it reads in its own mapping of the arena.
class Holder {
 public:
  explicit Holder(TestServer& server) : client(server.endpoint()) {
    client.join(server.arena_socket(), known());
    auto subscribe = subscribe_to_train();
    subscribe.window = 1;
    client.send(std::move(subscribe));
    REQUIRE(read_until<wire::Subscribed>(client));
    ticket = next_ticket(client).value();
    const int arena = client.arena(ticket.arena, client.session(), bytes_);
    REQUIRE(arena >= 0);
    start_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, arena, 0);
    ::close(arena);
    REQUIRE(start_ != MAP_FAILED);
    first_ = now();
  }
  ~Holder() { munmap(start_, bytes_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  bool unchanged() const { return now() == first_; }

  RawClient client;
  wire::DeliveryT ticket;

 private:
  std::vector<std::byte> now() const {
    const auto* begin = static_cast<const std::byte*>(start_) + ticket.offset;
    return {begin, begin + ticket.size};
  }

  void* start_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> first_;
};

bool session_is_gone(TestServer& server, std::uint64_t session) {
  return server.eventually([session](TestServer& s) { return !s.has_session({session}); });
}

/// Two epochs for another client, which take every slot that is free; then it goes.
bool others_go_on(TestServer& server) {
  RawClient other(server.endpoint());
  other.join(server.arena_socket());
  auto subscribe = subscribe_to_train();
  subscribe.epoch = 1;
  subscribe.epochs = 2;
  other.send(std::move(subscribe));
  const bool all = indices_to_the_end(other).size() == 20;
  other.die();
  return session_is_gone(server, other.session()) && all;
}

std::size_t held_over(TestServer& server) { return server.feed().orphaned_slots; }

void ask_in_vain(RawClient& client, int times) {
  auto subscribe = subscribe_to_train(9);
  subscribe.mode = wire::Mode::sharded;
  subscribe.ranks = 7;
  for (int i = 0; i < times; ++i) client.send(subscribe);
}

}  // namespace

TEST_CASE("delivery: a session that ends leaves a held batch to the process that lives") {
  TestServer server(few_slots());
  Holder holder(server);
  std::optional<RawClient> again;
  SUBCASE("it asks in a flood, and reads no answer") { ask_in_vain(holder.client, 200); }
  SUBCASE("it sends malformed messages") {
    const std::vector<std::byte> noise(20, std::byte{1});
    for (int i = 0; i < 3; ++i) holder.client.send_bytes(noise);
  }
  SUBCASE("it says Hello again") { holder.client.send(known()); }
  SUBCASE("its client is back on another connection") {
    again.emplace(server.endpoint());
    REQUIRE(again->hello(known()) != 0);
  }
  SUBCASE("it sends noise to the arena socket") { REQUIRE(holder.client.spoil_arena_link()); }
  SUBCASE("its ZeroMQ connection ends, which shows when something is sent") {
    holder.client.hang_up();
    REQUIRE(server.eventually([&](TestServer& s) {
      s.ask([](Server& at) {
        at.say_goodbye();
        return true;
      });
      return !s.has_session({holder.client.session()});
    }));
  }
  REQUIRE(session_is_gone(server, holder.client.session()));
  CHECK(holder.client.arena_link_is_ended());  // by which a client learns of it
  CHECK(others_go_on(server));
  CHECK(holder.unchanged());
  CHECK(server.held_slots() == 1);
  CHECK(held_over(server) == 1);
  holder.client.die();
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  CHECK(held_over(server) == 0);
}

TEST_CASE("delivery: a client that waits for a slot hears which ended session holds some") {
  FeedSettings settings = few_slots();
  settings.slots = 1;
  TestServer server(settings);
  Holder holder(server);
  holder.client.send(known());
  REQUIRE(session_is_gone(server, holder.client.session()));
  RawClient waiting(server.endpoint());
  REQUIRE(join(waiting, server.arena_socket(), subscribe_to_train()));
  const auto epoch_one = [&] {
    wire::AskT question;
    question.subscription = 1;
    waiting.send(std::move(question));
    const auto answer = read_until<wire::Waiting>(waiting);
    return answer ? answer->as<wire::Waiting>()->reason()->str() : "";
  };
  // The batch that is held is the first of its epoch, and so shared with it.
  waiting.send(release_of(next_ticket(waiting).value()));
  CHECK(epoch_one().find("hol\\x1B[1mder (pid 7), whose session ended, holds 1") !=
        std::string::npos);
  holder.client.die();
  CHECK(read_until<wire::Delivery>(waiting));
}

TEST_CASE("delivery: refused subscriptions come slower after the 64th, and the session stays") {
  TestServer server(few_slots());
  Holder holder(server);
  ask_in_vain(holder.client, PeerLimiter::kRefused + 1);
  for (std::uint32_t i = 0; i < PeerLimiter::kRefused; ++i) {
    REQUIRE_FALSE(refusal(holder.client, ErrorCode::invalid_argument).empty());
  }
  const auto asked = std::chrono::steady_clock::now();
  CHECK(others_go_on(server));
  CHECK(holder.unchanged());
  CHECK_FALSE(refusal(holder.client, ErrorCode::invalid_argument).empty());
  CHECK(std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(500));
  CHECK(server.has_session({holder.client.session()}));
  holder.client.send(release_of(holder.ticket));
  const auto next = next_ticket(holder.client);
  REQUIRE(next);
  CHECK(next->index == 1);
}

/// What can happen to a batch that is held, in any order. Only a release in its session, a Bye and
/// the end of the arena's connection give it back.
TEST_CASE("delivery: in whatever order a session, its connection and its batch end") {
  enum class Act : std::uint8_t { session_ends, connection_ends, release, back, bye };
  std::array<Act, 4> order{Act::session_ends, Act::connection_ends, Act::release, Act::back};
  const auto try_order = [&order] {
    TestServer server(few_slots());
    Holder holder(server);
    std::optional<RawClient> back;
    bool talks = true;
    bool holds = true;
    for (const Act act : order) {
      switch (act) {
        case Act::session_ends:
          if (talks) holder.client.send(known());
          if (talks) REQUIRE(session_is_gone(server, holder.client.session()));
          talks = false;
          break;
        case Act::connection_ends:
          holder.client.die();
          holds = talks = false;
          break;
        case Act::release:
          holder.client.send(release_of(holder.ticket));
          if (talks) holds = !next_ticket(holder.client).has_value();
          break;
        case Act::back:
          back.emplace(server.endpoint());
          back->join(server.arena_socket(), known());
          talks = false;
          break;
        case Act::bye:
          holder.client.send(wire::ByeT{});
          if (talks) holds = false;
          talks = false;
          break;
      }
      REQUIRE(others_go_on(server));
      if (holds) REQUIRE(holder.unchanged());
      if (holds) REQUIRE(server.held_slots() >= 1);
    }
    holder.client.die();
    REQUIRE(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  };
  do {
    try_order();
  } while (std::next_permutation(order.begin(), order.end()));
  order = {Act::session_ends, Act::bye, Act::release, Act::connection_ends};
  try_order();
  order = {Act::bye, Act::back, Act::release, Act::connection_ends};
  try_order();
}

TEST_CASE("delivery: slots of ended sessions are kept by session, and named") {
  OrphanedSlots held;
  CHECK(held.describe().empty());
  CHECK(held.release({1}).empty());
  ClientInfo one;
  one.session = {1};
  one.program = "train.py";
  one.pid = 12;
  ClientInfo two = one;
  two.session = {2};
  two.program = "";
  held.keep(one, {});
  CHECK(held.slots_of({1}) == 0);
  held.keep(one, {{nullptr, {3}}, {nullptr, {4}}});
  held.keep(two, {{nullptr, {5}}});
  held.keep(one, {{nullptr, {6}}});
  CHECK(held.slots() == 4);
  CHECK(held.describe() ==
        "train.py (pid 12), whose session ended, holds 3, a client (pid 12), whose session ended, "
        "holds 1");
  CHECK(held.release({1}).size() == 3);
  CHECK(held.slots_of({1}) == 0);
  CHECK(held.slots_of({2}) == 1);
  CHECK(held.slots() == 1);
}
