#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FeedSettings followed_feed() {
  FeedSettings settings = sorted_feed(4);
  settings.follow = true;
  return settings;
}

wire::SubscribeT at_epoch(std::uint64_t epoch, std::uint32_t subscription = 1) {
  auto subscribe = subscribe_to_train(subscription);
  subscribe.window = 1;
  subscribe.epochs = 1;
  subscribe.epoch = epoch;
  return subscribe;
}

wire::SubscribeT resuming_at(std::uint64_t epoch, std::uint64_t step, const Fingerprint& plan) {
  auto subscribe = at_epoch(epoch);
  subscribe.step = step;
  subscribe.expects_fingerprint = true;
  subscribe.fingerprint = std::make_unique<wire::Fingerprint>(to_wire(plan));
  return subscribe;
}

Fingerprint fingerprint_of(TestServer& server) { return *server.feed().fingerprint; }

bool has_subscriptions(TestServer& server, std::size_t count) {
  return server.eventually([count](TestServer& s) { return s.feed().subscribers.size() == count; });
}

/// The data of the plan that is granted next; 0 when something else comes.
std::uint64_t granted_data(RawClient& client) {
  const auto message = read_until<wire::Subscribed>(client);
  return message ? message->as<wire::Subscribed>()->fingerprint()->data() : 0;
}

std::string why_waiting(RawClient& client) {
  wire::AskT question;
  question.subscription = 1;
  client.send(std::move(question));
  const auto answer = client.receive_news();
  if (!answer || answer->as<wire::Waiting>() == nullptr) return "";
  return answer->as<wire::Waiting>()->reason()->str();
}

}  // namespace

TEST_CASE("delivery: a client that resumes while the epoch is planned gets the data it names") {
  TestServer server(followed_feed(), 40, {5, 6, 7, 8});
  const Fingerprint before = fingerprint_of(server);
  server.append();
  RawClient newcomer(server.endpoint());
  RawClient resumer(server.endpoint());
  newcomer.join(server.arena_socket());
  resumer.join(server.arena_socket());
  {
    const BusyPlanner busy(server);
    newcomer.send(at_epoch(3));
    REQUIRE(has_subscriptions(server, 1));  // and a plan of the newest data is under way
    resumer.send(resuming_at(3, 1, before));
    REQUIRE(has_subscriptions(server, 2));
  }
  CHECK(granted_data(resumer) == before.data);
  CHECK(granted_data(newcomer) == before.data);
  CHECK(indices_to_the_end(resumer).size() == 9);
}

TEST_CASE("delivery: data that are gone end the clients that need them, and no others that wait") {
  TestServer server(followed_feed());
  Fingerprint gone = fingerprint_of(server);
  ++gone.data;
  RawClient newcomer(server.endpoint());
  RawClient resumer(server.endpoint());
  newcomer.join(server.arena_socket());
  resumer.join(server.arena_socket());
  {
    const BusyPlanner busy(server);
    resumer.send(resuming_at(3, 1, gone));
    REQUIRE(has_subscriptions(server, 1));
    newcomer.send(at_epoch(3));
    REQUIRE(has_subscriptions(server, 2));
  }
  CHECK(refusal(resumer, ErrorCode::fingerprint_mismatch).find("data changed") == 0);
  CHECK(granted_data(newcomer) == gone.data - 1);
}

TEST_CASE("delivery: what was named for an epoch by a client that left is forgotten") {
  TestServer server(followed_feed());
  const Fingerprint have = fingerprint_of(server);
  Fingerprint gone = have;
  ++gone.data;
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  {
    const BusyPlanner busy(server);
    client.send(resuming_at(3, 1, gone));
    REQUIRE(has_subscriptions(server, 1));
    wire::UnsubscribeT leave;
    leave.subscription = 1;
    client.send(std::move(leave));
    REQUIRE(has_subscriptions(server, 0));
    client.send(resuming_at(3, 1, have));
    REQUIRE(has_subscriptions(server, 1));
  }
  CHECK(granted_data(client) == have.data);
}

