#include "daemon/delivery/feed/queue/work_queue.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <vector>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr QueueOwner kAnna{1};
constexpr QueueOwner kBert{2};

/// Gives the next batch, or returns nothing.
std::optional<std::uint64_t> take(WorkQueue& queue, std::uint64_t lease, QueueOwner owner,
                                  std::uint64_t batches = 5) {
  const auto index = queue.ahead(0, batches);
  if (!index) return {};
  queue.give({lease}, *index, owner);
  return index->value;
}

}  // namespace

TEST_CASE("delivery: a queue gives each batch once, and what comes back before all others") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna) == 0);
  CHECK(take(queue, 2, kAnna) == 1);
  CHECK(take(queue, 3, kBert) == 2);
  CHECK(queue.done({2}, kAnna));
  CHECK_FALSE(queue.done({2}, kAnna));
  CHECK_FALSE(queue.done({3}, kAnna));
  queue.come_back({1});
  CHECK(queue.distance(BatchIndex{0}) == 0);
  CHECK(queue.distance(BatchIndex{1}) == std::nullopt);
  CHECK(queue.distance(BatchIndex{3}) == 1);
  CHECK(take(queue, 4, kBert) == 0);
  CHECK(take(queue, 5, kBert) == 3);
  CHECK(take(queue, 6, kBert) == 4);
  CHECK(take(queue, 7, kBert) == std::nullopt);
  CHECK(queue.exhausted(5));
  CHECK(queue.done_count() == 1);
  CHECK(queue.out_beside(kBert) == 0);
  for (const std::uint64_t lease : std::vector<std::uint64_t>{3, 4, 5, 6})
    CHECK(queue.done({lease}, kBert));
  CHECK(queue.over(5));
}

TEST_CASE("delivery: a queue keeps what a client that is away holds, and no longer than told") {
  WorkQueue queue;
  take(queue, 1, kAnna);
  take(queue, 2, kAnna);
  take(queue, 3, kBert);
  const WorkQueue::Time now{};
  CHECK_FALSE(queue.next_return());
  queue.keep(kAnna, now + 2s);
  CHECK(queue.next_return() == now + 2s);
  CHECK(queue.ahead(0, 5)->value == 3);
  SUBCASE("it comes back with one of two: the other never reached it") {
    const std::vector<LeaseNumber> held = {{2}, {3}, {99}};
    CHECK(queue.claim(kAnna, held) == std::vector<LeaseNumber>{{2}});
    CHECK(queue.ahead(0, 5)->value == 0);
    CHECK(queue.done({2}, kAnna));
  }
  SUBCASE("it does not come back") {
    CHECK(queue.due(now + 1s).empty());
    const auto due = queue.due(now + 2s);
    REQUIRE(due.size() == 2);
    for (const auto& [lease, owner] : due) {
      CHECK(owner == kAnna);
      queue.come_back(lease);
    }
    CHECK(queue.due(now + 2s).empty());
    CHECK(queue.ahead(0, 5)->value == 0);
    CHECK(queue.ahead(1, 5)->value == 1);
    CHECK(queue.out_beside(kAnna) == 1);
  }
}

TEST_CASE("delivery: a client that comes and goes puts off no one else's return") {
  WorkQueue queue;
  take(queue, 1, kAnna);
  take(queue, 2, kBert);
  const WorkQueue::Time now{};
  queue.keep(kAnna, now + 2s);
  for (int i = 1; i <= 5; ++i) {
    queue.keep(kBert, now + i * 1s + 2s);
    const std::vector<LeaseNumber> held = {{2}};
    CHECK(queue.claim(kBert, held) == held);
    queue.keep(kAnna, now + 60s);  // it is kept already
  }
  CHECK(queue.next_return() == now + 2s);
  REQUIRE(queue.due(now + 2s).size() == 1);
  queue.come_back(queue.due(now + 2s)[0].first);
  CHECK(queue.ahead(0, 5)->value == 0);
  CHECK_FALSE(queue.next_return());
}

TEST_CASE("delivery: a batch that was given up goes to others first, and says how often it was") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna) == 0);
  CHECK(queue.attempt(BatchIndex{0}) == 1);
  CHECK_FALSE(queue.give_up({1}, kBert));
  CHECK(queue.give_up({1}, kAnna));
  CHECK_FALSE(queue.give_up({1}, kAnna));
  CHECK(queue.attempt(BatchIndex{0}) == 2);
  CHECK(queue.next_for(kAnna, 5) == BatchIndex{1});
  CHECK(queue.next_for(kBert, 5) == BatchIndex{0});
  CHECK(queue.next_for(kAnna, 1) == BatchIndex{0});  // there is no other
  CHECK(take(queue, 2, kBert) == 0);
  CHECK(queue.done({2}, kBert));
  CHECK(queue.undone().empty());
  CHECK(queue.done_count() == 1);
}

TEST_CASE("delivery: a batch that is set aside counts as done, and is given to no one") {
  WorkQueue queue;
  CHECK(take(queue, 1, kAnna, 1) == 0);
  CHECK_FALSE(queue.set_aside({1}, kBert));
  CHECK(queue.set_aside({1}, kAnna));
  CHECK(queue.over(1));
  CHECK(queue.undone().at(0).set_aside);
  queue.begin(Epoch{1});
  CHECK(queue.undone().empty());
}
