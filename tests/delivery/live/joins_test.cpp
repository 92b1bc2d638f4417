// Live feeds that join the rows of a dataset's feed to what is pushed.

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/delivery/live/virtual_live_service.h"
#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::size_t kLength = 9;  ///< Of each stored sequence.

/// live_feed(), with features and label of feed "train".
FeedSettings joining_feed(std::uint32_t step) {
  FeedSettings settings = live_feed(step);
  LiveFeedSettings& live = *settings.live;
  live.schema.fields.push_back({"features", FieldKind::aligned, DType::float32, {4}, {}});
  live.schema.fields.push_back({"label", FieldKind::scalar, DType::int32, {}, {}});
  live.join = {"train", {"features", "label"}};
  return settings;
}

/// A sequence of `length` frames that names a row.
LaidOutPush named(std::uint64_t number, std::uint32_t length, const wire::JoinedRow& row) {
  LaidOutPush laid = lay_out({{number, length}});
  laid.push.framed = true;
  laid.push.of = std::make_unique<wire::OfT>();
  laid.push.of->feed = "train";
  laid.push.of->fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
  laid.push.of->rows = {row};
  return laid;
}

/// The rows of a small dataset.
class Stored {
 public:
  Stored() {
    make_small_dataset(folder_ / "d", std::vector<std::uint32_t>(6, kLength));
    auto dataset = catalog_.open({folder_ / "d"});
    REQUIRE(dataset);
    dataset_ = *dataset;
    auto snapshot = dataset_->snapshot();
    REQUIRE(snapshot);
    auto planned = plan_snapshot(*snapshot, sorted_feed(2), Epoch{0});
    REQUIRE(planned);
    rows_ = planned->rows;
  }
  Result<std::shared_ptr<const Join>> join(const FeedSettings& settings) const {
    return make_join(*settings.live, rows_);
  }

 private:
  TemporaryFolder folder_;
  Catalog catalog_;
  std::shared_ptr<Dataset> dataset_;
  std::shared_ptr<const StoredRows> rows_;
};

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A server of a dataset's feed and a live one.
void add_live(TestServer& server, const FeedSettings& settings) {
  auto resources = prepare_live_feed(settings, std::uint64_t{1} << 28);
  REQUIRE_MESSAGE(resources, (resources ? "" : resources.error().message));
  server.ask([&](Server& s) {
    s.add_feed(settings, std::move(*resources));
    return true;
  });
}

Fingerprint fingerprint_of_train(TestServer& server) {
  wire::SubscribeT request;
  request.feed = "train";
  RawTrainer trainer(server, request);
  REQUIRE(trainer.subscribed());
  return from_wire(*trainer.subscribed()->fingerprint);
}

/// Pushes a sequence for the whole row of an ordinal, and returns the answer.
wire::AcceptedT push_for(TestServer& server, RawProducer& producer, std::uint64_t number,
                         std::uint64_t ordinal, const Fingerprint& of) {
  LaidOutPush laid = named(number, server.lengths()[ordinal], {0, ordinal, 0, 0});
  laid.push.of->fingerprint = std::make_unique<wire::Fingerprint>(to_wire(of));
  producer.client().send_framed(std::move(laid.push), laid.bytes);
  const auto answer = producer.accepted();
  REQUIRE(answer);
  return *answer;
}

}  // namespace