TEST_CASE("delivery: a folder that is away for a moment ends no epoch that needs it") {
  TestServer server(followed_feed(), 40, {5, 6, 7, 8});
  const Fingerprint before = fingerprint_of(server);
  server.append();
  RawClient newest(server.endpoint());
  REQUIRE(join(newest, server.arena_socket(), at_epoch(2)));  // now the newest data are known
  const std::filesystem::path away = server.dataset().string() + ".away";
  std::filesystem::rename(server.dataset(), away);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(resuming_at(5, 1, before));
  CHECK(server.eventually([](TestServer& s) {
    return s.ask([](const Server& at) { return at.log().get(Event::epoch_not_planned); }) > 0;
  }));
  CHECK(why_waiting(client).find("epoch 5, which cannot be planned now and is tried again") == 0);
  CHECK(server.feed().not_ready.find("epoch 5 cannot be planned now") == 0);
  std::filesystem::rename(away, server.dataset());
  CHECK(granted_data(client) == before.data);
  CHECK(indices_to_the_end(client).size() == 9);
  CHECK(server.feed().not_ready == "");
  CHECK(server.ask([](const Server& s) { return s.log().get(Event::epoch_planned_late); }) == 1);
}

TEST_CASE("delivery: where newer data cannot be had an epoch goes on with those that are known") {
  TestServer server(followed_feed());
  const std::filesystem::path away = server.dataset().string() + ".away";
  std::filesystem::rename(server.dataset(), away);
  RawClient client(server.endpoint());
  client.join(server.arena_socket());
  client.send(at_epoch(5));
  CHECK(indices_to_the_end(client).size() == 10);
  CHECK(server.ask([](const Server& s) { return s.log().get(Event::growth_left_out); }) > 0);
  std::filesystem::rename(away, server.dataset());
}

TEST_CASE("delivery: a queue's epoch whose data are gone ends the feed, and is not planned again") {
  const TemporaryFolder folder;
  FeedSettings settings = followed_feed();
  settings.journal = folder / "journal";
  TestServer server(settings, [](const auto&, FeedResources& resources) {
    // As if the queue had begun the epoch with data that the dataset has no more.
    ++resources.journal->fingerprint.data;
    resources.queue.give({1}, BatchIndex{0}, QueueOwner{7});
    CHECK(resources.queue.done({1}, QueueOwner{7}));
  });
  RawClient worker(server.endpoint());
  worker.join(server.arena_socket());
  auto subscribe = at_epoch(0);
  subscribe.mode = wire::Mode::queue;
  worker.send(std::move(subscribe));
  const std::string why = refusal(worker, ErrorCode::fingerprint_mismatch);
  CHECK(why.find("journal " + settings.journal.string() +
                 ": the queue is in epoch 0: data changed") != std::string::npos);
  CHECK(why.find("remove the file to begin the queue anew") != std::string::npos);
  CHECK(server.feed().failure.has_value());
}

TEST_CASE("delivery: clients in more epochs than plans are kept take turns, and none is refused") {
  TestServer server(sorted_feed(20));
  std::vector<std::unique_ptr<RawClient>> clients;
  constexpr std::uint64_t kEpochs = 70;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch % 35 == 0) {
      clients.push_back(std::make_unique<RawClient>(server.endpoint()));
      clients.back()->join(server.arena_socket());
    }
    clients.back()->send(at_epoch(epoch, static_cast<std::uint32_t>(1 + epoch % 35)));
  }
  REQUIRE(has_subscriptions(server, kEpochs));
  // No client has released anything, so all of them stand where they began.
  CHECK(server.eventually([](TestServer& s) { return s.count(FeedCounter::epochs_planned) > 65; }));
  CHECK(server.feed().plans.size() <= 64);
  std::size_t ends = 0;
  std::size_t refusals = 0;
  CHECK(server.eventually([&](TestServer&) {
    for (const auto& client : clients) {
      while (!client->silent()) {
        const auto message = client->receive();
        ends += message->as<wire::EpochEnd>() != nullptr ? 1 : 0;
        refusals += message->as<wire::Refused>() != nullptr ? 1 : 0;
        if (const auto* delivery = message->as<wire::Delivery>()) {
          client->send(release_of(unpacked(*delivery)));
        }
      }
    }
    return ends == kEpochs || refusals != 0;
  }));
  CHECK(ends == kEpochs);
  CHECK(refusals == 0);
}
