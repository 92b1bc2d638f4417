#include "tests/delivery/feed/slot_admission_model.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace batchwright::test;

namespace {

std::vector<Actor> job_of(std::uint32_t ranks, std::size_t keeps, std::uint32_t window,
                          std::uint32_t ranks_of_all = 0, bool here_is_known = true) {
  std::vector<Actor> actors;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    Actor actor;
    actor.keeps = keeps;
    actor.window = window;
    actor.job = {ranks_of_all != 0 ? ranks_of_all : ranks, here_is_known ? ranks : 0};
    actor.rank = rank;
    actors.push_back(actor);
  }
  return actors;
}

std::vector<Actor> replicas_of(std::uint32_t count, std::size_t keeps, std::uint32_t window,
                               bool in_step) {
  std::vector<Actor> actors;
  for (std::uint32_t i = 0; i < count; ++i) {
    Actor actor;
    actor.keeps = keeps;
    actor.window = window;
    actor.rank = 50;
    actor.epoch = in_step ? 0 : i + 1;
    actors.push_back(actor);
  }
  return actors;
}

Actor onlooker(Job job = {}, std::uint32_t rank = 70, std::uint32_t window = 3) {
  Actor actor;
  actor.program = Actor::Program::idles;
  actor.job = job;
  actor.rank = rank;
  actor.window = window;
  return actor;
}

std::vector<Actor> together(std::vector<Actor> some, const std::vector<Actor>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

void check_goes_on(std::size_t slots, const std::vector<Actor>& actors, std::uint8_t steps = 4) {
  const Explored explored = explore(slots, actors, admission_rule(slots), steps);
  INFO("clients: ", actors.size(), ", slots: ", slots, ", states: ", explored.states);
  CHECK(explored.stuck == "");
}

}  // namespace

TEST_CASE("delivery: the model finds where a rule lets loops stand still") {
  CHECK(explore(4, job_of(2, 1, 2), empty_handed_rule(4)).stuck != "");
  CHECK(explore(6, job_of(3, 1, 3), empty_handed_rule(6), 3).stuck != "");
  auto beside = replicas_of(1, 1, 4, true);
  beside.push_back(onlooker({16, 0}));
  CHECK(explore(16, beside, empty_handed_rule(16)).stuck != "");
  CHECK(explore(2, job_of(2, 1, 2), admission_rule(2)).stuck != "");  // too few, whatever the rule
}

TEST_CASE("delivery: ranks that meet at a barrier go on with a slot more than ranks") {
  for (const std::uint32_t ranks : {1U, 2U, 3U}) {
    for (const std::size_t keeps : {0U, 1U}) {
      for (const std::uint32_t window : {2U, 3U, 4U}) {
        for (std::size_t slots = ranks + 1; slots <= ranks + 4; ++slots) {
          check_goes_on(slots, job_of(ranks, keeps, window), 3);
        }
      }
    }
  }
  check_goes_on(5, job_of(4, 1, 3), 3);
  check_goes_on(7, job_of(4, 1, 3), 3);
}

TEST_CASE("delivery: ranks go on that say nothing of how many are on this host") {
  for (std::size_t slots = 3; slots <= 6; ++slots) {
    check_goes_on(slots, job_of(2, 1, 3, 0, false));
    check_goes_on(slots, job_of(2, 1, 3, 16, true));
  }
  check_goes_on(5, job_of(3, 1, 3, 0, false), 3);
}

TEST_CASE("delivery: an onlooker that releases nothing stops no client that has a slot more") {
  for (const Job& job : {Job{}, Job{16, 0}, Job{2, 0}, Job{3, 3}}) {
    for (std::size_t slots = 4; slots <= 6; ++slots) {
      auto actors = job_of(2, 1, 3);
      actors.push_back(onlooker(job));
      check_goes_on(slots, actors, 3);
    }
    auto alone = replicas_of(1, 1, 3, true);
    alone.push_back(onlooker(job));
    alone.push_back(onlooker(job, 71));
    check_goes_on(4, alone);
  }
}

TEST_CASE("delivery: jobs and replicas beside each other go on") {
  for (std::size_t slots = 5; slots <= 6; ++slots) {
    check_goes_on(slots, together(job_of(2, 1, 3), job_of(2, 1, 3, 6)), 3);
    check_goes_on(slots, together(job_of(2, 1, 3), replicas_of(2, 1, 3, false)), 3);
    check_goes_on(slots, together(job_of(2, 1, 4), replicas_of(2, 1, 2, true)), 3);
    check_goes_on(slots, replicas_of(4, 1, 3, false), 3);
  }
  check_goes_on(6, together(together(job_of(2, 1, 3), job_of(2, 0, 3, 6)), {onlooker()}), 2);
}

TEST_CASE("delivery: a loop beside a job needs a slot of its own, without which both can stop") {
  auto beside = together(job_of(2, 1, 3), replicas_of(1, 1, 3, true));
  beside.back().rank = 0;  // it gets what the job's first rank gets, and gets in by sharing it
  CHECK(explore(3, beside, admission_rule(3)).stuck != "");
  for (std::size_t slots = 4; slots <= 6; ++slots) check_goes_on(slots, beside, 3);
}

TEST_CASE("delivery: two jobs some ranks of which release first go on beside each other") {
  auto jobs = together(job_of(2, 1, 5), job_of(2, 1, 5, 9));
  jobs[1].keeps = 0;
  jobs[3].keeps = 0;
  check_goes_on(5, jobs);
  check_goes_on(6, jobs, 3);
}

TEST_CASE("delivery: where there are too few slots for all, one after the other is served") {
  check_goes_on(2, replicas_of(2, 1, 2, false));
  check_goes_on(3, replicas_of(4, 1, 2, false), 3);
  check_goes_on(1, replicas_of(3, 0, 1, false));
}

TEST_CASE("delivery: a replica's batches that a job's ranks hold too are no one's last slot") {
  for (std::size_t slots = 4; slots <= 6; ++slots) {
    auto actors = together(job_of(2, 1, 4), replicas_of(1, 1, 3, true));
    actors.back().rank = 0;  // it gets what the job's first rank gets
    check_goes_on(slots, actors);
    actors.front().keeps = 0;
    check_goes_on(slots, actors);
  }
}

TEST_CASE("delivery: a client that holds several while it waits goes on with a slot for each") {
  for (const std::uint32_t window : {2U, 3U}) {
    auto gathering = job_of(2, 1, window);
    for (Actor& actor : gathering) actor.program = Actor::Program::gathers;
    check_goes_on(2 * window + 1, gathering);
    check_goes_on(3 * window + 1, together(gathering, replicas_of(1, window - 1, window, true)), 3);
    check_goes_on(2 * window + 1, job_of(2, window - 1, window));
  }
}
