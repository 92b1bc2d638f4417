#include "daemon/delivery/wire/listeners.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/delivery/raw_client.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

ListenerSettings at(std::vector<std::string> endpoints) {
  ListenerSettings settings;
  settings.endpoints = std::move(endpoints);
  settings.max_clients = 1;
  return settings;
}

}  // namespace

TEST_CASE("delivery: a message comes with its peer, and the answer goes where it came from") {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  EventLog log;
  std::vector<PeerName> peers;
  std::unique_ptr<Listeners> listeners;
  Listeners::Calls calls;
  calls.message = [&](const Router::Incoming& incoming) {
    peers.push_back(incoming.peer);
    CHECK(incoming.frames == 1);
    CHECK(listeners->send(incoming.peer, encode(wire::ByeT{})));
    loop.stop();
  };
  const std::string local = "ipc://" + (folder / "s").string();
  listeners = std::make_unique<Listeners>(loop, log, at({local, "tcp://127.0.0.1:*"}), calls);
  REQUIRE(listeners->open());
  REQUIRE(listeners->endpoints().size() == 2);
  CHECK(listeners->endpoints()[0] == local);
  for (const std::string& endpoint : listeners->endpoints()) {
    RawClient client(endpoint);
    client.send(wire::AliveT{});
    loop.restart();
    loop.run();
    const auto answer = client.receive();
    REQUIRE(answer);
    CHECK(answer->as<wire::Bye>() != nullptr);
  }
  REQUIRE(peers.size() == 2);
  CHECK_FALSE(peers[0].remote);
  CHECK(peers[1].remote);
  CHECK(listeners->arena_path_for(peers[0]) == (folder / "s.arena").string());
  CHECK(listeners->arena_path_for(peers[1]).empty());
  CHECK_FALSE(listeners->send({false, "nobody"}, encode(wire::ByeT{})));
}

TEST_CASE("delivery: the first arena socket is told to clients, and all go with the listeners") {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  EventLog log;
  {
    Listeners listeners(
        loop, log, at({"ipc://" + (folder / "a").string(), "ipc://" + (folder / "b").string()}),
        {});
    REQUIRE(listeners.open());
    CHECK(listeners.arena_path_for({false, "peer"}) == (folder / "a.arena").string());
    CHECK(std::filesystem::exists(folder / "b.arena"));
    CHECK(listeners.events_endpoint().empty());
    CHECK(listeners.events_for({false, "peer"}).empty());
    listeners.publish(wire::EventT{});  // nothing listens
    CHECK(log.get(Event::listening) == 2);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "a.arena"));
  CHECK_FALSE(std::filesystem::exists(folder / "b.arena"));
}

TEST_CASE("delivery: an address that stands for all is told as one to connect to") {
  CHECK(address_for_client(false, "ipc:///run/e") == "ipc:///run/e");
  CHECK(address_for_client(true, "ipc:///run/e").empty());
  CHECK(address_for_client(true, "tcp://0.0.0.0:7") == "tcp://*:7");
  CHECK(address_for_client(true, "tcp://[::]:7") == "tcp://*:7");
  CHECK(address_for_client(false, "tcp://0.0.0.0:7") == "tcp://localhost:7");
  CHECK(address_for_client(true, "tcp://10.0.0.1:7") == "tcp://10.0.0.1:7");
  CHECK(address_for_client(true, "").empty());
}
