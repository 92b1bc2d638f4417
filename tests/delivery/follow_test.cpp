#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FeedSettings followed() {
  FeedSettings settings = sorted_feed(4);
  settings.follow = true;
  settings.slots = 16;
  return settings;
}

wire::SubscribeT window_of_one(std::uint64_t epochs) {
  auto subscribe = subscribe_to_train();
  subscribe.window = 1;
  subscribe.epochs = epochs;
  return subscribe;
}

/// Takes and releases `count` batches; the arenas they lay in.
std::set<std::uint32_t> take(RawClient& client, int count) {
  std::set<std::uint32_t> arenas;
  for (int i = 0; i < count; ++i) {
    const auto ticket = next_ticket(client);
    REQUIRE(ticket);
    arenas.insert(ticket->arena);
    client.send(release_of(*ticket));
  }
  return arenas;
}

wire::EpochBeginT begun(RawClient& client) {
  REQUIRE(read_until<wire::EpochEnd>(client));
  const auto message = client.receive();
  REQUIRE(message);
  REQUIRE(message->as<wire::EpochBegin>() != nullptr);
  wire::EpochBeginT begin;
  message->as<wire::EpochBegin>()->UnPackTo(&begin);
  return begin;
}

/// Batches of epoch 0 and 1 are planned before anything is appended.
void plan_two_epochs(TestServer& server) {
  CHECK(server.eventually([](TestServer& s) { return s.count(FeedCounter::epochs_planned) == 2; }));
}

}  // namespace

TEST_CASE("delivery: a feed that follows takes up what was appended with a new epoch") {
  TestServer server(followed(), 40, {5, 6, 7, 8});
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), window_of_one(3)));
  plan_two_epochs(server);
  server.append();
  take(client, 10);
  CHECK(begun(client).steps == 10);
  take(client, 10);
  const auto begin = begun(client);
  CHECK(begin.steps == 11);
  CHECK(begin.fingerprint->data() == server.ask([](const Server& s) {
    return s.feeds()[0]->plan_question({}).snapshot->content();
  }));
  CHECK(take(client, 11) == std::set<std::uint32_t>{1});
}

TEST_CASE("delivery: longer sequences get a larger arena, and no client loses what it holds") {
  TestServer server(followed(), 40, {500, 600, 700, 800});
  RawClient holder(server.endpoint());
  REQUIRE(join(holder, server.arena_socket(), window_of_one(1)));
  const auto held = next_ticket(holder);
  REQUIRE(held);
  std::uint64_t bytes = 0;
  const int descriptor = holder.arena(held->arena, holder.session(), bytes);
  void* mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  REQUIRE(mapping != MAP_FAILED);
  const auto* first = static_cast<const std::byte*>(mapping) + held->offset;
  const std::vector<std::byte> before(first, first + held->size);

  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), window_of_one(3)));
  plan_two_epochs(server);
  server.append();
  take(client, 10);
  begun(client);
  take(client, 10);
  CHECK(begun(client).steps == 11);
  CHECK(take(client, 11) == std::set<std::uint32_t>{1 + (1U << 16)});
  std::uint64_t larger = 0;
  CHECK(client.arena(1 + (1U << 16), client.session(), larger) >= 0);
  CHECK(larger > bytes);
  CHECK(std::vector<std::byte>(first, first + held->size) == before);
  holder.send(release_of(*held));
  CHECK(server.eventually([](TestServer& s) {
    return s.ask([](const Server& at) { return at.feeds()[0]->find_arena({1}) == nullptr; });
  }));
  ::munmap(mapping, bytes);
  ::close(descriptor);
}

TEST_CASE("delivery: where a larger arena does not fit, training goes on with what there was") {
  TestServer server(followed(), 40, {500, 600, 700, 800});
  server.ask([](Server& s) {
    s.memory().set_left(0);
    return true;
  });
  RawClient client(server.endpoint());
  REQUIRE(join(client, server.arena_socket(), window_of_one(3)));
  plan_two_epochs(server);
  server.append();
  take(client, 10);
  begun(client);
  take(client, 10);
  CHECK(begun(client).steps == 10);
  CHECK(take(client, 10).size() == 1);
}

TEST_CASE("delivery: a larger arena that no client takes up gives its memory back") {
  const TemporaryFolder folder;
  make_small_dataset(folder / "before", {5, 6, 7, 8});
  make_small_dataset(folder / "after", {500, 600, 700, 800});
  Catalog catalog;
  const auto before = catalog.open({folder / "before"});
  const auto after = catalog.open({folder / "after"});
  REQUIRE(before);
  REQUIRE(after);
  const auto known = (*before)->snapshot();
  REQUIRE(known);
  constexpr std::uint64_t kLeft = std::uint64_t{1} << 30;
  const auto memory = std::make_shared<MemoryBudget>(kLeft);
  {
    const Growth growth{*after, *known, {}, 1, memory};
    const auto grown = plan_growing(growth, choose_data(growth), followed(), Epoch{0});
    REQUIRE(grown);
    REQUIRE(grown->larger.arena);
    CHECK(memory->left() == kLeft - grown->larger.arena->bytes());
  }
  CHECK(memory->left() == kLeft);
}

TEST_CASE("delivery: a client that resumes in an epoch gets the data that the epoch began with") {
  TestServer server(followed(), 40, {5, 6, 7, 8});
  const Fingerprint before = *server.feed().fingerprint;
  server.append();
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  auto subscribe = window_of_one(1);
  subscribe.epoch = 4;
  subscribe.step = 3;
  subscribe.expects_fingerprint = true;
  subscribe.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(before));
  SUBCASE("as the history has them") {
    client.send(std::move(subscribe));
    CHECK(indices_to_the_end(client) == std::vector<std::uint64_t>{3, 4, 5, 6, 7, 8, 9});
  }
  SUBCASE("also of an epoch that was begun again since, and that no client is in") {
    subscribe.epoch = 0;
    client.send(std::move(subscribe));
    CHECK(indices_to_the_end(client) == std::vector<std::uint64_t>{3, 4, 5, 6, 7, 8, 9});
  }
  SUBCASE("or is told that they are gone") {
    subscribe.fingerprint =
        std::make_unique<wire::Fingerprint>(wire::Fingerprint(1, before.settings, before.seed));
    client.send(std::move(subscribe));
    const auto answer = client.receive();
    REQUIRE(answer);
    REQUIRE(answer->as<wire::Refused>() != nullptr);
    CHECK(answer->as<wire::Refused>()->code() == 10);
    CHECK(answer->as<wire::Refused>()->message()->str().find("data changed") == 0);
  }
}
