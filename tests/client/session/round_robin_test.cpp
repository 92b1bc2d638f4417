#include "client/library/session/round_robin.h"

#include <doctest/doctest.h>

using namespace batchwright;

TEST_CASE("client: any number of merged steps is where turns taken one by one lead to") {
  const std::vector<std::uint64_t> steps = {2, 4, 0, 1};
  RoundRobin walked{std::vector<std::uint64_t>(steps.size()), 0};
  for (std::uint64_t merged = 0; merged < total_steps(steps); ++merged) {
    const auto found = round_robin_after(merged, steps);
    REQUIRE(found);
    CHECK(found->done == walked.done);
    std::size_t due = found->next;
    while (walked.done[walked.next] == steps[walked.next]) walked.next = (walked.next + 1) % 4;
    while (walked.done[due] == steps[due]) due = (due + 1) % 4;
    CHECK(due == walked.next);
    ++walked.done[walked.next];
    walked.next = (walked.next + 1) % 4;
  }
  CHECK(round_robin_after(7, steps)->done == steps);
}

TEST_CASE("client: servers have no place after their last step") {
  CHECK_FALSE(round_robin_after(8, {2, 4, 0, 1}));
  CHECK(round_robin_after(0, {0, 0}));
}

TEST_CASE("client: the plan of several servers tells their number, order and parts apart") {
  const Fingerprint one{1, 2, 3};
  const Fingerprint other{4, 2, 3};
  CHECK(combined({one, other}) == combined({one, other}));
  CHECK(combined({one, other}).data != combined({other, one}).data);
  CHECK(combined({one, other}).seed == combined({other, one}).seed);
  CHECK(combined({one}).seed != combined({one, one}).seed);
}
