#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <zmq.hpp>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

ServerSettings at(std::vector<std::string> endpoints) {
  ServerSettings settings;
  settings.endpoints = std::move(endpoints);
  return settings;
}

const std::string kAnyPort = "tcp://127.0.0.1:0";

/// A router with its loop, and a peer that said one word to it.
class RouterAndPeer {
 public:
  /// Bytes of one payload: more than all buffers of the system hold.
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  RouterAndPeer() {
    threads_ = std::make_unique<SocketThreads>();
    router_ = std::make_unique<Router>(
        loop_, *threads_, Router::Settings{true, "", false},
        [this](const Router::Incoming& incoming) { name_ = incoming.peer; });
    auto bound = router_->bind(kAnyPort);
    REQUIRE(bound);
    peer_.set(zmq::sockopt::linger, 0);
    peer_.set(zmq::sockopt::rcvhwm, 1);
    peer_.connect(*bound);
    peer_.send(zmq::str_buffer("hello"), zmq::send_flags::none);
    CHECK(run_until([this] { return !name_.name.empty(); }));
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~RouterAndPeer() { ::munmap(memory_, kBytes); }
  RouterAndPeer(const RouterAndPeer&) = delete;
  RouterAndPeer& operator=(const RouterAndPeer&) = delete;

  Result<void> send(const PeerName& to, std::size_t bytes = kBytes, std::size_t part = 0) {
    const std::span<const std::byte> payload(static_cast<const std::byte*>(memory_), bytes);
    return router_->send(to, std::as_bytes(std::span("ticket")),
                         {payload, [this] { ++sent_; }, part});
  }
  /// Ends the sockets, then unmaps the memory: a thread that touches it from now on faults.
  void shut_down() {
    router_.reset();
    threads_.reset();
    ::mprotect(memory_, kBytes, PROT_NONE);
  }
  /// Runs the loop until `holds`, at most 10 s.
  template <class Holds>
  bool run_until(Holds holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds() && std::chrono::steady_clock::now() < deadline) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(10));
    }
    return holds();
  }

  const PeerName& name() const { return name_; }
  int sent() const { return sent_; }
  zmq::socket_t& peer() { return peer_; }

 private:
  boost::asio::io_context loop_{1};
  std::unique_ptr<SocketThreads> threads_;
  std::unique_ptr<Router> router_;
  zmq::context_t context_;
  zmq::socket_t peer_{context_, zmq::socket_type::dealer};
  PeerName name_;
  void* memory_ = nullptr;
  int sent_ = 0;
};

}  // namespace

TEST_CASE("delivery: a payload's end is told once, after the peer got it") {
  RouterAndPeer pair;
  REQUIRE(pair.send(pair.name()));
  CHECK(pair.sent() == 0);
  zmq::message_t frame;
  REQUIRE(pair.peer().recv(frame));
  REQUIRE(pair.peer().recv(frame));
  CHECK(frame.size() == RouterAndPeer::kBytes);
  CHECK(pair.run_until([&] { return pair.sent() == 1; }));
}

TEST_CASE("delivery: a payload in parts comes in order, and its end is told once, after the last") {
  RouterAndPeer pair;
  constexpr std::size_t kPart = 3 << 20;
  REQUIRE(pair.send(pair.name(), RouterAndPeer::kBytes, kPart));
  zmq::message_t frame;
  REQUIRE(pair.peer().recv(frame));
  std::size_t bytes = 0;
  std::size_t parts = 0;
  while (frame.more()) {
    REQUIRE(pair.peer().recv(frame));
    CHECK(frame.size() == std::min(kPart, RouterAndPeer::kBytes - bytes));
    bytes += frame.size();
    ++parts;
  }
  CHECK(bytes == RouterAndPeer::kBytes);
  CHECK(parts == 22);
  CHECK(pair.run_until([&] { return pair.sent() == 1; }));
}

TEST_CASE("delivery: a payload in parts comes back once from a peer that is not there") {
  RouterAndPeer pair;
  CHECK_FALSE(pair.send({true, "nobody"}, 10 << 20, 1 << 20));
  REQUIRE(pair.send(pair.name(), RouterAndPeer::kBytes, 1 << 20));
  pair.peer().close();
  CHECK(pair.run_until([&] { return pair.sent() == 2; }));
}

TEST_CASE("delivery: a payload's end is told when the peer dies in the middle") {
  RouterAndPeer pair;
  for (int i = 0; i < 8; ++i) REQUIRE(pair.send(pair.name()));
  zmq::message_t frame;
  REQUIRE(pair.peer().recv(frame));
  pair.peer().close();
  CHECK(pair.run_until([&] { return pair.sent() == 8; }));
  CHECK(pair.run_until([&] { return !pair.send(pair.name(), 1000); }));
}

TEST_CASE("delivery: a payload to a peer that is not there comes back at once") {
  RouterAndPeer pair;
  const auto sent = pair.send({true, "nobody"});
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::disconnected);
  CHECK(pair.sent() == 0);  // never from within the call
  CHECK(pair.run_until([&] { return pair.sent() == 1; }));
}