TEST_CASE("delivery: a row that is joined has its feed's values from its start on") {
  const Stored stored;
  const FeedSettings settings = joining_feed(2);
  VirtualLiveService desk(settings);
  desk.join(stored.join(settings));
  REQUIRE(desk.produce(kActor, "actor"));
  for (const std::uint32_t start : {0U, 3U}) {
    auto laid = named(start / 3, kLength - start - 1, {4, 2 + std::uint64_t{start}, start, 0});
    desk.push(kActor, std::move(laid.push), std::move(laid.bytes));
    CHECK(desk.answer<wire::Accepted>(kActor)->code == 0);
  }
  desk.take(kTrainer, 0);
  REQUIRE(desk.steps() == 1);
  CHECK(desk.has_its_values(0));
  std::vector<Row> rows;
  desk.source().rows(BatchIndex{0}, rows);
  desk.source().prepare(BatchIndex{0});
  const auto reader = desk.source().read(BatchIndex{0}, rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    RowBytes row;
    REQUIRE(reader->read(r, row));
    const std::uint64_t number = desk.source().live_rows(BatchIndex{0})->numbers[r];
    const std::uint64_t ordinal = 2 + 3 * number;
    REQUIRE(row.fields.size() == 5);
    const std::vector<float> found = floats(row.fields[3].bytes);
    REQUIRE(found.size() == 4 * std::size_t{rows[r].length});
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i] == small_value(ordinal, 3 * number + i / 4, i % 4));
    }
    std::int32_t label = -1;
    std::memcpy(&label, row.fields[4].bytes.data(), sizeof label);
    CHECK(label == static_cast<std::int32_t>(ordinal));
  }
  CHECK(reader->check_unchanged());
}

TEST_CASE("delivery: rows that a feed cannot join are refused, each with its reason") {
  const Stored stored;
  const FeedSettings settings = joining_feed(4);
  VirtualLiveService desk(settings);
  desk.join(stored.join(settings));
  REQUIRE(desk.produce(kActor, "actor"));
  const auto refused = [&](LaidOutPush laid) {
    desk.push(kActor, std::move(laid.push), std::move(laid.bytes));
    const auto answer = desk.answer<wire::Accepted>(kActor);
    REQUIRE(answer);
    CHECK(answer->next == 0);
    return answer->text;
  };
  const auto with = [](const wire::JoinedRow& row, std::uint32_t length = kLength) {
    return named(0, length, row);
  };
  CHECK(refused(lay_out({{0, kLength}})) ==
        "sequence 0: it names no row of feed train, which this feed joins to each");
  LaidOutPush other = with({0, 1, 0, 0});
  other.push.of->feed = "eval\n";
  CHECK(refused(std::move(other)).starts_with("sequence 0: it names a row of feed \"eval"));
  CHECK(refused(with({0, 6, 0, 0})) == "sequence 0: row 6 of feed train: allowed: below 6");
  CHECK(refused(with({~std::uint64_t{0}, ~std::uint64_t{0}, 0, 0})).ends_with("below 6"));
  CHECK(refused(with({7, 1, 0, 0}, kLength + 1)) ==
        "sequence 0: 10 frames are pushed, and row 1 of feed train has 9 in epoch 7, of which 0 "
        "lie before them");
  CHECK(refused(with({0, 1, 1, 0})).ends_with("of which 1 lie before them"));
  CHECK(refused(with({0, 1, 0xFFFFFFFF, 0})).ends_with("of which 4294967295 lie before them"));
  LaidOutPush more = with({0, 1, 0, 0});
  more.push.lengths.push_back(kLength);
  CHECK(refused(std::move(more)) == "sequence 0: 4 lengths for 1 sequences of 3 pushed fields");
  desk.join(Error{ErrorCode::fingerprint_mismatch, "another"});
  CHECK(refused(with({0, 1, 0, 0})) == "sequence 0: another");
  desk.join(stored.join(settings));
  LaidOutPush sound = with({~std::uint64_t{0}, 1, 2, 0xFFFFFFFF}, kLength - 2);
  desk.push(kActor, std::move(sound.push), std::move(sound.bytes));
  CHECK(desk.answer<wire::Accepted>(kActor)->next == 1);
}

TEST_CASE("delivery: a feed that joins no rows takes none") {
  VirtualLiveService desk(live_feed(4));
  REQUIRE(desk.produce(kActor, "actor"));
  LaidOutPush laid = named(0, 5, {0, 1, 0, 0});
  desk.push(kActor, std::move(laid.push), std::move(laid.bytes));
  CHECK(desk.answer<wire::Accepted>(kActor)->text ==
        "sequence 0: it names a row, and this feed joins none");
}

