#include <doctest/doctest.h>

#include <optional>
#include <zmq.hpp>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A subscriber to all events.
class Listener {
 public:
  explicit Listener(const std::string& endpoint) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 20);
    socket_.set(zmq::sockopt::subscribe, "");
    socket_.connect(endpoint);
  }

  struct Heard {
    std::string topic;
    wire::EventT event;
  };
  /// Empty when none comes in a moment.
  std::optional<Heard> next() {
    zmq::message_t topic;
    zmq::message_t body;
    if (!socket_.recv(topic)) return std::nullopt;
    REQUIRE(topic.more());
    REQUIRE(socket_.recv(body));
    const auto message =
        ControlMessage::decode({static_cast<const std::byte*>(body.data()), body.size()});
    REQUIRE(message);
    Heard heard{topic.to_string(), {}};
    message->as<wire::Event>()->UnPackTo(&heard.event);
    return heard;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_{context_, zmq::socket_type::sub};
};

/// Lets clients come and go until the listener hears of one: a PUB socket tells nothing to those
/// that are still on their way.
bool is_heard(Listener& listener, const std::string& endpoint) {
  for (int i = 0; i < 500; ++i) {
    RawClient client(endpoint);
    if (client.hello(true) == 0) return false;
    client.send(wire::ByeT{});
    if (listener.next()) return true;
  }
  return false;
}

ServerSettings telling_at(const std::string& events, std::vector<std::string> endpoints = {}) {
  ServerSettings settings;
  settings.endpoints = std::move(endpoints);
  settings.events = events;
  return settings;
}

}  // namespace

TEST_CASE("delivery: clients that come and go are reported, once they are bound") {
  TemporaryFolder folder;
  TestServer server(sorted_feed(4), telling_at("ipc://" + (folder / "e").string()));
  RawClient client(server.endpoint());
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.client = "alice";
  client.send(std::move(hello));
  const auto message = client.receive();
  const auto* welcome = message->as<wire::Welcome>();
  REQUIRE(welcome != nullptr);
  REQUIRE(welcome->events() != nullptr);
  Listener listener(welcome->events()->str());
  REQUIRE(is_heard(listener, server.endpoint()));
  while (listener.next()) continue;
  const auto session = welcome->session();
  REQUIRE(client.attach(server.arena_socket(), session));
  for (const auto kind : {wire::EventKind::client_joined, wire::EventKind::client_left}) {
    std::optional<Listener::Heard> heard;
    for (int i = 0; i < 500 && !heard; ++i) heard = listener.next();
    REQUIRE(heard);
    CHECK(heard->topic.empty());
    CHECK(heard->event.kind == kind);
    CHECK(heard->event.session == session);
    CHECK(heard->event.text == "alice");
    client.die();
  }
}

TEST_CASE("delivery: that an epoch begins and ends is told once, under the feed's name") {
  TemporaryFolder folder;
  const std::string events = "ipc://" + (folder / "e").string();
  TestServer server(sorted_feed(4), telling_at(events));
  Listener listener(events);
  REQUIRE(is_heard(listener, server.endpoint()));
  for (int i = 0; i < 2; ++i) {
    RawClient client(server.endpoint());
    client.join(server.arena_socket());
    client.send(subscribe_to_train());
    REQUIRE(indices_to_the_end(client) == numbers(0, 10));
  }
  std::vector<wire::EventKind> heard;
  for (int i = 0; i < 500 && heard.size() < 2; ++i) {
    const auto next = listener.next();
    if (!next || next->topic.empty()) continue;
    CHECK(next->topic == "train");
    CHECK(next->event.feed == "train");
    CHECK(next->event.epoch == 0);
    CHECK(next->event.sequences == 40);
    heard.push_back(next->event.kind);
  }
  CHECK(heard == std::vector{wire::EventKind::epoch_began, wire::EventKind::epoch_ended});
  CHECK(server.ask([](const Server& s) { return s.log().get(Event::epoch_began); }) == 1);
}

TEST_CASE("delivery: events over tcp are told under an address that can be reached") {
  TestServer server(sorted_feed(4), telling_at("tcp://*:0", {"tcp://127.0.0.1:0"}));
  const auto bound = server.ask([](const Server& s) { return s.events_endpoint(); });
  REQUIRE(bound.starts_with("tcp://0.0.0.0:"));
  RawClient client(server.endpoint(0));
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.inline_batches = true;
  client.send(std::move(hello));
  const auto message = client.receive();
  const auto* welcome = message->as<wire::Welcome>();
  REQUIRE(welcome != nullptr);
  const std::string port = bound.substr(bound.rfind(':'));
  CHECK(welcome->events()->str() == "tcp://*" + port);
  Listener listener("tcp://127.0.0.1" + port);
  CHECK(is_heard(listener, server.endpoint(0)));
}

TEST_CASE("delivery: a listener that reads nothing holds no one up") {
  TemporaryFolder folder;
  boost::asio::io_context loop;
  SocketThreads threads;
  EventPublisher events(loop, threads, Router::Settings{});
  auto bound = events.bind("ipc://" + (folder / "e").string());
  REQUIRE(bound);
  Listener listener(*bound);
  wire::EventT event;
  event.text = std::string(1000, 'x');
  // Until the listener is there, then far more than all queues hold.
  do {
    events.publish(event);
  } while (!listener.next());
  for (int i = 0; i < 100'000; ++i) events.publish(event);
  CHECK(listener.next());
}
