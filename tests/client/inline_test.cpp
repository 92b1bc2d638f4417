#include <doctest/doctest.h>
#include <zmq.h>

#include <array>
#include <chrono>

#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"
#include "tests/client/whole_run.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kAnyPort = "tcp://127.0.0.1:*";

bw_connection_info info_of(const ConnectionHandle& connection) {
  bw_connection_info info{};
  info.struct_size = sizeof info;
  REQUIRE(bw_connection_get_info(connection.get(), &info) == BW_OK);
  return info;
}

/// The first batch, and that its tensor is as it should be.
void check_first_batch(FakeDaemon& daemon, const SubscriptionHandle& subscription) {
  daemon.deliver(1, 0, 0, 0);
  const auto batch = next_batch(subscription);
  const bw_tensor& features = *bw_batch_tensor(batch.get(), 0);
  CHECK(reinterpret_cast<std::uintptr_t>(features.data) % 8 == 0);
  CHECK(static_cast<const float*>(features.data)[9] == FakeDaemon::value(0, 1, 1, 1));
}

struct Pair {
  std::array<char, 41> open{};
  std::array<char, 41> secret{};
  Pair() { REQUIRE(zmq_curve_keypair(open.data(), secret.data()) == 0); }
};

bw_status try_connect(const FakeDaemon& daemon, const bw_connect_options& options) {
  bw_connection* raw = nullptr;
  const bw_status status = bw_connect(daemon.endpoint().c_str(), &options, &raw);
  bw_close(raw);
  return status;
}

}  // namespace

TEST_CASE("client: over TCP a batch comes as a second frame, and is read as others are") {
  FakeDaemon daemon({.endpoint = kAnyPort});
  const auto connection = connect(daemon.endpoint());
  CHECK(info_of(connection).inline_batches == 1);
  CHECK(std::string(info_of(connection).inline_reason) == "the daemon is reached by TCP");
  const auto subscription = subscribe(connection);
  check_first_batch(daemon, subscription);
  CHECK(daemon.hears([](const auto& heard) {
    return heard.hellos[0].inline_batches && heard.released.size() == 1;
  }));
}

TEST_CASE("client: a batch that came as a message lies in bytes of its own") {
  FakeDaemon daemon({.endpoint = kAnyPort});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.deliver(1, 0, 0, 0);
  const auto batch = next_batch(subscription);
  const bw_batch_header& header = *bw_batch_get_header(batch.get());
  CHECK(header.shared == 0);
  CHECK(header.memory_bytes == header.bytes);
  const bw_tensor& features = *bw_batch_tensor(batch.get(), 0);
  const auto* begin = static_cast<const char*>(header.memory);
  CHECK(static_cast<const char*>(features.data) > begin);
  CHECK(static_cast<const char*>(features.data) + features.bytes <= begin + header.memory_bytes);
  CHECK(reinterpret_cast<std::uintptr_t>(begin) % 8 == 0);
  CHECK((static_cast<const char*>(features.data) - begin) % 64 == 0);
}

TEST_CASE("client: a message that is held keeps its bytes while others come and go") {
  FakeDaemon daemon({.endpoint = kAnyPort});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  const auto data_of = [](const BatchHandle& batch) {
    return static_cast<const float*>(bw_batch_tensor(batch.get(), 0)->data);
  };
  daemon.deliver(1, 0, 0, 0);
  daemon.deliver(1, 0, 1, 1);
  const auto held = next_batch(subscription);
  auto released = next_batch(subscription);
  CHECK(data_of(released) != data_of(held));
  released.reset();
  daemon.deliver(1, 0, 2, 2);
  const auto next = next_batch(subscription);
  CHECK(data_of(next)[9] == FakeDaemon::value(2, 1, 1, 1));
  CHECK(data_of(held)[9] == FakeDaemon::value(0, 1, 1, 1));
}

TEST_CASE("client: a batch that came as a message outlives connection and daemon") {
  BatchHandle batch;
  {
    FakeDaemon daemon({.endpoint = kAnyPort});
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    daemon.deliver(1, 0, 0, 0);
    batch = next_batch(subscription);
  }
  CHECK(std::string(bw_batch_key(batch.get(), 1, nullptr)) == "another");
}

TEST_CASE("client: without the arena's socket, or room for its mapping, batches come as messages") {
  const ThreadPolicy no_socket{.shares_arena = false};
  const ThreadPolicy too_large{.arena_bytes = std::uint64_t{1} << 47};
  for (const ThreadPolicy& manners : {no_socket, too_large}) {
    FakeDaemon daemon(manners);
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    CHECK(info_of(connection).inline_batches == 1);
    const std::string reason = info_of(connection).inline_reason;
    CHECK(reason.find(manners.shares_arena ? "mmap of an arena" : "connect to") !=
          std::string::npos);
    check_first_batch(daemon, subscription);
    // One Hello for each way, and the daemon is told that the first is done with.
    CHECK(daemon.hears([](const auto& heard) {
      return heard.hellos.size() == 2 && !heard.hellos[0].inline_batches &&
             heard.hellos[1].inline_batches && heard.hellos[1].token == heard.hellos[0].token &&
             heard.byes == 1;
    }));
  }
}

