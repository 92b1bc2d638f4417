// Live feeds with lanes, through a server.

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/delivery/live/raw_producer.h"
#include "tests/delivery/talk.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

using Numbers = std::vector<std::uint32_t>;
using Flags = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("delivery: lanes of a live feed give each rank the next frames of its sequences") {
  FeedSettings settings = live_feed(4, 2);
  settings.live->pool.step_unit = StepUnit::lanes;
  settings.live->pool.unroll = 8;
  const TestServer server(std::move(settings));
  wire::SubscribeT first;
  first.mode = wire::Mode::sharded;
  first.ranks = 2;
  wire::SubscribeT second = first;
  second.rank = 1;
  RawTrainer ranks[] = {RawTrainer(server, first), RawTrainer(server, second)};
  RawProducer producer(server, "actor");
  CHECK(producer.push({{0, 20}, {1, 30}, {2, 3}, {3, 8}, {4, 9}, {5, 2}}) == 6);
  std::vector<SeenBatch> seen;
  for (std::uint32_t step = 0; step < 4; ++step) {
    if (step == 2) {  // no full step is left
      wire::EndFeedT end;
      end.feed = "live";
      producer.client().send(std::move(end));
    }
    for (RawTrainer& rank : ranks) rank.wait();
    for (RawTrainer& rank : ranks) {
      auto batch = rank.next();
      REQUIRE(batch);
      CHECK(batch->ticket.index == seen.size());
      float found = 0;
      std::memcpy(&found, batch->x.data(), sizeof found);
      CHECK(found == x_value(batch->numbers[0], std::size_t{2} * batch->starts[0]));
      rank.release(*batch);
      seen.push_back(std::move(*batch));
    }
  }
  std::vector<Numbers> starts, lengths;
  std::vector<Flags> flags;
  for (const SeenBatch& batch : seen) {
    starts.push_back(batch.starts);
    lengths.push_back(batch.lengths);
    flags.push_back(batch.flags);
  }
  CHECK(starts ==
        std::vector<Numbers>{{0, 0}, {0, 0}, {8, 0}, {8, 0}, {16, 8}, {16, 0}, {24, 0}, {24, 0}});
  CHECK(lengths ==
        std::vector<Numbers>{{8, 3}, {8, 8}, {8, 8}, {8, 2}, {4, 1}, {8, 0}, {6, 0}, {6, 0}});
  CHECK(flags ==
        std::vector<Flags>{{1, 3}, {1, 3}, {0, 1}, {0, 3}, {2, 2}, {0, 0}, {2, 0}, {2, 0}});
  CHECK(seen[2].numbers == std::vector<std::uint64_t>{0, 4});
  CHECK(seen[5].numbers == std::vector<std::uint64_t>{1, 0});
  CHECK(seen[5].producers == std::vector<std::string>{"actor", ""});
  CHECK(seen[5].keys == std::vector<std::string>{"k1", ""});
  CHECK(seen[6].weights == std::vector<float>{0, 1});  // rank 0 repeats what rank 1 has
  CHECK(seen[7].weights == std::vector<float>{1, 1});
}
