// Whole sessions over a script: no socket, no thread and no real time.

#include "client/library/session/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "tests/client/link/scripted_transport.h"
#include "tests/client/memory/sealed_arena.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSlotBytes = 4096;

/// A session with a daemon that answers what it is asked, 1 ms later each time, and sends batches
/// when the test says so.
struct Run {
  explicit Run(std::chrono::milliseconds reconnect = 60s, Abilities its_abilities = {})
      : abilities(its_abilities) {
    auto transport = std::make_unique<ScriptedTransport>();
    world = transport.get();
    world->arena = arena.mapping();
    world->hear = [this](const ControlMessage& message) { answer(message); };
    ConnectSettings settings;
    settings.limit = 10s;
    settings.reconnect = reconnect;
    auto made =
        Session::connect("ipc:///simulated/batchwright.sock", settings, std::move(transport));
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    session = std::move(*made);
  }

  void answer(const ControlMessage& message) {
    if (message.as<wire::Hello>() != nullptr) {
      world->after(1ms, [this] {
        wire::WelcomeT welcome;
        welcome.protocol = kProtocolVersion;
        welcome.arena_socket = "/simulated/batchwright.sock.arena";
        welcome.abilities = abilities.bits();
        world->say(std::move(welcome));
      });
    }
    if (const auto* request = message.as<wire::Subscribe>()) {
      subscribed.emplace_back();
      request->UnPackTo(&subscribed.back());
      world->after(1ms, [this, asked = subscribed.back()] {
        wire::SubscribedT granted;
        granted.subscription = asked.subscription;
        granted.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
        granted.epoch = asked.epoch;
        granted.step = asked.step;
        granted.steps = 100;
        granted.world = granted.batches_per_step = batches_per_step;
        granted.arena = 1;
        granted.window = 4;
        world->say(std::move(granted));
      });
    }
    if (const auto* release = message.as<wire::Release>()) {
      releases.push_back(from_wire(release->leases()));
    }
    if (const auto* question = message.as<wire::ListUpcoming>()) {
      questions.push_back(question->question());
      counts.push_back(question->count());
      if (!answers_upcoming) return;
      if (in_place_of_answer) {
        return world->after(1ms, std::exchange(in_place_of_answer, nullptr));
      }
      wire::UpcomingT answer;
      answer.subscription = question->subscription();
      answer.question = question->question();
      for (std::uint64_t i = 2; i < 2 + question->count(); ++i) {
        answer.batches.emplace_back(0, i, i, 7, 2, 4, false);
      }
      world->after(1ms, [this, answer] {
        world->say(wire::UpcomingT(answer));
        if (behind_answer) std::exchange(behind_answer, nullptr)();
      });
    }
    if (const auto* question = message.as<wire::Ask>()) holds.push_back(question->holds());
    if (message.as<wire::Bye>() != nullptr) ++byes;
  }

  std::shared_ptr<ClientSubscription> subscribe() {
    wire::SubscribeT request;
    request.feed = "train";
    auto made = session->subscribe(std::move(request));
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    return *made;
  }

  /// Puts a batch into the slot of its number, and says where it lies.
  void deliver(const ClientSubscription& to, std::uint64_t step, bool may_join = false) {
    const std::array<std::uint64_t, 1> ordinals = {step};
    const std::array<std::string_view, 1> keys = {"one"};
    const std::array<std::uint32_t, 1> lengths = {1};
    BatchSpec spec;
    spec.feed = "train";
    spec.step = Step{step / batches_per_step};
    spec.world = batches_per_step;
    spec.index = BatchIndex{step};
    spec.fingerprint = {1, 2, 3};
    spec.ordinals = ordinals;
    spec.keys = keys;
    spec.lengths = lengths;
    std::vector<std::byte> bytes(kSlotBytes);
    const auto laid = lay_out_batch(spec, bytes);
    REQUIRE(laid);
    const std::size_t offset = step * kSlotBytes;
    arena.write(offset, std::span(bytes).subspan(laid->offset, laid->size));
    wire::DeliveryT ticket;
    ticket.subscription = to.number().value;
    ticket.lease = 100 + step;
    ticket.arena = 1;
    ticket.offset = offset;
    ticket.size = laid->size;
    ticket.step = step / batches_per_step;
    ticket.index = step;
    ticket.may_join = may_join;
    world->say(std::move(ticket));
  }

  /// The next event, which must be a batch.
  std::unique_ptr<bw_batch> next(const std::shared_ptr<ClientSubscription>& from,
                                 std::chrono::milliseconds limit = 10s) {
    auto event = session->next(from, session->after(limit));
    REQUIRE_MESSAGE(event, (event ? "" : event.error().message));
    REQUIRE(event->batch);
    return std::move(event->batch);
  }
  void release(std::unique_ptr<bw_batch> batch) const {
    batch->subscription->leases().give_back(batch->lease);
    session->tell(*batch->subscription);
  }

