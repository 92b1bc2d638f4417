#include <doctest/doctest.h>

#include <cstring>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

const BatchStyle kStop{"train", Layout::batch_major, {}, OnCorrupt::stop};
const BatchStyle kSkip{"train", Layout::batch_major, {}, OnCorrupt::skip};

std::shared_ptr<MadeUpSnapshot> dataset(std::vector<std::uint32_t> lengths) {
  return std::make_shared<MadeUpSnapshot>(all_kinds(), std::move(lengths));
}

bool all_zero(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    if (byte != std::byte{0}) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("assembly: a batch says which one it is, and of which plan") {
  const auto snapshot = dataset({3, 1, 2, 4, 5, 6});
  PlanSettings settings = in_order(1);
  settings.world = 2;
  const auto source = plan_of(snapshot, settings);
  const TestSlot slot(1 << 16);
  const auto assembled = assemble_batch(*source, kStop, BatchIndex{3}, slot.bytes());
  REQUIRE(assembled);
  const wire::Batch& batch = batch_in(slot, *assembled);
  CHECK(batch.feed()->str() == "train");
  CHECK(batch.epoch() == 3);
  CHECK(batch.index() == 3);
  CHECK(batch.step() == 1);
  CHECK(batch.world() == 2);
  CHECK(batch.fingerprint()->data() == source->fingerprint.data);
  CHECK(batch.fingerprint()->settings() == source->fingerprint.settings);
  CHECK(batch.layout() == Layout::batch_major);
}

TEST_CASE("assembly: rows carry key, ordinal and length as planned") {
  const auto snapshot = dataset({3, 1, 2, 4, 5, 6});
  const auto source = plan_of(snapshot, in_order(4));
  const TestSlot slot(1 << 16);
  const auto assembled = assemble_batch(*source, kStop, BatchIndex{1}, slot.bytes());
  REQUIRE(assembled);
  const wire::Batch& batch = batch_in(slot, *assembled);
  std::vector<Row> rows;
  source->plan.rows(BatchIndex{1}, rows);
  REQUIRE(batch.ordinals()->size() == rows.size());
  for (unsigned r = 0; r < rows.size(); ++r) {
    CHECK(batch.ordinals()->Get(r) == rows[r].ordinal);
    CHECK(batch.keys()->Get(r)->str() == MadeUpSnapshot::key(rows[r].ordinal));
    CHECK(batch.lengths()->Get(r) == rows[r].length);
  }
  CHECK(batch.starts() == nullptr);
  CHECK(batch.flags() == nullptr);
}

TEST_CASE("assembly: a field without content has lengths and no bytes, in both layouts") {
  Schema schema = all_kinds();
  for (FieldSpec& field : schema.fields) {
    if (field.kind == FieldKind::primary || field.kind == FieldKind::independent) field.shape = {0};
  }
  const auto source =
      plan_of(std::make_shared<MadeUpSnapshot>(schema, std::vector<std::uint32_t>{3, 1, 2, 4}),
              in_order(4));
  for (const Layout layout : {Layout::batch_major, Layout::time_major}) {
    BatchStyle style = kStop;
    style.layout = layout;
    const TestSlot slot(1 << 16);
    const auto assembled = assemble_batch(*source, style, BatchIndex{0}, slot.bytes());
    REQUIRE_MESSAGE(assembled, assembled.error().message);
    const wire::Batch& batch = batch_in(slot, *assembled);
    CHECK(batch.lengths()->size() == 4);
    CHECK(batch.tensors()->Get(0)->data()->size() == 0);
    CHECK(batch.tensors()->Get(0)->shape()->Get(2) == 0);
  }
}

TEST_CASE("assembly: a batch carries its own figures and those of its global step") {
  const auto snapshot = dataset({1, 2, 3, 4, 10, 20});
  PlanSettings settings = in_order(2);
  settings.world = 3;
  const auto source = plan_of(snapshot, settings);
  const TestSlot slot(1 << 16);
  double weights = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto assembled = assemble_batch(*source, kStop, BatchIndex{i}, slot.bytes());
    REQUIRE(assembled);
    const wire::Batch& batch = batch_in(slot, *assembled);
    const BatchFigures planned = source->plan.figures(BatchIndex{i});
    CHECK(assembled->rows == 2);
    CHECK(assembled->frames == planned.frames);
    CHECK(assembled->padded_frames == 2 * planned.batch_length);
    CHECK(batch.batch_length() == planned.batch_length);
    CHECK(batch.batch_frames() == planned.frames);
    CHECK(batch.step_sequences() == 6);
    CHECK(batch.step_frames() == 40);
    weights += batch.loss_weight();
  }
  CHECK(weights == doctest::Approx(3.0));
}

