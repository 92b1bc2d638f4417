#include "daemon/delivery/feed/core/feed_core.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/delivery/core/virtual_feed.h"
#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// The latest text of an event; empty: it was not logged.
std::string logged(VirtualFeed& feed, Event event) {
  std::string text;
  for (const LoggedEvent& each : feed.log().latest()) {
    if (each.event == event) text = each.text;
  }
  return text;
}

}  // namespace

TEST_CASE("delivery: a feed assembles its first batches before a client asks, and is ready then") {
  VirtualFeed feed(sorted_feed(4));
  const FeedParts& parts = feed.core().parts();
  CHECK(parts.life.state() == FeedState::starting);
  CHECK(feed.eventually([&parts] { return parts.life.state() == FeedState::serving; }));
  CHECK(
      feed.eventually([&parts] { return parts.scheduler.cache().count(SlotState::ready) == 10; }));
}

TEST_CASE("delivery: a feed with nothing to do has no work, and asks for nothing") {
  VirtualFeed feed(sorted_feed(4));
  CHECK(!feed.eventually([] { return false; }));
  CHECK(!feed.core().has_work());
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);
  CHECK(actions.empty());
}

TEST_CASE("delivery: a broken invariant fails the feed, with its last events in the log") {
  VirtualFeed feed(sorted_feed(4));
  VirtualClient client(feed);
  REQUIRE(join(client, subscribe_to_train()));
  REQUIRE(next_ticket(client));
  const FeedParts& parts = feed.core().parts();
  std::uint32_t free = 0;  // a slot that no client holds
  while (parts.scheduler.cache().is_held(SlotIndex{free})) ++free;
  feed.tell(BatchSent{{parts.scheduler.slots(), SlotIndex{free}}});
  REQUIRE(read_until<wire::Refused>(client));
  CHECK(parts.life.why()->message ==
        "feed train failed: an invariant does not hold: a slot that is given back is held");
  const std::string events = logged(feed, Event::feed_broken);
  CAPTURE(events);
  CHECK(events.find("SubscribeRequested 1 1") != std::string::npos);
  CHECK(events.find("BatchReady 0 0") != std::string::npos);
  CHECK(events.find("BatchSent") > events.find("BatchReady"));
}

TEST_CASE("delivery: a worker gets its ticket once the kernel has the record of it") {
  const TemporaryFolder folder;
  FeedSettings settings = sorted_feed(4);
  settings.journal = folder / "journal";
  VirtualFeed feed(settings);
  const FeedParts& parts = feed.core().parts();
  REQUIRE(feed.eventually([&parts] { return parts.life.state() == FeedState::serving; }));
  VirtualClient worker(feed);
  auto subscribe = subscribe_to_train();
  subscribe.mode = wire::Mode::queue;
  worker.send(std::move(subscribe));
  std::vector<FeedAction> actions;
  feed.core().decide(feed.now(), actions);
  std::size_t tickets = 0;
  std::vector<std::function<RecordWriter::Progress()>> works;
  const auto look = [&] {
    for (const FeedAction& action : std::exchange(actions, {})) {
      if (const auto* send = std::get_if<Send>(&action)) tickets += send->is_ticket ? 1 : 0;
      if (const auto* write = std::get_if<WriteRecords>(&action)) works.push_back(write->work);
    }
  };
  look();
  CHECK(parts.desk.queue().out().size() == 1);
  CHECK(tickets == 0);
  REQUIRE(works.size() == 1);
  feed.tell(Written{works.front()()});
  feed.core().decide(feed.now(), actions);
  look();
  CHECK(tickets == 1);
}
