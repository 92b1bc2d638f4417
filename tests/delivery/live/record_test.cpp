// Live feeds with a record: what was delivered is delivered again, by a feed of the record.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/delivery/live/raw_producer.h"
#include "tests/delivery/talk.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

FeedSettings recording_feed(const TemporaryFolder& folder) {
  FeedSettings settings = live_feed(4, 2);
  settings.live->record = folder / "run";
  return settings;
}

/// A trainer takes so many batches, and gives each back.
std::vector<SeenBatch> take(RawTrainer& trainer, std::size_t batches) {
  std::vector<SeenBatch> all;
  while (all.size() < batches) {
    trainer.wait();
    auto batch = trainer.next();
    REQUIRE(batch);
    trainer.release(*batch);
    all.push_back(std::move(*batch));
  }
  return all;
}

/// What an ordinary feed of the record delivers.
std::vector<SeenBatch> replay(const TemporaryFolder& folder, std::size_t batches) {
  FeedSettings settings;
  settings.name = "live";
  settings.plan.world = 2;
  settings.plan.order = Order::file;
  settings.plan.cut = Cut::file;
  settings.plan.order_file = order_file_of(folder / "run").string();
  {
    Catalog catalog;
    const auto dataset = catalog.open({folder / "run"});
    REQUIRE_MESSAGE(dataset, (dataset ? "" : dataset.error().message));
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE(snapshot);
    const auto read = read_order(**snapshot, settings.plan);
    REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  }
  const TestServer server(settings, folder / "run");
  wire::SubscribeT request;
  request.epochs = 1;
  RawTrainer trainer(server, request);
  REQUIRE(trainer.subscribed());
  CHECK(trainer.subscribed()->steps == batches / 2);
  return take(trainer, batches);
}

std::shared_ptr<const PushedSequence> pushed(std::uint64_t arrival) {
  auto made = std::make_shared<PushedSequence>();
  made->arrival = arrival;
  return made;
}

/// What this process writes to an open file finds no room from now on.
void fill_disk_of(const std::filesystem::path& file) {
  const int full = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != file) continue;
    REQUIRE(::dup2(full, std::stoi(entry.path().filename().string())) >= 0);
  }
  ::close(full);
}

/// All but their keys, which a dataset has once.
void check_equal(const SeenBatch& recorded, const SeenBatch& again) {
  CHECK(again.lengths == recorded.lengths);
  CHECK(again.starts == recorded.starts);
  CHECK(again.flags == recorded.flags);
  CHECK(again.weights == recorded.weights);
  CHECK(again.tensors == recorded.tensors);
  CHECK(again.batch_frames == recorded.batch_frames);
  CHECK(again.step_frames == recorded.step_frames);
  CHECK(again.step_sequences == recorded.step_sequences);
  CHECK(again.loss_weight == recorded.loss_weight);
}

}  // namespace

TEST_CASE("delivery: a run that was recorded is replayed bit for bit, also across a restart") {
  const TemporaryFolder folder;
  std::vector<SeenBatch> all;
  for (const std::uint64_t area : {std::uint64_t{0}, std::uint64_t{1} << 16}) {
    // With weights of their own and rows of weight 0; first with sequences that come twice, then
    // with a filler row at the end.
    FeedSettings settings = recording_feed(folder);
    settings.live->pool.max_staleness = 5;
    settings.live->pool.stale = StalePolicy::zero;
    settings.live->pool.zero_most_stale = 1;
    if (area == 0) {
      settings.live->pool.reuse = 2;
      settings.live->pool.fresh_share = 0.5;
    }
    const TestServer server(std::move(settings));
    RawTrainer trainer(server);
    CHECK(trainer.advance(3) == 3);
    RawProducer producer(server, "actor", area);
    const std::uint64_t first = area == 0 ? 0 : 100;  // other keys
    std::vector<Offered> pushed;
    for (std::uint64_t i = 0; i < 9; ++i) {
      const auto length = static_cast<std::uint32_t>(7 * i % 30 + 1);
      pushed.push_back({i, length, i % 4, kNoGroup, 0, 0.1F * static_cast<float>(i + first)});
    }
    trainer.wait();
    CHECK(producer.push(pushed) == 9);
    wire::EndFeedT end;
    end.feed = "live";
    producer.client().send(std::move(end));
    while (true) {
      auto batch = trainer.next();
      if (!batch) break;
      trainer.release(*batch);
      trainer.wait();
      all.push_back(std::move(*batch));
    }
  }
  REQUIRE(all.size() > 8);
  const std::vector<SeenBatch> again = replay(folder, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    check_equal(all[i], again[i]);
    for (std::size_t r = 0; r < all[i].keys.size(); ++r) {
      const bool is_second = i >= all.size() / 2;
      CHECK(again[i].keys[r].starts_with(all[i].keys[r] + (is_second ? "~" : "")));
    }
  }
  // Of one sequence two ranks get a batch each.
  const std::vector<float> filler{0};
  CHECK((all.back().weights == filler || all[all.size() - 2].weights == filler));
}