TEST_CASE("delivery: a peer that does not read fills its queue, and every payload comes back") {
  RouterAndPeer pair;
  int queued = 0;
  while (pair.send(pair.name())) ++queued;
  CHECK(queued > 100);
  CHECK(pair.run_until([&] { return pair.sent() >= 1; }));  // the one that was not taken
  pair.peer().close();
  CHECK(pair.run_until([&] { return pair.sent() == queued + 1; }));
}

TEST_CASE("delivery: after shutdown no thread reads a payload's memory") {
  RouterAndPeer pair;
  for (int i = 0; i < 8; ++i) REQUIRE(pair.send(pair.name()));
  pair.shut_down();
  // Freed by the end of ZeroMQ's threads, told by the loop that still runs.
  CHECK(pair.run_until([&] { return pair.sent() == 8; }));
}

TEST_CASE("delivery: over tcp an epoch comes with the batches after their tickets") {
  TestServer server(sorted_feed(4), at({kAnyPort}));
  RawClient client(server.endpoint(0));
  REQUIRE(client.hello(true) != 0);
  client.send(subscribe_to_train());
  REQUIRE(client.receive_news()->as<wire::Subscribed>() != nullptr);
  for (std::uint64_t index = 0; index < 10; ++index) {
    const auto message = client.receive_news();
    const auto* ticket = message->as<wire::Delivery>();
    REQUIRE(ticket != nullptr);
    CHECK(ticket->index() == index);
    CHECK(ticket->size() == client.batch().size());
    std::vector<std::byte> aligned(client.batch().size() + 64);
    void* start = aligned.data();
    std::size_t space = aligned.size();
    REQUIRE(std::align(64, client.batch().size(), start, space) != nullptr);
    std::memcpy(start, client.batch().data(), client.batch().size());
    const auto batch = verify_batch({static_cast<const std::byte*>(start), client.batch().size()});
    REQUIRE(batch);
    const auto ordinal = (*batch)->ordinals()->Get(0);
    CHECK((*batch)->lengths()->Get(0) == server.lengths()[ordinal]);
    client.send(release_of(unpacked(*ticket)));
  }
  CHECK(client.receive_news()->as<wire::EpochEnd>() != nullptr);
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
}

TEST_CASE("delivery: a daemon with tcp alone has no arena socket, and asks for inline batches") {
  TestServer server(sorted_feed(4), at({kAnyPort}));
  RawClient client(server.endpoint(0));
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  client.send(hello);
  CHECK(refusal(client, ErrorCode::invalid_argument) ==
        "over tcp:// there is no arena: Hello has to ask for inline_batches");
  CHECK(client.receive()->as<wire::Bye>() != nullptr);
  hello.inline_batches = true;
  client.send(hello);
  const auto message = client.receive();
  REQUIRE(message->as<wire::Welcome>() != nullptr);
  CHECK(message->as<wire::Welcome>()->arena_socket() == nullptr);
  CHECK(message->as<wire::Welcome>()->events() == nullptr);
}

TEST_CASE("delivery: local and remote clients share one plan and its batches") {
  TemporaryFolder folder;
  const std::string path = (folder / "l").string();
  TestServer server(sorted_feed(4), at({"ipc://" + path, kAnyPort}));
  RawClient local(server.endpoint(0));
  RawClient remote(server.endpoint(1));
  local.join(path + ".arena");
  REQUIRE(remote.hello(true) != 0);
  local.send(subscribe_to_train());
  remote.send(subscribe_to_train());
  CHECK(indices_to_the_end(local) == numbers(0, 10));
  CHECK(indices_to_the_end(remote) == numbers(0, 10));
  CHECK(server.count(FeedCounter::batches_delivered) == 20);
  CHECK(server.count(FeedCounter::batches_assembled) == 10);
}

TEST_CASE("delivery: a local client may do without an arena, and then gets a sign of life") {
  TestServer server(sorted_feed(4));
  RawClient client(server.endpoint());
  REQUIRE(client.hello(true) != 0);
  auto first = client.receive();
  REQUIRE(first);
  CHECK(first->as<wire::Alive>() != nullptr);
  auto second = client.receive();
  REQUIRE(second);
  CHECK(second->as<wire::Alive>() != nullptr);
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
}

TEST_CASE("delivery: a client without an arena that goes without a word is missed soon") {
  TestServer server(sorted_feed(4), at({kAnyPort}));
  RawClient client(server.endpoint(0));
  REQUIRE(client.hello(true) != 0);
  client.send(subscribe_to_train());
  REQUIRE(client.receive_news()->as<wire::Subscribed>() != nullptr);
  REQUIRE(client.receive_news()->as<wire::Delivery>() != nullptr);
  client.hang_up();
  CHECK(server.eventually([](TestServer& s) { return s.sessions() == 0; }));
  CHECK(server.eventually([](TestServer& s) { return s.held_slots() == 0; }));
}

TEST_CASE("delivery: a port in use is refused by name") {
  TestServer server(sorted_feed(4), at({kAnyPort}));
  boost::asio::io_context loop;
  EventLog log;
  ListenerSettings settings;
  settings.endpoints = {server.endpoint(0)};
  Listeners second(loop, log, settings, {});
  const auto listening = second.open();
  REQUIRE_FALSE(listening);
  CHECK(listening.error().message == "bind " + server.endpoint(0) + ": Address already in use");
}