  Abilities abilities;
  bool answers_upcoming = true;
  std::function<void()> in_place_of_answer;  // to the next question
  std::function<void()> behind_answer;       ///< Once, before the session has taken it in.
  std::vector<std::uint32_t> questions;
  std::vector<std::uint32_t> counts;  ///< That they ask for.
  std::uint32_t batches_per_step = 1;
  SealedArena arena;
  ScriptedTransport* world = nullptr;
  std::shared_ptr<Session> session;
  std::vector<wire::SubscribeT> subscribed;
  std::vector<std::vector<LeaseNumber>> releases;  ///< A message each.
  std::vector<std::uint32_t> holds;                ///< What each Ask says.
  std::size_t byes = 0;
};

}  // namespace

TEST_CASE("client: a session under a script subscribes, reads, and goes on after a lost daemon") {
  Run run;
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  run.deliver(*subscription, 1);
  auto first = run.next(subscription);
  const auto second = run.next(subscription);
  CHECK(first->header.index == 0);
  CHECK(second->header.index == 1);
  run.release(std::move(first));
  CHECK(run.releases == std::vector<std::vector<LeaseNumber>>{{{100}}});

  run.world->after(2s, [&run] { run.world->die(); });
  run.world->after(5s, [&run] { run.world->rise(); });
  run.world->after(6s, [&] { run.deliver(*subscription, 2); });
  const Time before = run.session->link().now();
  const auto third = run.next(subscription);
  CHECK(third->header.index == 2);
  CHECK(run.session->link().now() == before + 6s);
  CHECK(run.session->link().reconnects() == 1);
  REQUIRE(run.subscribed.size() == 2);
  CHECK(run.subscribed[1].subscription == 1);
  CHECK(run.subscribed[1].step == 2);
  CHECK(run.subscribed[1].expects_fingerprint);
  CHECK(second->header.index == 1);  // it is as it was
}

TEST_CASE("client: a wait under a script ends at its limit, to the millisecond of virtual time") {
  Run run;
  const auto subscription = run.subscribe();
  const Time before = run.session->link().now();
  const auto nothing = run.session->next(subscription, run.session->after(1h));
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::timed_out);
  CHECK(run.session->link().now() == before + 1h);
}

TEST_CASE("client: a daemon that stays away is given up when the patience is over") {
  Run run(30s);
  const auto subscription = run.subscribe();
  run.world->die();
  const Time before = run.session->link().now();
  const auto nothing = run.session->next(subscription, run.session->after(1h));
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::disconnected);
  CHECK(run.session->link().now() == before + 30s);
}

TEST_CASE("client: releases wait for one subscription at a time") {
  Run run;
  const auto one = run.subscribe();
  const auto other = run.subscribe();
  for (const std::uint64_t step : {0U, 1U, 2U, 3U}) run.deliver(*one, step, true);
  run.deliver(*other, 0);
  static_cast<void>(run.next(one));
  run.release(run.next(one));
  CHECK(run.releases.empty());
  static_cast<void>(run.next(other));
  CHECK(run.releases == std::vector<std::vector<LeaseNumber>>{{{101}}});
}

TEST_CASE("client: a new daemon is told of a batch that is given back undone") {
  Run run(60s, kAbilities);
  wire::SubscribeT request;
  request.feed = "train";
  request.mode = wire::Mode::queue;
  const auto made = run.session->subscribe(std::move(request));
  REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  run.deliver(**made, 0);
  const auto batch = run.next(*made);
  run.world->die();
  run.world->after(1s, [&run] { run.world->rise(); });
  run.world->after(2s, [&] { run.deliver(**made, 1); });
  const auto other = run.next(*made);
  (*made)->leases().give_back_undone(batch->lease);
  run.session->tell(**made);
  CHECK(run.releases == std::vector<std::vector<LeaseNumber>>{{{100}}});
}

TEST_CASE("client: a session that is closed says Bye once the last batch is back") {
  Run run;
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  auto batch = run.next(subscription);
  run.session->close();
  CHECK(run.byes == 0);
  run.release(std::move(batch));
  CHECK(run.byes == 1);
}

TEST_CASE("client: what comes next begins with the batches that came and were not taken") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  run.deliver(*subscription, 1);
  const auto batch = run.next(subscription);  // of step 0
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(1s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  REQUIRE(coming->batches.size() == 3);
  CHECK(coming->certain == 3);
  CHECK(coming->batches[0].step() == 1);
  CHECK(coming->batches[0].rows() == 1);
  CHECK(coming->batches[1].step() == 2);
  CHECK(coming->batches[1].length() == 4);
  CHECK(coming->batches[2].step() == 3);
  CHECK(run.next(subscription)->header.step == 1);  // it is still there
}