TEST_CASE("client: a batch that comes in parts is put together") {
  for (const std::size_t part : {1U, 7U, 64U, 10'000U}) {
    CAPTURE(part);
    FakeDaemon daemon({.endpoint = kAnyPort, .part_bytes = part});
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    check_first_batch(daemon, subscription);
    CHECK(daemon.hears([](const auto& heard) { return heard.released.size() == 1; }));
  }
}

TEST_CASE("client: parts that are not the batch of their ticket are refused") {
  for (const std::uint64_t claimed : {10U, 100U, 1'000'000U}) {
    FakeDaemon daemon({.endpoint = kAnyPort, .part_bytes = 30});
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
    ticket.subscription = 1;
    ticket.offset = 0;
    ticket.size = claimed;
    daemon.send_bytes(encode(std::move(ticket)), std::vector<std::byte>(99));
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
    CHECK(error_says("the parts of a batch are not the " + std::to_string(claimed) + " bytes"));
  }
  FakeDaemon daemon({.endpoint = kAnyPort});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
  ticket.subscription = 1;
  ticket.size = UINT64_MAX;
  daemon.send_bytes(encode(std::move(ticket)), std::vector<std::byte>(99));
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
}

TEST_CASE("client: a program may want messages where it could have the arena") {
  FakeDaemon daemon;
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.inline_batches = 1;
  const auto connection = connect(daemon.endpoint(), options);
  check_first_batch(daemon, subscribe(connection));
  CHECK(std::string(info_of(connection).inline_reason) == "the program asked for it");
  options.inline_batches = 2;
  CHECK(try_connect(daemon, options) == BW_INVALID_ARGUMENT);
}

TEST_CASE("client: a message whose batch is missing, cut short or spoilt is not shown") {
  FakeDaemon daemon({.endpoint = kAnyPort});
  const auto deliver = [&daemon](std::size_t missing, std::size_t spoilt) {
    wire::DeliveryT ticket = daemon.lay_out(0, 0, 0);
    ticket.subscription = 1;
    ticket.offset = 0;
    std::vector<std::byte> bytes(ticket.size - missing * ticket.size, std::byte{0xA5});
    ticket.size = spoilt != 0 ? bytes.size() : ticket.size;
    daemon.send_bytes(encode(std::move(ticket)), std::move(bytes));
  };
  for (const std::size_t missing : {1U, 0U}) {
    const auto connection = connect(daemon.endpoint());
    const auto subscription = subscribe(connection);
    deliver(missing, missing == 0 ? 1 : 0);
    CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
    CHECK(error_says(missing == 1 ? "with 0 bytes as second frame" : "in a message"));
  }
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  daemon.send_bytes(encode(wire::AliveT{}), std::vector<std::byte>(10));
  CHECK(next_status(subscription) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("too many frames"));
}

TEST_CASE("client: over TCP each batch comes once whenever the daemon dies") {
  ThreadPolicy manners{
      .world = 2, .steps = 5, .endpoint = kAnyPort, .serves = true, .dies_after = 7};
  FakeDaemon daemon(manners);
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.epochs = 3;
  const auto subscription = subscribe(connection, options);
  const Seen seen = run_to_end(subscription, [&] {
    if (daemon.is_dead()) daemon.rise(manners);
  });
  CHECK(seen.last == BW_END);
  CHECK(seen.batches == in_order(3, 10));
}

TEST_CASE("client: a remote daemon that says nothing for 10 s is taken for gone") {
  FakeDaemon daemon({.alive = false, .endpoint = kAnyPort});
  const auto connection = connect(daemon.endpoint());
  const auto subscription = subscribe(connection);
  const auto start = std::chrono::steady_clock::now();
  CHECK(hears_in_a_wait(daemon, subscription,
                        [](const auto& heard) { return heard.hellos.size() == 2; }));
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::seconds(9));
}

TEST_CASE("client: keys of CURVE are checked before they are used") {
  FakeDaemon daemon;
  const Pair pair;
  const Pair other;
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.server_key = other.open.data();
  options.public_key = pair.open.data();
  CHECK(try_connect(daemon, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("secret_key is not given"));
  options.secret_key = "short";
  CHECK(try_connect(daemon, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("secret_key has 5 characters; Z85 text of 40"));
  options.secret_key = other.secret.data();
  CHECK(try_connect(daemon, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("public_key does not belong to secret_key"));
}

TEST_CASE(
    "client: with the daemon's key it is understood, with another or none it is told why not") {
  const Pair server;
  const Pair pair;
  FakeDaemon daemon({.endpoint = kAnyPort, .curve_secret = server.secret.data()});
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.server_key = server.open.data();
  options.public_key = pair.open.data();
  options.secret_key = pair.secret.data();
  {
    const auto connection = connect(daemon.endpoint(), options);
    check_first_batch(daemon, subscribe(connection));
  }
  options.timeout_ms = 300;
  options.server_key = pair.open.data();
  CHECK(try_connect(daemon, options) == BW_TIMED_OUT);
  CHECK(error_says("or the keys are wrong"));
  bw_connect_options none = BW_CONNECT_OPTIONS_INIT;
  none.timeout_ms = 300;
  CHECK(try_connect(daemon, none) == BW_TIMED_OUT);
  CHECK(error_says("or it wants CURVE keys, and none were given"));
}