TEST_CASE("delivery: a run with lanes is recorded and replayed, sequences being stored once") {
  const TemporaryFolder folder;
  std::vector<SeenBatch> all;
  {
    FeedSettings settings = recording_feed(folder);
    settings.live->pool.step_unit = StepUnit::lanes;
    settings.live->pool.unroll = 7;
    const TestServer server(std::move(settings));
    RawTrainer trainer(server);
    RawProducer producer(server, "actor");
    std::vector<Offered> pushed;
    for (std::uint64_t i = 0; i < 9; ++i) {
      pushed.push_back({i, static_cast<std::uint32_t>(5 * i % 30 + 1)});
    }
    CHECK(producer.push(pushed) == 9);
    wire::EndFeedT end;
    end.feed = "live";
    producer.client().send(std::move(end));
    trainer.wait();
    while (auto batch = trainer.next()) {
      trainer.release(*batch);
      trainer.wait();
      all.push_back(std::move(*batch));
    }
  }
  REQUIRE(all.size() == 10);
  const std::vector<SeenBatch> again = replay(folder, all.size());
  bool goes_on = false, is_free = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    check_equal(all[i], again[i]);
    CHECK(again[i].keys == all[i].keys);
    goes_on = goes_on || all[i].starts.front() == 7;
    is_free = is_free || all[i].lengths.back() == 0;
  }
  CHECK((goes_on && is_free));
}

TEST_CASE("delivery: a step that no client was given is not in the record") {
  const TemporaryFolder folder;
  {
    const TestServer server(recording_feed(folder));
    RawProducer producer(server, "actor");
    RawTrainer trainer(server);
    trainer.wait();
    CHECK(producer.push({{0, 5}, {1, 9}, {2, 1}, {3, 30}}) == 4);
    CHECK(take(trainer, 2).size() == 2);
    CHECK(producer.push({{4, 5}, {5, 9}}) == 6);
  }
  CHECK(replay(folder, 2).size() == 2);
}

TEST_CASE("delivery: a live feed is not opened onto a dataset with other fields") {
  const TemporaryFolder folder;
  make_small_dataset(folder / "run", {3});
  const auto refused = prepare_live_feed(recording_feed(folder), std::uint64_t{1} << 30);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::schema_mismatch);
  CHECK(refused.error().message.starts_with("live.record: dataset " + (folder / "run").string() +
                                            " has other fields: "));
}

TEST_CASE("delivery: a live feed whose record is full fails, says so, and lets go of the record") {
  const TemporaryFolder folder;
  const FeedSettings settings = recording_feed(folder);
  TestServer server(settings, [&](const auto&, FeedResources&) {
    fill_disk_of(order_file_of(settings.live->record));
  });
  RawProducer producer(server, "actor");
  RawTrainer trainer(server);
  trainer.wait();
  CHECK(producer.push({{0, 5}, {1, 9}, {2, 1}, {3, 30}}) == 4);
  while (const auto batch = trainer.next()) trainer.release(*batch);
  REQUIRE(trainer.refused());
  CHECK(trainer.refused()->message.find("run.order: write: No space left on device") !=
        std::string::npos);
  CHECK(server.eventually([&](TestServer&) {  // by the thread that writes it
    return prepare_live_feed(settings, std::uint64_t{1} << 30).has_value();
  }));
}

TEST_CASE("delivery: steps wait while the record does, and what it needs stays") {
  const FeedSettings settings = live_feed(1);
  const auto source = std::make_shared<LiveSource>(settings.live->schema, Fingerprint{}, 1);
  StepGate gate(settings, source);
  gate.set_slot_bytes(1 << 20);
  gate.wait_for_record(true);
  gate.add({LiveBatch{}});
  CHECK_FALSE(gate.take_news());
  CHECK(gate.is_waiting_for_record());
  CHECK(gate.wanted_slot_bytes() == 0);
  gate.wait_for_record(false);
  CHECK(gate.take_news());
  CHECK(source->outline().batches == 1);

  std::vector<std::uint64_t> freed;
  KeptSequences kept([&freed](ProducerId, const PushedSequence& sequence, bool) {
    freed.push_back(sequence.arrival);
  });
  kept.add(pushed(5), 0, true);
  kept.add_step(0, {5});
  kept.leave_pool(5);
  kept.hold(5);
  kept.keep_from(1);
  CHECK(kept.bytes_beside_pool() == 0);
  CHECK(freed.empty());
  kept.let_go(5);
  CHECK(freed == std::vector<std::uint64_t>{5});
}

TEST_CASE("delivery: a record names a sequence by the ordinal that it got first") {
  RecordService desk(7, 0xab);
  const auto batch = [](std::vector<std::shared_ptr<const PushedSequence>> rows, float weight) {
    auto made = std::make_shared<LiveBatch>();
    constexpr std::uint8_t kWhole = kRowReset | kRowLast;
    for (const auto& each : rows) made->rows.push_back({each->arrival, 0, 1, kWhole, 0, weight});
    made->sequences = std::move(rows);
    made->says.version = 4;
    return made;
  };
  const auto a = pushed(0);
  const auto b = pushed(1);
  CHECK(desk.add(Step{0}, {batch({a, b}, 1), batch({b}, 0)}).size() == 2);
  CHECK(desk.has(Step{0}));
  CHECK(desk.add(Step{1}, {batch({a}, 0.25F), batch({b}, 1)}).empty());
  const auto steps = desk.take();
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].first == 7);
  CHECK(steps[0].lines == "# incarnation 00000000000000ab\n# step 0, version 4\n#7\t#8\n#8 *0\n");
  CHECK(steps[1].lines == "# step 1, version 4\n#7 *0.25\n#8\n");
  CHECK(desk.written(1) == RecordService::Sequences{a, b});
  CHECK(desk.written(2).empty());
  desk.keep_from(Step{1});
  CHECK_FALSE(desk.has(Step{0}));
  CHECK(desk.has(Step{1}));
}