TEST_CASE("assembly: chunks say where they start, and aligned fields are cut along") {
  const auto snapshot = dataset({7, 10});
  PlanSettings settings = in_order(6);
  settings.chunk = 4;
  const auto source = plan_of(snapshot, settings);
  REQUIRE(source->plan.batches() == 1);
  const TestSlot slot(1 << 16);
  const auto assembled = assemble_batch(*source, kStop, BatchIndex{0}, slot.bytes());
  REQUIRE(assembled);
  const wire::Batch& batch = batch_in(slot, *assembled);
  std::vector<Row> rows;
  source->plan.rows(BatchIndex{0}, rows);
  REQUIRE(batch.starts() != nullptr);
  REQUIRE(batch.flags() != nullptr);
  for (unsigned r = 0; r < rows.size(); ++r) {
    CHECK(batch.starts()->Get(r) == rows[r].start);
    CHECK(batch.flags()->Get(r) == rows[r].flags);
    for (unsigned f : {0U, 1U}) {
      const std::size_t frame = frame_bytes(all_kinds().fields[f]);
      const auto wanted = snapshot->content(rows[r].ordinal, f)
                              .subspan(rows[r].start * frame, rows[r].length * frame);
      const auto row = payload(batch, f).subspan(r * batch.batch_length() * frame);
      CHECK(std::memcmp(row.data(), wanted.data(), wanted.size()) == 0);
      CHECK(all_zero(row.subspan(wanted.size(), batch.batch_length() * frame - wanted.size())));
    }
    // A chunk has the whole of what is not counted in frames.
    CHECK(batch.tensors()->Get(2)->lengths()->Get(r) == snapshot->lengths()[rows[r].ordinal]);
  }
}

TEST_CASE("assembly: a lane that ran out is a row of padding") {
  const auto snapshot = dataset({12, 3});
  PlanSettings settings;
  settings.order = Order::sorted;
  settings.lanes = 2;
  settings.unroll = 4;
  const auto source = plan_of(snapshot, settings);
  REQUIRE(source->plan.batches() == 3);
  const TestSlot slot(1 << 16);
  const auto assembled = assemble_batch(*source, kStop, BatchIndex{2}, slot.bytes());
  REQUIRE(assembled);
  const wire::Batch& batch = batch_in(slot, *assembled);
  REQUIRE(assembled->rows == 2);
  CHECK(assembled->frames == 4);
  const unsigned idle = batch.lengths()->Get(0) == 0 ? 0 : 1;
  CHECK(batch.lengths()->Get(idle) == 0);
  CHECK(batch.keys()->Get(idle)->str().empty());
  CHECK(all_zero(payload(batch, 0).subspan(idle * 4 * 12, 4 * 12)));
  CHECK(batch.starts()->Get(1 - idle) == 8);
  const auto last = snapshot->content(0, 0).subspan(8 * 12, 4 * 12);
  CHECK(std::memcmp(payload(batch, 0).data() + (1 - idle) * 48, last.data(), last.size()) == 0);
}

TEST_CASE("assembly: a corrupt record stops the batch, named with its reason") {
  const auto snapshot = dataset({3, 1, 2});
  snapshot->corrupt = {1};
  const TestSlot slot(1 << 16);
  const auto assembled =
      assemble_batch(*plan_of(snapshot, in_order(3)), kStop, BatchIndex{0}, slot.bytes());
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::corrupt_record);
  CHECK(assembled.error().message == "batch 0 of epoch 3: key \"key-x1\": wrong CRC");
}