TEST_CASE("client: a batch that arrives with the answer on what comes next is named once") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  run.deliver(*subscription, 1);
  const auto batch = run.next(subscription);
  run.behind_answer = [&] { run.deliver(*subscription, 2); };
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(1s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  REQUIRE(coming->batches.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(coming->batches[i].step() == i + 1);
}

TEST_CASE("client: the answer of a daemon that is lost with it is void") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  run.deliver(*subscription, 1);
  const auto batch = run.next(subscription);
  run.behind_answer = [&] {
    run.world->die();
    run.world->after(1s, [&run] { run.world->rise(); });
  };
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(5s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  CHECK(run.questions.size() == 2);
  CHECK(coming->batches.at(0).step() == 2);  // of the second answer; the batch of step 1 is void
}

TEST_CASE("client: the answer of a feed that was replaced meanwhile is void") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.in_place_of_answer = [&] {
    wire::RefusedT replaced;
    replaced.subscription = subscription->number().value;
    replaced.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
    replaced.message = "the feed is replaced";
    run.world->say(std::move(replaced));
    wire::UpcomingT nothing;  // what a daemon says of a subscription that it does not have
    nothing.subscription = subscription->number().value;
    nothing.question = run.questions.back();
    run.world->say(std::move(nothing));
  };
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(5s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  CHECK(run.questions.size() == 2);
  CHECK(coming->batches.size() == 3);
}

TEST_CASE("client: what a new daemon sends again is asked for beside what comes next") {
  Run run(60s, kAbilities);
  run.batches_per_step = 2;
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  const auto batch = run.next(subscription);  // the step is not complete
  run.world->die();
  run.world->after(1s, [&run] { run.world->rise(); });
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(5s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  CHECK(run.counts == std::vector<std::uint32_t>{4});
  CHECK(coming->batches.size() == 3);
}

TEST_CASE("client: a daemon that cannot tell what comes next is not asked") {
  Run run;
  const auto subscription = run.subscribe();
  const auto coming = run.session->upcoming(*subscription, 3, run.session->after(1s));
  REQUIRE_FALSE(coming);
  CHECK(coming.error().code == ErrorCode::unsupported);
  CHECK(
      coming.error().message ==
      "the daemon at ipc:///simulated/batchwright.sock is too old to tell which batches come next");
  CHECK(run.questions.empty());
}

TEST_CASE("client: an answer on what comes next is that to the latest question") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.answers_upcoming = false;
  const auto none = run.session->upcoming(*subscription, 1, run.session->after(100ms));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::timed_out);
  run.answers_upcoming = true;
  wire::UpcomingT late;
  late.subscription = subscription->number().value;
  late.question = run.questions.at(0);
  run.world->say(std::move(late));
  const auto coming = run.session->upcoming(*subscription, 1, run.session->after(1s));
  REQUIRE_MESSAGE(coming, (coming ? "" : coming.error().message));
  CHECK(coming->batches.size() == 1);
  CHECK(run.questions.size() == 2);
}

TEST_CASE("client: a batch of a feed that was replaced counts no more, nor does its release") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  auto batch = run.next(subscription);
  wire::RefusedT replaced;
  replaced.subscription = subscription->number().value;
  replaced.code = static_cast<std::uint16_t>(ErrorCode::disconnected);
  replaced.message = "the feed is replaced";
  run.world->say(std::move(replaced));
  CHECK_FALSE(run.session->next(subscription, run.session->after(100ms)));
  REQUIRE(run.subscribed.size() == 2);
  CHECK(run.subscribed.back().step == 1);
  CHECK(std::ranges::count(run.holds, 0U) == std::ssize(run.holds));
  CHECK_FALSE(run.holds.empty());
  run.release(std::move(batch));
  run.deliver(*subscription, 1);
  run.release(run.next(subscription));
  CHECK(run.releases == std::vector<std::vector<LeaseNumber>>{{{101}}});
}

TEST_CASE("client: a program that began to poll while no daemon was there waits for the next one") {
  Run run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  const auto batch = run.next(subscription);
  run.world->die();
  run.world->after(1s, [&run] { run.world->rise(); });
  for (int polls = 0; polls < 200; ++polls) {
    CHECK_FALSE(run.session->next(subscription, run.session->after(1ms)));
    run.world->pass(10ms);
  }
  REQUIRE(run.subscribed.size() == 2);
  CHECK(run.holds == std::vector<std::uint32_t>{0});  // to the new one
}
