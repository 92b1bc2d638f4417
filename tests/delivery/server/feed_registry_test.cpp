// Feeds that are never started: so they need no dataset, and are at rest at any time.

#include "daemon/delivery/feed_registry.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/delivery/feed/ten_steps.h"

using namespace batchwright;

namespace {

const Error kWhy{ErrorCode::disconnected, "because"};

constexpr std::uint32_t kShelfSlots = 16;

struct Registry {
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
  FeedRegistry::Resources freed;
  FeedRegistry feeds{io,
                     [this](FeedRegistry::Resources resources) { freed = std::move(resources); }};
};

}  // namespace

TEST_CASE("delivery: feeds are found by their names, and arenas by numbers that none had before") {
  Registry registry;
  CHECK(registry.feeds.names().empty());
  Feed& train = registry.add("train");
  Feed& dev = registry.add("dev");
  CHECK(registry.feeds.names() == "train, dev");
  CHECK(registry.feeds.find("dev") == &dev);
  CHECK(registry.feeds.find("test") == nullptr);
  CHECK(registry.feeds.find({SessionId{1}, {1}}) == nullptr);
  CHECK(registry.feeds.find_arena({1}) == train.find_arena({1}));
  CHECK(registry.feeds.find_arena({2}) == dev.find_arena({2}));
  CHECK(registry.feeds.find_arena({3}) == nullptr);
  CHECK(registry.feeds.numbers_left() == ArenaNumber::kMostFeeds - 2);
}

TEST_CASE("delivery: a feed that takes another one's place stands where that stood") {
  Registry registry;
  const ArenaNumber before{1};
  registry.add("train");
  registry.add("dev");
  Feed& added = registry.feeds.replace(registry.make("train", *before.next()), kWhy);
  CHECK(registry.feeds.names() == "train, dev");
  CHECK(registry.feeds.find("train") == &added);
  CHECK(registry.feeds.find_arena(*before.next()) == added.find_arena(*before.next()));
  CHECK(registry.feeds.find_arena(before) != nullptr);
  CHECK(registry.feeds.numbers_left() == ArenaNumber::kMostFeeds - 2);
}

TEST_CASE(
    "delivery: a feed that is retired is freed elsewhere, and its arena is there until then") {
  Registry registry;
  const ArenaNumber number{1};
  registry.add("train");
  registry.feeds.retire("test", kWhy);
  CHECK(registry.feeds.names() == "train");
  registry.feeds.retire("train", kWhy);
  CHECK(registry.feeds.all().empty());
  CHECK(registry.feeds.find_arena(number) != nullptr);
  CHECK(registry.freed.empty());
  registry.io.run();
  CHECK(registry.feeds.find_arena(number) == nullptr);
  CHECK_FALSE(registry.freed.empty());
  CHECK(registry.memory->left() == 0);
  const std::uint64_t arena_bytes = std::uint64_t{4096} * kShelfSlots;
  registry.freed.clear();
  CHECK(registry.memory->left() >= arena_bytes);
}
