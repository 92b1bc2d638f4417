// Whole sessions over a script: no socket, no thread and no real time.

#include "client/library/session/session.h"

#include <doctest/doctest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "tests/client/session/scripted_run.h"

using namespace batchwright;
using namespace batchwright::test;
using namespace std::chrono_literals;

TEST_CASE("client: a session under a script subscribes, reads, and goes on after a lost daemon") {
  ScriptedRun run;
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
  ScriptedRun run;
  const auto subscription = run.subscribe();
  const Time before = run.session->link().now();
  const auto nothing = run.session->next(subscription, run.session->after(1h));
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::timed_out);
  CHECK(run.session->link().now() == before + 1h);
}

TEST_CASE("client: a daemon that stays away is given up when the patience is over") {
  ScriptedRun run(30s);
  const auto subscription = run.subscribe();
  run.world->die();
  const Time before = run.session->link().now();
  const auto nothing = run.session->next(subscription, run.session->after(1h));
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::disconnected);
  CHECK(run.session->link().now() == before + 30s);
}

TEST_CASE("client: releases wait for one subscription at a time") {
  ScriptedRun run;
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
  ScriptedRun run(60s, kAbilities);
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
  ScriptedRun run;
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  auto batch = run.next(subscription);
  run.session->close();
  CHECK(run.byes == 0);
  run.release(std::move(batch));
  CHECK(run.byes == 1);
}

TEST_CASE("client: what comes next begins with the batches that came and were not taken") {
  ScriptedRun run(60s, kAbilities);
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
  ScriptedRun run(60s, kAbilities);
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
  ScriptedRun run(60s, kAbilities);
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
  ScriptedRun run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.in_place_of_answer = [&] {
    run.refuse(subscription->number().value, static_cast<std::uint16_t>(ErrorCode::disconnected));
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
  ScriptedRun run(60s, kAbilities);
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
  ScriptedRun run;
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
  ScriptedRun run(60s, kAbilities);
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

TEST_CASE("client: a program that began to poll while no daemon was there waits for the next one") {
  ScriptedRun run(60s, kAbilities);
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

TEST_CASE("client: a wait of less than a millisecond is not told, and a longer one is") {
  ScriptedRun run(60s, kAbilities);
  const auto subscription = run.subscribe();
  run.world->after(0ms, [&] { run.deliver(*subscription, 0); });
  const auto first = run.next(subscription);
  CHECK(run.holds.empty());
  run.world->after(2ms, [&] { run.deliver(*subscription, 1); });
  const auto second = run.next(subscription);
  CHECK(run.holds == std::vector<std::uint32_t>{1});
}

TEST_CASE("client: a batch keeps the connection of its arena") {
  ScriptedRun run;
  const auto subscription = run.subscribe();
  run.deliver(*subscription, 0);
  CHECK(run.next(subscription)->arenas != nullptr);
}
