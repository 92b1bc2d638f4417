#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "client/library/batchwright/client.hpp"
#include "tests/client/fake/fake_daemon.h"
#include "tests/client/one_client.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

bw_status try_connect(const std::string& endpoint, std::int64_t limit) {
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = limit;
  bw_connection* raw = nullptr;
  const bw_status status = bw_connect(endpoint.c_str(), &options, &raw);
  bw_close(raw);
  return status;
}

bw_status try_subscribe(const ConnectionHandle& connection, const bw_subscribe_options& options) {
  bw_subscription* raw = nullptr;
  const bw_status status = bw_subscribe(connection.get(), &options, &raw);
  bw_unsubscribe(raw);
  return status;
}

/// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("client: a connection shows the daemon's feeds and their fields") {
  FakeDaemon daemon({.world = 4});
  const auto connection = connect(daemon.endpoint());
  REQUIRE(bw_feed_count(connection.get()) == 1);
  const bw_feed& feed = *bw_feed_at(connection.get(), 0);
  CHECK(std::string(feed.name) == "train");
  CHECK(feed.world == 4);
  CHECK(feed.sequences == 7);
  REQUIRE(feed.field_count == 2);
  CHECK(std::string(feed.fields[0]->name) == "features");
  CHECK(feed.fields[0]->ndim == 1);
  CHECK(feed.fields[0]->shape[0] == 2);
  CHECK(feed.fields[0]->categories == nullptr);
  CHECK(feed.fields[1]->kind == BW_SCALAR);
  REQUIRE(feed.fields[1]->category_count == 2);
  CHECK(std::string(feed.fields[1]->categories[1]) == "no");
  CHECK(bw_feed_at(connection.get(), 1) == nullptr);
}

TEST_CASE("client: a connection shows the feeds that are not served for now, with the reason") {
  FakeDaemon daemon({.absent = "late"});
  const auto connection = connect(daemon.endpoint());
  CHECK(bw_feed_count(connection.get()) == 1);
  REQUIRE(bw_absent_feed_count(connection.get()) == 1);
  CHECK(std::string(bw_absent_feed_at(connection.get(), 0)->name) == "late");
  CHECK(std::string(bw_absent_feed_at(connection.get(), 0)->reason) == "its disk is away");
  CHECK(bw_absent_feed_at(connection.get(), 1) == nullptr);
  CHECK(bw_absent_feed_count(connect(FakeDaemon().endpoint()).get()) == 0);
}

TEST_CASE("client: of several servers, a feed is absent that all have and one cannot serve") {
  FakeDaemon one({.absent = "late"});
  FakeDaemon other({.absent = "late"});
  FakeDaemon third({.absent = "train"});
  const auto both = connect(one.endpoint() + "," + other.endpoint());
  REQUIRE(bw_absent_feed_count(both.get()) == 1);
  const auto mixed = connect(one.endpoint() + "," + third.endpoint());
  REQUIRE(bw_absent_feed_count(mixed.get()) == 1);
  CHECK(std::string(bw_absent_feed_at(mixed.get(), 0)->name) == "train");
}

TEST_CASE("client: it introduces itself by the program's name, or the one it is given") {
  FakeDaemon daemon;
  connect(daemon.endpoint());
  CHECK(daemon.hears([](const auto& heard) { return heard.client == "client_tests"; }));
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.program = "trainer 7";
  bw_connection* raw = nullptr;
  REQUIRE(bw_connect(daemon.endpoint().c_str(), &options, &raw) == BW_OK);
  bw_close(raw);
  CHECK(daemon.hears([](const auto& heard) { return heard.client == "trainer 7"; }));
}

TEST_CASE("client: no daemon and a silent one are told apart when the time is over") {
  const TemporaryFolder folder;
  CHECK(try_connect("ipc://" + (folder / "none").string(), 50) == BW_TIMED_OUT);
  CHECK(error_says("there is no such socket"));
  FakeDaemon silent({.answers_hello = false});
  CHECK(try_connect(silent.endpoint(), 50) == BW_TIMED_OUT);
  CHECK(error_says("no daemon answers on it"));
}

TEST_CASE("client: a daemon of another version is named, with both versions") {
  FakeDaemon daemon({.protocol = 2});
  CHECK(try_connect(daemon.endpoint(), kLong) == BW_UNSUPPORTED_VERSION);
  CHECK(error_says("client 1, daemon 2"));
}

