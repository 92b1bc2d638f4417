#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <set>

#include "tests/delivery/queue_worker.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Of a batch that a worker takes from a daemon that ends before it is released.
std::uint64_t first_lease(const TemporaryFolder& folder) {
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(), 77);
  const std::uint64_t lease = anna.take().lease;
  server.stop();
  return lease;
}

}  // namespace

TEST_CASE("delivery: workers of a queue share each epoch, every batch to one of them") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(1, 2));
  Worker bert(server, in_queue(1, 2));
  std::map<std::uint64_t, std::multiset<std::uint64_t>> epochs;
  std::size_t ends = 0;
  CHECK(server.eventually([&](TestServer&) {
    for (Worker* worker : {&anna, &bert}) {
      if (worker->client.silent()) continue;
      const auto message = worker->client.receive();
      ends += message->as<wire::EpochEnd>() != nullptr ? 1 : 0;
      const auto* delivery = message->as<wire::Delivery>();
      if (delivery == nullptr) continue;
      epochs[delivery->epoch()].insert(delivery->index());
      worker->release(unpacked(*delivery));
    }
    return ends == 4;
  }));
  CHECK(epochs.size() == 2);
  for (const auto& [epoch, indices] : epochs) {
    CHECK(indices.size() == 10);
    CHECK(std::set<std::uint64_t>(indices.begin(), indices.end()).size() == 10);
  }
}

TEST_CASE("delivery: what a dead worker had goes to another, before all else") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(2));
  const auto done = anna.take();
  const auto lost = anna.take();
  anna.release(done);
  const auto also_lost = anna.take();
  anna.client.die();
  CHECK(server.eventually([](TestServer& s) { return s.feed().queue.out == 0; }));
  Worker bert(server);
  CHECK(bert.take().index == lost.index);
  CHECK(server.feed().queue.done == 1);
  CHECK(also_lost.index == 2);
}

TEST_CASE("delivery: a dead worker's slots are back at once, and its last release still counts") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server, in_queue(2));
  const auto done = anna.take();
  const auto lost = anna.take();
  anna.client.die();
  REQUIRE(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  anna.release(done);  // overtaken by the end of its connection
  CHECK(server.eventually([](TestServer& s) { return s.feed().queue.done == 1; }));
  Worker bert(server);
  const auto next = bert.take();
  CHECK((next.index == lost.index || next.index == 2));
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 1; }));
}

TEST_CASE("delivery: a queue's epoch ends once others have released all they hold") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server);
  const auto held = anna.take();
  Worker bert(server);
  for (int i = 0; i < 9; ++i) bert.release(bert.take());
  wire::AskT question;
  question.subscription = 1;
  bert.client.send(std::move(question));
  const auto answer = bert.client.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Waiting>() != nullptr);
  CHECK(answer->as<wire::Waiting>()->reason()->str().find("the end of epoch 0") == 0);
  SUBCASE("by a release") {
    anna.client.say_waiting(1, 1);
    CHECK(anna.ended());  // what it holds itself does not keep one that waits
    anna.release(held);
    CHECK(bert.ended());
  }
  SUBCASE("by a death") {
    anna.client.die();
    const auto again = bert.take();
    CHECK(again.index == held.index);
    bert.release(again);
    CHECK(bert.ended());
  }
}

TEST_CASE("delivery: a batch that is done and held keeps its slot, and not a queue's epoch") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  Worker anna(server);
  const auto held = anna.take();
  Worker bert(server);
  for (int i = 0; i < 9; ++i) bert.release(bert.take());
  auto done = release_of(held);
  done.keeps = true;
  anna.client.send(std::move(done));
  CHECK(bert.ended());  // perhaps before the last of its own releases is seen
  CHECK(server.eventually([](TestServer& s) { return s.count(FeedCounter::releases) == 9; }));
  CHECK(server.held_slots() == 1);
  anna.release(held);
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
  CHECK(server.count(FeedCounter::releases_unknown) == 0);
}

TEST_CASE("delivery: a queue goes on after a restart, and no batch that is done comes again") {
  const TemporaryFolder folder;
  std::set<std::uint64_t> done;
  wire::DeliveryT held;
  {
    TestServer server(queue_feed(folder));
    Worker anna(server, in_queue(2), 77);
    for (int i = 0; i < 3; ++i) {
      const auto ticket = anna.take();
      done.insert(ticket.index);
      anna.release(ticket);
    }
    held = anna.take();
    CHECK(server.eventually([](TestServer& s) { return s.count(FeedCounter::releases) == 3; }));
    server.stop();
  }
  TestServer server(queue_feed(folder));
  auto request = in_queue(1);
  request.held = {held.lease};
  Worker anna(server, std::move(request), 77);
  Worker bert(server, in_queue(1));
  std::set<std::uint64_t> rest;
  for (int i = 0; i < 6; ++i) {
    const auto ticket = bert.take();
    CHECK_FALSE(done.contains(ticket.index));
    CHECK(rest.insert(ticket.index).second);
    bert.release(ticket);
  }
  CHECK_FALSE(rest.contains(held.index));
  anna.release(held);
  CHECK(bert.ended());
}

