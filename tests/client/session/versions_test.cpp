// What a trainer of a live feed says, and which messages a session takes.

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <utility>

#include "client/library/produce/conversation.h"
#include "client/library/session/session.h"
#include "tests/client/link/scripted_transport.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

/// A session with a daemon that announces what it is told, 1 ms later.
struct Trainer {
  explicit Trainer(Abilities abilities = kAbilities) {
    auto transport = std::make_unique<ScriptedTransport>();
    world = transport.get();
    world->hear = [this, abilities](const ControlMessage& message) { answer(message, abilities); };
    ConnectSettings settings;
    settings.limit = 5s;
    settings.always_inline = true;
    auto made = Session::connect("ipc:///simulated", settings, std::move(transport));
    REQUIRE(made);
    session = std::move(*made);
  }

  void answer(const ControlMessage& message, Abilities abilities) {
    if (message.as<wire::Hello>() != nullptr) {
      wire::WelcomeT welcome;
      welcome.protocol = kProtocolVersion;
      welcome.abilities = abilities.bits();
      world->after(1ms, [this, welcome] { world->say(wire::WelcomeT(welcome)); });
    }
    if (const auto* advance = message.as<wire::Advance>()) {
      advance->UnPackTo(&advances.emplace_back());
      if (holds_answers) return;
      version = advance->restored() ? advance->version() : std::max(version, advance->version());
      say(advance->question());
    }
    if (const auto* question = message.as<wire::AwaitVersion>()) {
      question->UnPackTo(&questions.emplace_back());
      if (holds_answers) return;
      const bool there = version > question->above();
      say(question->question(), there ? ErrorCode{} : ErrorCode::timed_out);
    }
    if (const auto* end = message.as<wire::EndFeed>()) {
      ended.push_back(end->feed()->str());
      if (end->question() != 0 && !holds_answers) say(end->question(), end_code);
    }
    if (const auto* mark = message.as<wire::KeepFrom>()) marks.push_back(mark->step());
  }
  void say(std::uint32_t question, ErrorCode code = {}) {
    wire::VersionT answer;
    answer.question = question;
    answer.version = version;
    answer.code = static_cast<std::uint16_t>(code);
    if (answer.code != 0) answer.text = "no version above it";
    world->after(1ms, [this, answer] { world->say(wire::VersionT(answer)); });
  }
  Result<wire::VersionT> advance(std::uint64_t to, bool restored = false) {
    wire::AdvanceT what;
    what.feed = "rollouts";
    what.version = to;
    what.restored = restored;
    return session->advance(std::move(what));
  }
  Result<wire::VersionT> await(std::uint64_t above, std::chrono::milliseconds limit) {
    wire::AwaitVersionT what;
    what.feed = "rollouts";
    what.above = above;
    return session->await_version(std::move(what), session->after(limit));
  }

  ScriptedTransport* world = nullptr;
  std::shared_ptr<Session> session;
  std::uint64_t version = 3;
  bool holds_answers = false;
  ErrorCode end_code{};  ///< Of the answer to an end.
  std::vector<wire::AdvanceT> advances;
  std::vector<wire::AwaitVersionT> questions;
  std::vector<std::string> ended;
  std::vector<std::uint64_t> marks;  ///< Steps of KeepFrom.
};

}  // namespace

TEST_CASE("client: a trainer announces versions, and waits for those of others") {
  Trainer run;
  const auto made = run.advance(4);
  REQUIRE(made);
  CHECK(made->version == 4);
  CHECK(run.advance(2)->version == 4);
  CHECK(run.advance(2, true)->version == 2);
  CHECK(run.advances.back().restored);
  const auto waited = run.await(1, 2s);
  REQUIRE(waited);
  CHECK(waited->version == 2);
  CHECK(waited->code == 0);
  CHECK(run.questions.back().timeout_ms == 2000);
  const auto late = run.await(2, 2s);
  REQUIRE(late);
  CHECK(late->code == static_cast<int>(ErrorCode::timed_out));
  CHECK(late->version == 2);
  wire::EndFeedT end;
  end.feed = "rollouts";
  REQUIRE(run.session->end_feed(std::move(end), true));
  CHECK(run.ended == std::vector<std::string>{"rollouts"});
}

