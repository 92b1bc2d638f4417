#include "client/library/link/daemon_link.h"

#include <doctest/doctest.h>

#include "tests/client/link/scripted_transport.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr auto kSilence = DaemonLink::kLongestSilence;
constexpr auto kSecondLook = DaemonLink::kSecondLook;

/// A link over a script, to a daemon from which batches come as messages.
struct Scripted {
  Scripted() {
    auto transport = std::make_unique<ScriptedTransport>();
    world = transport.get();
    ConnectSettings settings;
    settings.reconnect = 60s;
    link.emplace("tcp://127.0.0.1:1", settings, std::move(transport));
  }
  void meet() {
    REQUIRE(link->tend());
    wire::WelcomeT welcome;
    welcome.protocol = kProtocolVersion;
    world->say(std::move(welcome));
    hear();
    REQUIRE(link->come_up(Deadline(1s, link->now())));
  }
  /// Takes in a Welcome, or something that shows that the daemon lives.
  void hear() {
    const auto incoming = link->receive();
    REQUIRE((incoming && incoming->has_value()));
    const auto* welcome = (*incoming)->control.as<wire::Welcome>();
    if (welcome != nullptr) REQUIRE(link->welcome(*welcome));
  }
  void lose(const std::string& how) { static_cast<void>(link->lose(how)); }
  bool is_silent_after(std::chrono::milliseconds time) {
    world->pass(time);
    return link->loss() != nullptr;
  }
  bool text_has(const std::string& words) const {
    return link->away_text().find(words) != std::string::npos;
  }

  ScriptedTransport* world = nullptr;
  std::optional<DaemonLink> link;
};

}  // namespace

TEST_CASE("client: a daemon is looked for at once, and then at intervals") {
  Scripted one;
  REQUIRE(one.link->tend());
  CHECK(one.world->attempts == 1);
  one.lose("shut down");
  one.world->pass(DaemonLink::kBetweenAttempts - 1ms);
  REQUIRE(one.link->tend());
  CHECK(one.world->attempts == 1);
  one.world->pass(1ms);
  REQUIRE(one.link->tend());
  CHECK(one.world->attempts == 2);
  static_cast<void>(one.link->go_inline("no memory", false));
  REQUIRE(one.link->tend());
  CHECK(one.world->attempts == 3);
}

TEST_CASE("client: before a first daemon was met none is away, and none is given up") {
  Scripted one;
  REQUIRE(one.link->tend());
  one.lose("shut down");
  CHECK_FALSE(one.link->is_away());
  one.world->pass(1h);
  CHECK(one.link->tend());
  CHECK_FALSE(one.link->has_met());
  one.meet();
  CHECK(one.link->has_met());
  CHECK(one.link->reconnects() == 0);
}

TEST_CASE("client: a daemon's absence is counted from the first loss, and told by the latest") {
  Scripted one;
  one.meet();
  one.lose("closed the connection");
  one.world->pass(30s);
  one.lose("shut down");
  one.world->pass(1s);
  CHECK(one.text_has("has been gone for 31 s (shut down)"));
  one.world->obstacle = Error{ErrorCode::io_error, "no descriptor left"};
  one.world->pass(1s);
  CHECK(one.link->tend());
  CHECK(one.text_has("has been gone for 32 s (no descriptor left)"));
  one.world->pass(27s);
  CHECK(one.link->tend());
  one.world->obstacle.reset();
  one.world->pass(1s);
  const auto given_up = one.link->tend();
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::disconnected);
}

TEST_CASE("client: a daemon that is met again is no longer away") {
  Scripted one;
  one.meet();
  one.lose("shut down");
  one.world->pass(59s);
  one.meet();
  CHECK_FALSE(one.link->is_away());
  CHECK(one.link->reconnects() == 1);
  one.world->pass(60s);
  CHECK(one.link->tend());
}

TEST_CASE("client: a first daemon without a descriptor for it is an error at once") {
  Scripted one;
  one.world->obstacle = Error{ErrorCode::io_error, "no descriptor left"};
  CHECK_FALSE(one.link->tend());
}

TEST_CASE("client: a wait ends for the next attempt, or for giving up") {
  Scripted one;
  one.meet();
  one.world->pass(1s);
  one.lose("shut down");
  REQUIRE(one.link->tend());  // an attempt that no daemon answers
  one.lose("shut down");
  const Time lost = one.link->now();
  REQUIRE(one.link->wait(Deadline(1h, lost)));
  CHECK(one.link->now() == lost + DaemonLink::kBetweenAttempts);
  REQUIRE(one.link->tend());
  REQUIRE(one.link->wait(Deadline(1h, lost)));
  CHECK(one.link->now() == lost + 60s);
}

TEST_CASE("client: a silence counts once a second look has heard nothing either") {
  Scripted one;
  one.meet();
  CHECK_FALSE(one.is_silent_after(kSilence - 1ms));
  CHECK_FALSE(one.is_silent_after(1ms));
  CHECK_FALSE(one.is_silent_after(kSecondLook - 1ms));
  CHECK(one.is_silent_after(1ms));
}

TEST_CASE("client: a program that did not look for hours does not lose its daemon by that") {
  Scripted one;
  one.meet();
  CHECK_FALSE(one.is_silent_after(5h));
  one.world->pass(1ms);
  one.world->say(wire::AliveT{});
  one.hear();
  CHECK_FALSE(one.is_silent_after(1s));
}

TEST_CASE("client: bytes of a message on its way are heard, ZeroMQ's own answers are not") {
  Scripted one;
  one.meet();
  one.world->bytes = DaemonLink::kLeastFlow;
  CHECK_FALSE(one.is_silent_after(kSilence - 1ms));
  CHECK_FALSE(one.is_silent_after(1001ms));
  one.world->bytes = 2 * DaemonLink::kLeastFlow - 1;
  CHECK_FALSE(one.is_silent_after(kSilence - 1001ms));
  CHECK(one.is_silent_after(kSecondLook));
}

TEST_CASE("client: a word of the daemon's ends the suspicion") {
  Scripted one;
  one.meet();
  CHECK_FALSE(one.is_silent_after(kSilence));
  one.world->say(wire::AliveT{});
  one.hear();
  CHECK_FALSE(one.is_silent_after(1s));
  CHECK_FALSE(one.is_silent_after(kSilence - 1s));
  CHECK(one.is_silent_after(kSecondLook));
}