TEST_CASE("assembly: a skipped record leaves the batch without its row, and is listed") {
  const auto snapshot = dataset({3, 1, 2});
  snapshot->corrupt = {2};
  const TestSlot slot(1 << 16);
  const auto assembled =
      assemble_batch(*plan_of(snapshot, in_order(3)), kSkip, BatchIndex{0}, slot.bytes());
  REQUIRE(assembled);
  CHECK(assembled->rows == 2);
  CHECK(assembled->frames == 4);
  REQUIRE(assembled->skipped.size() == 1);
  CHECK(assembled->skipped[0].ordinal == Ordinal{2});
  CHECK(assembled->skipped[0].reason == "key \"key-xx2\": wrong CRC");
  const wire::Batch& batch = batch_in(slot, *assembled);
  CHECK(batch.rows_lost() == 1);
  CHECK(shape(batch, 0) == std::vector<std::uint64_t>{2, 3, 3});
  for (unsigned r = 0; r < 2; ++r) {
    const std::uint64_t ordinal = batch.ordinals()->Get(r);
    CHECK(ordinal != 2);
    CHECK(batch.keys()->Get(r)->str() == MadeUpSnapshot::key(ordinal));
    const auto content = snapshot->content(ordinal, 0);
    CHECK(std::memcmp(payload(batch, 0).data() + r * 36, content.data(), content.size()) == 0);
  }
}

TEST_CASE(
    "assembly: a batch of which nothing is left is an error, also where records are skipped") {
  const auto snapshot = dataset({3, 1, 2});
  snapshot->corrupt = {0, 1, 2};
  PlanSettings settings = in_order(3);
  SUBCASE("of whole sequences") {}
  SUBCASE("of chunks, which keep their rows") { settings.chunk = 3; }
  const TestSlot slot(1 << 16);
  const auto assembled =
      assemble_batch(*plan_of(snapshot, settings), kSkip, BatchIndex{0}, slot.bytes());
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::corrupt_record);
  CHECK(assembled.error().message.find("batch 0 of epoch 3: all 3 rows are corrupt") == 0);
  CHECK(assembled.error().message.find("wrong CRC") != std::string::npos);
}

TEST_CASE("assembly: a chunk that is skipped keeps its row, all padding") {
  const auto snapshot = dataset({7, 10});
  snapshot->corrupt = {0};
  PlanSettings settings = in_order(6);
  settings.chunk = 4;
  const auto source = plan_of(snapshot, settings);
  const TestSlot slot(1 << 16);
  const auto assembled = assemble_batch(*source, kSkip, BatchIndex{0}, slot.bytes());
  REQUIRE(assembled);
  CHECK(assembled->rows == source->plan.figures(BatchIndex{0}).rows);
  CHECK(assembled->frames == 10);
  CHECK(assembled->skipped.size() == 2);
  const wire::Batch& batch = batch_in(slot, *assembled);
  CHECK(batch.rows_lost() == 2);
  for (unsigned r = 0; r < assembled->rows; ++r) {
    if (batch.ordinals()->Get(r) != 0) continue;
    CHECK(batch.lengths()->Get(r) == 0);
    CHECK(batch.keys()->Get(r)->str().empty());
    CHECK(all_zero(payload(batch, 0).subspan(r * 4 * 12, 4 * 12)));
    CHECK(all_zero(payload(batch, 3).subspan(r * 8, 8)));
  }
}

TEST_CASE("assembly: a record that differs from the length index is corrupt") {
  const auto snapshot = dataset({3, 1, 2});
  snapshot->indexed_lengths = {3, 1, 1};
  const TestSlot slot(1 << 16);
  const auto assembled =
      assemble_batch(*plan_of(snapshot, in_order(3)), kStop, BatchIndex{0}, slot.bytes());
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::corrupt_record);
  CHECK(assembled.error().message ==
        "batch 0 of epoch 3: sequence 2: field \"tokens\" has length 2, the length index says 1");
}

TEST_CASE("assembly: a slot that is too small is refused, not overrun") {
  const auto snapshot = dataset({300, 100, 200});
  const TestSlot slot(4096);
  const auto assembled = assemble_batch(*plan_of(snapshot, in_order(3)), kStop, BatchIndex{0},
                                        slot.bytes().first(2048));
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::does_not_fit);
  for (const std::byte byte : slot.bytes()) CHECK(byte == std::byte{0xEE});
}

TEST_CASE("assembly: a batch past the end of the epoch is refused") {
  const auto snapshot = dataset({3, 1, 2});
  const TestSlot slot(1 << 16);
  const auto assembled =
      assemble_batch(*plan_of(snapshot, in_order(3)), kStop, BatchIndex{1}, slot.bytes());
  REQUIRE_FALSE(assembled);
  CHECK(assembled.error().code == ErrorCode::invalid_argument);
}