TEST_CASE("client: an endpoint that it cannot reach is refused") {
  CHECK(try_connect("inproc://here", 50) == BW_UNSUPPORTED);
  CHECK(try_connect("tcp://nowhere", 50) == BW_INVALID_ARGUMENT);
  CHECK(try_connect("", 50) == BW_INVALID_ARGUMENT);
  CHECK(try_connect("ipc:///tmp/a,", 50) == BW_INVALID_ARGUMENT);
  CHECK(try_connect("ipc:///tmp/a,ipc:///tmp/a", 50) == BW_INVALID_ARGUMENT);
  CHECK(try_connect("ipc://", 50) == BW_INVALID_ARGUMENT);
  CHECK(try_connect("ipc:///tmp/" + std::string(200, 'x'), 50) == BW_INVALID_ARGUMENT);
  CHECK(bw_connect(nullptr, nullptr, nullptr) == BW_INVALID_ARGUMENT);
}

TEST_CASE("client: options of an older and of a newer header are understood") {
  FakeDaemon daemon;
  bw_connection* raw = nullptr;
  bw_connect_options older = BW_CONNECT_OPTIONS_INIT;
  older.struct_size = sizeof older.struct_size;  // knows no other member
  older.timeout_ms = -1;
  REQUIRE(bw_connect(daemon.endpoint().c_str(), &older, &raw) == BW_OK);
  bw_close(raw);
  struct {
    bw_connect_options known = BW_CONNECT_OPTIONS_INIT;
    std::uint64_t unknown = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  REQUIRE(bw_connect(daemon.endpoint().c_str(), &newer.known, &raw) == BW_OK);
  bw_close(raw);
  newer.unknown = 1;
  CHECK(bw_connect(daemon.endpoint().c_str(), &newer.known, &raw) == BW_UNSUPPORTED);
  newer.known.struct_size = 0;
  CHECK(bw_connect(daemon.endpoint().c_str(), &newer.known, &raw) == BW_INVALID_ARGUMENT);
}

TEST_CASE("client: a subscription says what was granted") {
  FakeDaemon daemon({.world = 4, .steps = 9});
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.mode = BW_SHARDED;
  options.rank = 1;
  options.ranks = 2;
  options.step = 3;
  const auto subscription = subscribe(connection, options);
  const bw_grant& grant = *bw_subscription_grant(subscription.get());
  CHECK(grant.world == 4);
  CHECK(grant.batches_per_step == 2);
  CHECK(grant.steps == 9);
  CHECK(grant.window == 4);
  bw_position position{};
  REQUIRE(bw_subscription_position(subscription.get(), &position) == BW_OK);
  CHECK(position.step == 3);
  CHECK(position.fingerprint.seed == 3);
}

TEST_CASE("client: a refused subscription gives the daemon's reason, and the connection goes on") {
  FakeDaemon daemon;
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.feed = "nope";
  CHECK(try_subscribe(connection, options) == BW_NOT_FOUND);
  CHECK(error_says("there is: train"));
  const auto subscription = subscribe(connection);
  CHECK(subscription != nullptr);
}

TEST_CASE("client: a daemon that leaves Subscribe unanswered is given up") {
  FakeDaemon daemon({.answers_subscribe = false});
  bw_connect_options options = BW_CONNECT_OPTIONS_INIT;
  options.timeout_ms = 1000;
  bw_connection* raw = nullptr;
  REQUIRE(bw_connect(daemon.endpoint().c_str(), &options, &raw) == BW_OK);
  const ConnectionHandle connection(raw);
  CHECK(try_subscribe(connection, train()) == BW_TIMED_OUT);
  CHECK(error_says("no answer to Subscribe for feed \"train\" within 1000 ms"));
  // It may yet grant it, and would then hold batches for no one.
  CHECK(daemon.hears([](const auto& heard) { return heard.unsubscribed.size() == 1; }));
}

TEST_CASE("client: rank and ranks come from the environment when they are left to it") {
  FakeDaemon daemon({.world = 4});
  const auto connection = connect(daemon.endpoint());
  bw_subscribe_options options = train();
  options.mode = BW_SHARDED;
  const Variable ranks("WORLD_SIZE", "4");
  {
    const Variable rank("RANK", "3");
    subscribe(connection, options);
    CHECK(daemon.hears([](const auto& heard) {
      return heard.subscribed.size() == 1 && heard.subscribed[0].rank == 3 &&
             heard.subscribed[0].ranks == 4;
    }));
  }
  CHECK(try_subscribe(connection, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("RANK is not in the environment"));
  const Variable rank("RANK", "three");
  CHECK(try_subscribe(connection, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("RANK is \"three\""));
  options.rank = 4;
  CHECK(try_subscribe(connection, options) == BW_INVALID_ARGUMENT);
  CHECK(error_says("rank 4 of 4 ranks"));
}

TEST_CASE("client: a daemon that pauses while a client connects is waited for") {
  FakeDaemon daemon({.pauses = true});
  CHECK(try_connect(daemon.endpoint(), 20'000) == BW_OK);
  CHECK(daemon.has_heard([](const auto& heard) { return heard.hellos.size() == 1; }));
}

TEST_CASE("client: an arena that could shrink under its readers is not taken") {
  FakeDaemon daemon({.seals = false});
  const auto connection = connect(daemon.endpoint());
  CHECK(try_subscribe(connection, train()) == BW_MALFORMED_MESSAGE);
  CHECK(error_says("not sealed"));
}

TEST_CASE("client: a plan that was not asked for is refused, also where the daemon grants it") {
  ThreadPolicy manners;
  manners.compares = false;
  FakeDaemon daemon(manners);
  const ConnectionHandle connection = connect(daemon.endpoint());
  const bw_fingerprint other_data{9, 2, 3};
  bw_subscribe_options options = train();
  options.fingerprint = &other_data;
  bw_subscription* raw = nullptr;
  SUBCASE("within an epoch") {
    options.step = 1;
    CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_FINGERPRINT_MISMATCH);
    CHECK(std::string(bw_error_message()).find("data") != std::string::npos);
  }
  SUBCASE("but at its start, where newer data are as good") {
    CHECK(bw_subscribe(connection.get(), &options, &raw) == BW_OK);
    bw_unsubscribe(raw);
  }
}

TEST_CASE("client: names and fingerprints as text, and back") {
  CHECK(bw_abi_version() == BW_ABI_VERSION);
  CHECK(std::strlen(bw_library_version()) > 0);
  CHECK(std::string(bw_status_name(BW_TIMED_OUT)) == "timed_out");
  CHECK(std::string(bw_status_name(BW_EPOCH_END)) == "epoch_end");
  CHECK(std::string(bw_status_name(-7)) == "unknown");
  CHECK(std::string(bw_dtype_name(BW_BFLOAT16)) == "bfloat16");
  CHECK(bw_dtype_bytes(BW_INT64) == 8);
  CHECK(bw_dtype_bytes(99) == 0);
  const bw_fingerprint fingerprint{1, 0xABCDEF, UINT64_MAX};
  char text[BW_FINGERPRINT_TEXT_BYTES];
  REQUIRE(bw_fingerprint_text(&fingerprint, text) == BW_OK);
  CHECK(std::string(text) == "0000000000000001-0000000000abcdef-ffffffffffffffff");
  bw_fingerprint back{};
  REQUIRE(bw_fingerprint_parse(text, &back) == BW_OK);
  CHECK(std::memcmp(&back, &fingerprint, sizeof back) == 0);
  text[3] = '+';
  CHECK(bw_fingerprint_parse(text, &back) == BW_INVALID_ARGUMENT);
  CHECK(bw_fingerprint_parse("1-2-3", &back) == BW_INVALID_ARGUMENT);
}

TEST_CASE("client: where no endpoint is given, the environment's is taken") {
  const FakeDaemon daemon;
  const Variable endpoint("BATCHWRIGHT_ENDPOINT", daemon.endpoint().c_str());
  bw_connection* raw = nullptr;
  REQUIRE_MESSAGE(bw_connect(nullptr, nullptr, &raw) == BW_OK, bw_error_message());
  bw_close(raw);
}

TEST_CASE("client: the C++ face takes the environment's endpoint, too, where none is given") {
  const FakeDaemon daemon;
  const Variable endpoint("BATCHWRIGHT_ENDPOINT", daemon.endpoint().c_str());
  CHECK(client::Connection().feeds().size() == 1);
}
