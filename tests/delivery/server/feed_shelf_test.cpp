// Feeds that are never started: so they need no dataset, and are at rest at any time.

#include "daemon/delivery/feed_shelf.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/delivery/feed/ten_steps.h"

using namespace batchwright;

namespace {

const Error kWhy{ErrorCode::disconnected, "because"};

constexpr std::uint32_t kShelfSlots = 16;

struct Shelf {
  std::unique_ptr<Feed> make(const std::string& name, ArenaNumber number) {
    FeedSettings settings;
    settings.name = name;
    FeedResources resources;
    resources.data.first_epoch = ten_steps();
    resources.arena = std::move(*Arena::create(kShelfSlots, 4096));
    FeedPorts ports{io, planner, assembler, readahead, 1, {}, {}, memory, log, {}};
    return std::make_unique<Feed>(number, settings, std::move(resources), std::move(ports));
  }
  Feed& add(const std::string& name) { return feeds.add(make(name, feeds.new_number())); }

  boost::asio::io_context io;
  std::shared_ptr<MemoryBudget> memory = std::make_shared<MemoryBudget>();
  EventLog log;
  Planner planner{io};
  Assembler assembler{1};
  Readahead readahead;
  FeedShelf::Belongings freed;
  FeedShelf feeds{io, [this](FeedShelf::Belongings belongings) { freed = std::move(belongings); }};
};

}  // namespace

TEST_CASE("delivery: feeds are found by their names, and arenas by numbers that none had before") {
  Shelf shelf;
  CHECK(shelf.feeds.names().empty());
  Feed& train = shelf.add("train");
  Feed& dev = shelf.add("dev");
  CHECK(shelf.feeds.names() == "train, dev");
  CHECK(shelf.feeds.find("dev") == &dev);
  CHECK(shelf.feeds.find("test") == nullptr);
  CHECK(shelf.feeds.find({SessionId{1}, {1}}) == nullptr);
  CHECK(shelf.feeds.find_arena({1}) == train.find_arena({1}));
  CHECK(shelf.feeds.find_arena({2}) == dev.find_arena({2}));
  CHECK(shelf.feeds.find_arena({3}) == nullptr);
  CHECK(shelf.feeds.numbers_left() == ArenaNumber::kMostFeeds - 2);
}

TEST_CASE("delivery: a feed that takes another one's place stands where that stood") {
  Shelf shelf;
  const ArenaNumber before{1};
  shelf.add("train");
  shelf.add("dev");
  Feed& added = shelf.feeds.replace(shelf.make("train", *before.next()), kWhy);
  CHECK(shelf.feeds.names() == "train, dev");
  CHECK(shelf.feeds.find("train") == &added);
  CHECK(shelf.feeds.find_arena(*before.next()) == added.find_arena(*before.next()));
  CHECK(shelf.feeds.find_arena(before) != nullptr);
  CHECK(shelf.feeds.numbers_left() == ArenaNumber::kMostFeeds - 2);
}

TEST_CASE(
    "delivery: a feed that is retired is freed elsewhere, and its arena is there until then") {
  Shelf shelf;
  const ArenaNumber number{1};
  shelf.add("train");
  shelf.feeds.retire("test", kWhy);
  CHECK(shelf.feeds.names() == "train");
  shelf.feeds.retire("train", kWhy);
  CHECK(shelf.feeds.all().empty());
  CHECK(shelf.feeds.find_arena(number) != nullptr);
  CHECK(shelf.freed.empty());
  shelf.io.run();
  CHECK(shelf.feeds.find_arena(number) == nullptr);
  CHECK_FALSE(shelf.freed.empty());
  CHECK(shelf.memory->left() == 0);
  const std::uint64_t arena_bytes = std::uint64_t{4096} * kShelfSlots;
  shelf.freed.clear();
  CHECK(shelf.memory->left() >= arena_bytes);
}