TEST_CASE("delivery: a feed of other fields than a live feed says cannot be joined") {
  const Stored stored;
  FeedSettings settings = joining_feed(4);
  settings.live->schema.fields[3].shape = {5};
  CHECK(stored.join(settings).error().message ==
        "field \"features\" of feed train is float32 [4], one value a frame; the fields of this "
        "feed say float32 [5], one value a frame");
  settings = joining_feed(4);
  settings.live->schema.fields[4].name = "speaker";
  CHECK(stored.join(settings).error().code == ErrorCode::schema_mismatch);
}

TEST_CASE("delivery: what is accepted keeps its rows when their feed is removed") {
  TestServer server(sorted_feed(4));
  FeedSettings settings = joining_feed(2);
  add_live(server, settings);
  const Fingerprint of = fingerprint_of_train(server);
  RawProducer producer(server, "actor");
  CHECK(push_for(server, producer, 0, 7, of).code == 0);
  const auto other = push_for(server, producer, 1, 7, {of.data, of.settings + 1, of.seed});
  CHECK(other.code == static_cast<int>(ErrorCode::fingerprint_mismatch));
  CHECK(push_for(server, producer, 1, 8, of).code == 0);
  server.ask([](Server& s) {
    s.remove_feed("train");
    return true;
  });
  const auto gone = push_for(server, producer, 2, 9, of);
  CHECK(gone.code == static_cast<int>(ErrorCode::not_found));
  CHECK(gone.text == "sequence 2: no feed \"train\"; this daemon serves: live");
  RawTrainer trainer(server);
  trainer.wait();
  const auto batch = trainer.next();
  REQUIRE(batch);
  REQUIRE(batch->numbers.size() == 2);
  const std::size_t longest = std::max(batch->lengths[0], batch->lengths[1]);
  const std::vector<float> found = floats(batch->tensors[3]);
  REQUIRE(found.size() == 2 * longest * 4);
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < std::size_t{batch->lengths[r]} * 4; ++i) {
      CHECK(found[r * longest * 4 + i] == small_value(7 + batch->numbers[r], i / 4, i % 4));
    }
  }
}

TEST_CASE("delivery: a record has what was joined, and is replayed on its own") {
  const TemporaryFolder folder;
  std::vector<SeenBatch> all;
  {
    TestServer server(sorted_feed(4));
    FeedSettings settings = joining_feed(2);
    settings.live->record = folder / "run";
    add_live(server, settings);
    const Fingerprint of = fingerprint_of_train(server);
    RawProducer producer(server, "actor");
    for (std::uint64_t i = 0; i < 4; ++i) CHECK(push_for(server, producer, i, i, of).code == 0);
    RawTrainer trainer(server);
    for (int i = 0; i < 2; ++i) {
      trainer.wait();
      auto batch = trainer.next();
      REQUIRE(batch);
      trainer.release(*batch);
      all.push_back(std::move(*batch));
    }
  }
  FeedSettings again;
  again.name = "live";
  again.plan.order = Order::file;
  again.plan.cut = Cut::file;
  again.plan.order_file = order_file_of(folder / "run").string();
  {
    Catalog catalog;
    const auto dataset = catalog.open({folder / "run"});
    REQUIRE_MESSAGE(dataset, (dataset ? "" : dataset.error().message));
    const auto snapshot = (*dataset)->snapshot();
    REQUIRE(snapshot);
    REQUIRE(read_order(**snapshot, again.plan));
  }
  const TestServer server(again, folder / "run");
  RawTrainer trainer(server);
  for (const SeenBatch& recorded : all) {
    trainer.wait();
    const auto batch = trainer.next();
    REQUIRE(batch);
    CHECK(batch->tensors == recorded.tensors);
    CHECK(batch->lengths == recorded.lengths);
    trainer.release(*batch);
  }
}
