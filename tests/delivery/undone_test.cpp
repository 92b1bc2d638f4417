#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/delivery/queue_worker.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("delivery: a batch that is given back undone goes to another worker, and says so") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server);
  const auto first = anna.take();
  CHECK(first.attempt == 1);
  anna.give_up(first);
  const auto next = anna.take();  // there are others
  CHECK(next.index == 1);
  Worker bert(server);
  const auto again = bert.take();
  CHECK(again.index == first.index);
  CHECK(again.attempt == 2);
  CHECK(again.lease != first.lease);
  CHECK(server.feed().queue.done == 0);
}

TEST_CASE("delivery: the last batch that is given back undone goes to one that waits") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server);
  for (int i = 0; i < 9; ++i) anna.release(anna.take());
  const auto last = anna.take();
  CHECK(last.index == 9);
  Worker bert(server);
  anna.give_up(last);
  const auto again = bert.take();
  CHECK(again.index == 9);
  bert.release(again);
  CHECK(anna.ended());
  CHECK(bert.ended());
}

TEST_CASE("delivery: the last batch that the only worker gives back undone comes to it again") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(1, 2));
  for (int i = 0; i < 9; ++i) anna.release(anna.take());
  const auto last = anna.take();
  anna.client.say_waiting(1, 1);
  REQUIRE(anna.ended());  // it waits for no one but itself
  anna.give_up(last);
  const auto delivery = read_until<wire::Delivery>(anna.client);
  REQUIRE(delivery);
  const auto again = unpacked(*delivery->as<wire::Delivery>());
  CHECK(again.epoch == 0);
  CHECK(again.index == 9);
  CHECK(again.attempt == 2);
  anna.release(again);
  REQUIRE(read_until<wire::EpochBegin>(anna.client));
  CHECK(all_of_epoch(anna).size() == 10);
}

TEST_CASE("delivery: the end is told to a worker once it cannot give its last batch back undone") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server);
  for (int i = 0; i < 9; ++i) anna.release(anna.take());
  anna.give_up(anna.take());
  const auto again = anna.take();  // and not the end, after which it would not come again
  CHECK(again.index == 9);
  CHECK(again.attempt == 2);
  anna.release(again);
  CHECK(anna.ended());
}

TEST_CASE("delivery: a batch that no worker can do is named, and set aside where that is wanted") {
  const TemporaryFolder folder;
  FeedSettings settings = queue_feed(folder);
  const auto count = [](TestServer& server, Event event) {
    return server.ask([event](const Server& s) { return s.log().get(event); });
  };
  for (const std::uint32_t attempts : {0U, 4U}) {
    settings.queue_attempts = attempts;
    std::filesystem::remove(settings.journal);
    TestServer server(settings);
    for (std::uint32_t i = 1; i <= 4; ++i) {
      Worker worker(server);
      const auto ticket = worker.take();
      CHECK(ticket.index == 0);
      CHECK(ticket.attempt == i);
      if (i % 2 == 0) {
        worker.give_up(ticket);
        worker.client.send(wire::ByeT{});  // it does not end with the batch that it gets now
      } else {
        worker.client.die();
      }
      REQUIRE(server.eventually(
          [i](TestServer& s) { return s.count(FeedCounter::queue_returns) == i; }));
    }
    CHECK(count(server, Event::queue_batch_returned) == (attempts == 0 ? 2 : 1));
    CHECK(count(server, Event::queue_batch_set_aside) == (attempts == 0 ? 0 : 1));
    Worker rest(server);
    std::set<std::uint64_t> indices;
    const std::size_t left = attempts == 0 ? 10 : 9;
    while (indices.size() < left) {
      const auto ticket = rest.take();
      indices.insert(ticket.index);
      rest.release(ticket);
    }
    CHECK(indices.contains(0) == (attempts == 0));
    CHECK(rest.ended());
  }
}

TEST_CASE("delivery: a queue has so many epochs as its workers say, however late they begin") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  auto two = in_queue(1, 0);
  two.until_epoch = 2;
  Worker anna(server, two);
  CHECK(all_of_epoch(anna).size() == 10);
  const auto end = read_until<wire::EpochEnd>(anna.client);
  REQUIRE(end);
  CHECK_FALSE(end->as<wire::EpochEnd>()->last());
  Worker bert(server, two);
  std::set<std::uint64_t> indices;
  std::set<const Worker*> ended;  // a worker's end may come before the other's last batch is read
  CHECK(server.eventually([&](TestServer&) {
    for (Worker* worker : {&anna, &bert}) {
      if (worker->client.silent()) continue;
      const auto message = worker->client.receive();
      const auto* ending = message->as<wire::EpochEnd>();
      if (ending != nullptr && ending->last()) ended.insert(worker);
      const auto* delivery = message->as<wire::Delivery>();
      if (delivery == nullptr) continue;
      CHECK(delivery->epoch() == 1);
      indices.insert(delivery->index());
      worker->release(unpacked(*delivery));
    }
    return ended.size() == 2;
  }));
  CHECK(indices.size() == 10);
  REQUIRE(server.eventually([](TestServer& s) { return s.feed().queue.epoch == Epoch{2}; }));
  Worker late(server, two);
  RawClient other(server.endpoint());
  auto replica = subscribe_to_train();
  replica.epochs = 1;
  REQUIRE(join(other, server.arena_socket(), std::move(replica)));
  CHECK(indices_to_the_end(other).size() == 10);
  CHECK(late.client.silent());
}

TEST_CASE("delivery: a worker that is closed keeps what it names, and nothing else") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(3));
  const auto held = anna.take();
  anna.take();
  anna.take();
  wire::ReleaseT held_alone = release_of(held);
  held_alone.keeps = true;
  held_alone.undone = true;
  anna.client.send(std::move(held_alone));
  Worker bert(server);
  std::set<std::uint64_t> indices;
  for (int i = 0; i < 9; ++i) {
    const auto ticket = bert.take();
    CHECK(ticket.attempt == 1);  // no worker began it
    indices.insert(ticket.index);
    bert.release(ticket);
  }
  CHECK(indices.size() == 9);
  CHECK_FALSE(indices.contains(held.index));
  CHECK(anna.client.silent());
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 1; }));
  anna.give_up(held);
  const auto again = bert.take();
  CHECK(again.index == held.index);
  CHECK(again.attempt == 2);
}
