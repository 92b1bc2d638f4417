#include <doctest/doctest.h>

#include <string>

#include "daemon/delivery/feed/core/feed_parts.h"
#include "tests/delivery/core/virtual_feed.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using LifePhase = FeedLife::Stage;

Error because(const char* why) { return {ErrorCode::io_error, why}; }

}  // namespace

TEST_CASE("delivery: a feed serves from its first batch on, which is there once") {
  FeedLife life;
  CHECK(life.state() == FeedState::starting);
  CHECK(life.first_batch_is_there());
  CHECK(life.state() == FeedState::serving);
  CHECK(!life.first_batch_is_there());
  CHECK(!life.has_ended());
}

TEST_CASE("delivery: a feed that failed keeps its first reason, and comes to serve no longer") {
  FeedLife life;
  CHECK(life.fail(because("first")));
  CHECK(!life.fail(because("second")));
  CHECK(life.why()->message == "first");
  CHECK(!life.first_batch_is_there());
  CHECK(life.state() == FeedState::failed);
  CHECK(!life.is_retired());
}

TEST_CASE("delivery: a feed is retired for the reason that is given, also after it failed") {
  FeedLife life;
  life.first_batch_is_there();
  life.fail(because("failed"));
  life.retire(because("removed"));
  CHECK(life.is_retired());
  CHECK(life.has_ended());
  CHECK(life.why()->message == "removed");
  CHECK(!life.fail(because("late")));
  CHECK(life.stage() == LifePhase::retired);
}

TEST_CASE("delivery: that a client has come is remembered") {
  FeedLife life;
  CHECK(!life.had_client());
  life.come();
  CHECK(life.had_client());
}

TEST_CASE("delivery: clients of a feed whose data were overwritten are told so") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  REQUIRE(join(client, subscribe_to_train()));
  feed.tell(DataOverwritten{{ErrorCode::corrupt_record, "somebody wrote to the dataset"}});
  const auto refused = read_until<wire::Refused>(client);
  REQUIRE(refused);
  CHECK(refused->as<wire::Refused>()->message()->str().find("wrote to the dataset") !=
        std::string::npos);
  CHECK(feed.core().parts().life.why()->code == ErrorCode::corrupt_record);
}