TEST_CASE("client: the end of a feed that is being opened is refused, and the session goes on") {
  Trainer run;
  run.end_code = ErrorCode::busy;
  wire::EndFeedT end;
  end.feed = "rollouts";
  const auto refused = run.session->end_feed(wire::EndFeedT(end), true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::busy);
  run.end_code = {};
  CHECK(run.session->end_feed(std::move(end), true));
  CHECK(run.advance(4)->version == 4);
}

TEST_CASE("client: an end that a daemon died with is told to the next one") {
  Trainer run;
  run.holds_answers = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.holds_answers = false;
  });
  run.world->after(1s, [&run] { run.world->rise(); });
  wire::EndFeedT end;
  end.feed = "rollouts";
  CHECK(run.session->end_feed(std::move(end), true));
  CHECK(run.ended.size() == 2);
}

TEST_CASE("client: a daemon that answers no end is told, and not waited for") {
  Trainer run{Abilities{Ability::live}};
  wire::EndFeedT end;
  end.feed = "rollouts";
  CHECK(run.session->end_feed(wire::EndFeedT(end), true));  // else its time limit ends
  const auto unknown = run.session->end_feed(std::move(end), false);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::not_found);
  CHECK(run.ended.size() == 1);
}

TEST_CASE("client: a mark is said without an answer, and to no daemon that is too old for it") {
  for (const bool is_old : {false, true}) {
    CAPTURE(is_old);
    Trainer run(is_old ? Abilities{Ability::live} : kAbilities);
    wire::KeepFromT mark;
    mark.feed = "rollouts";
    mark.step = 7;
    const auto said = run.session->keep_from(std::move(mark));
    CHECK(said.has_value() == !is_old);
    if (is_old) CHECK(said.error().code == ErrorCode::unsupported);
    REQUIRE(run.advance(4));  // what was said before has arrived
    CHECK(run.marks == std::vector<std::uint64_t>(is_old ? 0 : 1, 7));
  }
}

TEST_CASE("client: a version is announced to the daemon that comes back, too") {
  Trainer run;
  run.holds_answers = true;
  run.world->after(10ms, [&run] {
    run.world->die();
    run.holds_answers = false;
  });
  run.world->after(1s, [&run] { run.world->rise(); });
  const auto made = run.advance(9);
  REQUIRE(made);
  CHECK(made->version == 9);
  CHECK(run.advances.size() == 2);
}

TEST_CASE("client: a version is waited for of the feed that takes another's place, too") {
  Trainer run;
  run.holds_answers = true;
  run.world->after(10ms, [&run] {
    run.holds_answers = false;
    run.version = 8;
    wire::VersionT replaced;
    replaced.question = run.questions.back().question;
    replaced.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
    run.world->say(std::move(replaced));
  });
  const auto made = run.await(3, 2s);
  REQUIRE(made);
  CHECK(made->code == 0);
  CHECK(made->version == 8);
  CHECK(run.questions.size() == 2);
}

TEST_CASE("client: an answer that comes too late is no other's") {
  Trainer run;
  run.holds_answers = true;
  const auto silent = run.await(3, 1s);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == ErrorCode::timed_out);
  run.holds_answers = false;
  run.say(run.questions.at(0).question);
  run.version = 8;
  const auto made = run.await(3, 1s);
  REQUIRE(made);
  CHECK(made->version == 8);
}

TEST_CASE("client: an older daemon knows no versions") {
  Trainer run(Abilities{});
  const auto refused = run.advance(4);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(run.advances.empty());
  wire::EndFeedT end;
  end.feed = "rollouts";
  const auto not_ended = run.session->end_feed(std::move(end), true);
  REQUIRE_FALSE(not_ended);
  CHECK(not_ended.error().code == ErrorCode::unsupported);
  CHECK(run.ended.empty());
}

TEST_CASE("client: while one thread waits for a version another cannot announce one") {
  Trainer run;
  ErrorCode other{};
  run.world->after(0ms, [&] {
    std::thread([&] {
      const auto made = run.advance(4);
      if (!made) other = made.error().code;
    }).join();
  });
  REQUIRE(run.await(1, 2s));
  CHECK(other == ErrorCode::busy);
  CHECK(run.advances.empty());
}

TEST_CASE("client: each message that a daemon sends has a handler, and no other") {
  for (const MessageKind& kind : message_kinds()) {
    CAPTURE(wire::EnumNameBody(kind.body));
    const bool daemons = kind.sender == Sender::daemon || kind.sender == Sender::either;
    // Those to a producer come in a session of its own.
    CHECK((Session::handles(kind.body) || Conversation::handles(kind.body)) == daemons);
  }
}
