#include "daemon/delivery/feed/feed.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "daemon/delivery/work_threads.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A feed with a ledger, on a loop that turns when the test says so.
class LedgerFeed {
 public:
  explicit LedgerFeed(const std::string& ledger) {
    make_small_dataset(folder_ / "data", mixed_lengths(8, 5));
    Catalog catalog;
    const auto dataset = catalog.open({folder_ / "data"});
    REQUIRE(dataset);
    FeedSettings settings;
    settings.name = "train";
    settings.ledger = ledger;
    auto resources = prepare_feed(*dataset, settings, std::uint64_t{1} << 30);
    REQUIRE(resources);
    FeedPorts ports{loop_,
                    works_.planner(),
                    works_.assembler(),
                    works_.readahead(),
                    1,
                    [this](SessionId, const flatbuffers::DetachedBuffer& sent) { note(sent); },
                    [](auto&&...) {},
                    std::make_shared<MemoryBudget>(),
                    log_,
                    [] { return false; }};
    feed =
        std::make_unique<Feed>(ArenaNumber{1}, settings, std::move(*resources), std::move(ports));
    feed->start();
  }

  /// Until the turn that gives a batch to a subscriber, and notes it.
  void give_a_batch() {
    wire::SubscribeT request;
    request.feed = "train";
    request.subscription = 1;
    request.window = 1;
    const auto bytes = encode(std::move(request));
    const auto message =
        ControlMessage::decode(std::as_bytes(std::span(bytes.data(), bytes.size())));
    REQUIRE(message);
    ClientInfo client;
    client.session = SessionId{1};
    REQUIRE(feed->subscribe(client, *message->as<wire::Subscribe>()));
    feed->waits({SessionId{1}, {1}}, 0);
    while (feed->status(std::chrono::steady_clock::now()).slots.held == 0) {
      REQUIRE(loop_.run_one_for(std::chrono::seconds(10)) == 1);
    }
  }
  /// The subscriber gets its ticket, and says that it releases the batch.
  void release() {
    while (!lease_) REQUIRE(loop_.run_one_for(std::chrono::seconds(10)) == 1);
    wire::ReleaseT release;
    release.subscription = 1;
    release.leases = {*lease_};
    const auto bytes = encode(std::move(release));
    const auto message =
        ControlMessage::decode(std::as_bytes(std::span(bytes.data(), bytes.size())));
    REQUIRE(message);
    feed->release(SessionId{1}, *message->as<wire::Release>());
  }
  std::uint64_t failures() const { return log_.get(Event::feed_failed); }

 private:
  void note(const flatbuffers::DetachedBuffer& sent) {
    const auto message = ControlMessage::decode(std::as_bytes(std::span(sent.data(), sent.size())));
    REQUIRE(message);
    if (const auto* ticket = message->as<wire::Delivery>()) lease_ = ticket->lease();
  }

  TemporaryFolder folder_;
  boost::asio::io_context loop_;
  EventLog log_;
  std::optional<std::uint64_t> lease_;
  WorkThreads works_{loop_, 1, "memcpy", {}};

 public:
  std::unique_ptr<Feed> feed;  ///< Goes first.
};

}  // namespace

TEST_CASE("delivery: a record that fails after the loop's last turn is told when the feed ends") {
  LedgerFeed unwritable("/dev/full");
  unwritable.give_a_batch();
  CHECK(unwritable.failures() == 0);
  unwritable.feed.reset();
  CHECK(unwritable.failures() == 1);
}

TEST_CASE("delivery: what is released after the loop's last turn is written when the feed ends") {
  const TemporaryFolder folder;
  const std::string ledger = (folder / "ledger").string();
  LedgerFeed train(ledger);
  train.give_a_batch();
  train.release();
  CHECK(file_text(ledger).value_or("").find("released") == std::string::npos);
  train.feed.reset();
  CHECK(file_text(ledger).value_or("").find(R"({"event":"released")") != std::string::npos);
}