TEST_CASE("delivery: what was released before a restart, and perhaps not noted, is done") {
  const TemporaryFolder folder;
  const std::uint64_t lease = first_lease(folder);
  TestServer server(queue_feed(folder));
  auto request = in_queue();
  request.released = {lease};
  Worker anna(server, std::move(request), 77);
  CHECK(server.feed().queue.done == 1);
  CHECK(anna.take().index == 1);
}

TEST_CASE("delivery: a lease that a power cut took out of the journal is never given again") {
  const TemporaryFolder folder;
  const std::uint64_t forgotten = first_lease(folder);
  const std::uintmax_t plan_and_epoch = 64;
  REQUIRE(std::filesystem::file_size(folder / "journal") > plan_and_epoch);
  std::filesystem::resize_file(folder / "journal", plan_and_epoch);
  TestServer server(queue_feed(folder));
  auto request = in_queue(2);
  request.held = {forgotten};
  Worker anna(server, std::move(request), 77);
  const auto again = anna.take();
  CHECK(again.index == 0);
  CHECK(again.lease > forgotten);
}

TEST_CASE("delivery: what no client comes back for is given to others") {
  const TemporaryFolder folder;
  FeedSettings settings = queue_feed(folder);
  settings.queue_grace = std::chrono::milliseconds(1);
  {
    TestServer server(settings);
    Worker anna(server);
    CHECK(anna.take().index == 0);
    server.stop();
  }
  TestServer server(settings);
  Worker bert(server);
  CHECK(all_of_epoch(bert).size() == 10);
}

TEST_CASE("delivery: a feed that has failed lets go of its journal, and its heir goes on in it") {
  const TemporaryFolder folder;
  FeedSettings settings = queue_feed(folder);
  settings.queue_grace = std::chrono::milliseconds(1);
  settings.ledger = "/dev/full";
  TestServer server(settings);
  Worker anna(server);
  REQUIRE(read_until<wire::Refused>(anna.client));
  const auto size = std::filesystem::file_size(folder / "journal");
  settings.ledger.clear();
  Catalog catalog;
  const auto dataset = catalog.open({server.dataset()});
  REQUIRE(dataset);
  auto resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
  const bool closed = server.eventually([&](TestServer&) {  // by the thread that writes the journal
    if (!resources) resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
    return static_cast<bool>(resources);
  });
  REQUIRE(closed);
  CHECK(resources->queue.out().size() == 1);  // told by the journal, before the ledger failed
  CHECK(std::filesystem::file_size(folder / "journal") == size);
  server.ask([&](Server& s) {
    s.replace_feed(settings, std::move(*resources), "feed train had failed");
    return 0;
  });
  Worker bert(server);
  CHECK(all_of_epoch(bert).size() == 10);
}

TEST_CASE("delivery: while a queue's journal waits for its disk all others go on") {
  const TemporaryFolder folder;
  const FeedSettings settings = queue_feed(folder);
  std::promise<void> disk;
  const std::shared_future<void> written = disk.get_future().share();
  std::atomic<int> syncs{0};
  TestServer server(settings, [&](const auto&, FeedResources& resources) {
    resources.files.sync = [&syncs, written](int) {
      ++syncs;
      written.wait();
      return 0;
    };
  });
  Worker anna(server, in_queue(1, 2));
  CHECK(all_of_epoch(anna).size() == 10);
  CHECK(server.eventually([&syncs](TestServer&) { return syncs == 1; }));
  CHECK(anna.ended());
  RawClient other(server.endpoint());
  auto replica = subscribe_to_train();
  replica.epochs = 1;
  REQUIRE(join(other, server.arena_socket(), std::move(replica)));
  CHECK(indices_to_the_end(other).size() == 10);
  CHECK(server.feed().queue.epoch.value == 0);
  disk.set_value();
  REQUIRE(read_until<wire::EpochBegin>(anna.client));
  CHECK(all_of_epoch(anna).size() == 10);
}

TEST_CASE("delivery: a journal that cannot begin an epoch ends the feed, and says why") {
  const TemporaryFolder folder;
  TestServer server(queue_feed(folder));
  std::filesystem::create_directory(folder / "journal.new");
  Worker anna(server, in_queue(1, 2));
  CHECK(all_of_epoch(anna).size() == 10);
  const auto refused = read_until<wire::Refused>(anna.client);
  REQUIRE(refused);
  CHECK(refused->as<wire::Refused>()->message()->str().find("journal.new: open: Is a directory") !=
        std::string::npos);
}

TEST_CASE("delivery: a feed without a journal has no queue, and says so") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(in_queue());
  const auto answer = client.receive();
  REQUIRE(answer);
  REQUIRE(answer->as<wire::Refused>() != nullptr);
  const std::string why = answer->as<wire::Refused>()->message()->str();
  CAPTURE(why);
  CHECK(
      why.ends_with("its configuration names no journal, without which no record would show "
                    "after a restart what is done"));
}
