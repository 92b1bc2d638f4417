#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "tests/assembly/snapshot.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
namespace fs = std::filesystem;

namespace {

const Schema kWeighted{{{"features", FieldKind::primary, DType::float32, {1}, {}},
                        {"weight", FieldKind::scalar, DType::float32, {}, {}},
                        {"label", FieldKind::scalar, DType::int32, {}, {}}},
                       {}};

/// Sequences a, b, c, ... of 10, 20, 30, ... frames with these weights, and files beside them.
class WeightedDataset {
 public:
  explicit WeightedDataset(const std::vector<float>& weights) {
    auto writer = DatasetWriter::open(folder_ / "data", kWeighted);
    REQUIRE_MESSAGE(writer, (writer ? "" : writer.error().message));
    std::uint32_t frames = 0;
    for (const float& weight : weights) {
      const std::vector<float> features(frames += 10, weight);
      const std::int32_t label = 3;
      const std::vector<FieldValue> values = {{std::as_bytes(std::span(features)), frames},
                                              {std::as_bytes(std::span(&weight, 1)), 1},
                                              {std::as_bytes(std::span(&label, 1)), 1}};
      const std::string key(1, static_cast<char>('a' + frames / 10 - 1));
      REQUIRE(writer->append({key, values}));
    }
    REQUIRE(writer->commit());
    auto dataset = Catalog().open({folder_ / "data"});
    REQUIRE(dataset);
    auto opened = (*dataset)->snapshot();
    REQUIRE(opened);
    snapshot = *opened;
  }

  fs::path order() const { return folder_ / "order"; }

  PlanSettings settings(const std::string& text, const std::string& weight = "") const {
    std::ofstream(order()) << text;
    PlanSettings settings;
    settings.order = Order::file;
    settings.cut = Cut::file;
    settings.order_file = order().string();
    settings.row_weight = weight;
    return settings;
  }

  PlanSettings read(const std::string& text, const std::string& weight = "") const {
    PlanSettings plan = settings(text, weight);
    const auto done = read_order(*snapshot, plan);
    REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
    REQUIRE(plan.order_rows);
    return plan;
  }

  Error refusal(const std::string& text, const std::string& weight = "") const {
    PlanSettings plan = settings(text, weight);
    const auto done = read_order(*snapshot, plan);
    REQUIRE_FALSE(done);
    CHECK_FALSE(plan.order_rows);
    return done.error();
  }

  std::shared_ptr<const Snapshot> snapshot;

 private:
  test::TemporaryFolder folder_;
};

std::string name_of(const WeightedDataset& data) { return "order file " + data.order().string(); }

}  // namespace

TEST_CASE("assembly: an order file names sequences of a dataset by key and by ordinal") {
  const WeightedDataset data({1, 1, 1});
  const PlanSettings plan = data.read("c\n#0\tb 5 10\n");
  const auto& rows = plan.order_rows->rows;
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].ordinal == 2);
  CHECK(rows[1].ordinal == 0);
  CHECK(rows[2].ordinal == 1);
  CHECK(plan.order_rows->weights.empty());
  CHECK(plan.order_rows->own_weights.empty());
  CHECK(
      data.refusal("c\nz\n").message ==
      name_of(data) +
          ", line 2: row 1: found key \"z\", which no sequence has; allowed: a key of the dataset, "
          "or an ordinal, #0 to #2");
}

TEST_CASE("assembly: a field gives each row its weight, unless the file does") {
  const WeightedDataset data({0.25F, 0, -0.0F});
  const PlanSettings plan = data.read("a\ta *2\tb\t-\n#2\tb *1\n", "weight");
  CHECK(plan.order_rows->weights == std::vector<float>{0.25F, 2, 0, 1, 0, 1});
  // What is read of the field is in the fingerprint; where it stands is not.
  CHECK(settings_hash(plan) == settings_hash(data.read("a *0.25\ta *2\tb *0\t-\nc *0\tb *1\n")));
  CHECK(settings_hash(plan) != settings_hash(data.read("a\ta *2\tb\t-\n#2\tb *1\n")));
}

TEST_CASE("assembly: a field that is no weight of rows is refused, with what is allowed") {
  const float inf = std::numeric_limits<float>::infinity();
  const WeightedDataset data({1, inf});
  CHECK(data.refusal("a\n", "weigth").message.starts_with("row_weight: "));
  for (const char* field : {"features", "label"}) {
    CHECK(data.refusal("a\n", field).message == "row_weight: found field \"" + std::string(field) +
                                                    "\"; allowed: a scalar float32 field");
  }
  CHECK(data.refusal("a\nb\n", "weight").message ==
        "row_weight: sequence 1 has inf in field \"weight\"; allowed: a finite number");
  // The weight of a sequence that is in no row is never asked for.
  CHECK(data.read("a\n", "weight").order_rows->weights == std::vector<float>{1});
  CHECK(data.refusal("a\n", "label").code == ErrorCode::bad_configuration);
}

TEST_CASE("assembly: an order file that cannot be read is named, with the reason") {
  const WeightedDataset data({1});
  PlanSettings plan = data.settings("a\n");
  fs::remove(data.order());
  const auto missing = read_order(*data.snapshot, plan);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::io_error);
  CHECK(missing.error().message == name_of(data) + ": cannot be read: No such file or directory");
  const std::string allowed = ": found a folder, a pipe or a device; allowed: a file";
  fs::create_directory(data.order());
  const auto folder = read_order(*data.snapshot, plan);
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message == name_of(data) + allowed);
  fs::remove(data.order());
  REQUIRE(::mkfifo(data.order().c_str(), 0600) == 0);
  const auto pipe = read_order(*data.snapshot, plan);  // and waits for no writer
  REQUIRE_FALSE(pipe);
  CHECK(pipe.error().message == name_of(data) + allowed);
}

TEST_CASE("assembly: lengths without keys and fields are named by ordinal alone") {
  const WeightedDataset data({1});
  PlanSettings plan = data.settings("#1\n#0\n");
  REQUIRE(read_order(2, plan));
  CHECK(plan.order_rows->rows[0].ordinal == 1);
  plan.row_weight = "weight";
  const auto weighted = read_order(2, plan);
  REQUIRE_FALSE(weighted);
  CHECK(weighted.error().message ==
        "row_weight: found \"weight\" for lengths without fields; allowed: a field of a dataset");
  PlanSettings other;
  other.order_rows = std::make_shared<const OrderRows>();
  REQUIRE(read_order(2, other));
  CHECK_FALSE(other.order_rows);
}

TEST_CASE("assembly: rows of weight 0 are in the batch, and in none of its totals") {
  const WeightedDataset data({1, 1, 1});
  PlanSettings plan = data.settings("a\tc *0\tb *0.5\nb *0\nc\nc\n");
  plan.world = 2;
  REQUIRE(read_order(*data.snapshot, plan));
  const auto source = plan_of(data.snapshot, plan);
  const BatchStyle style{"train", Layout::batch_major, {}, OnCorrupt::stop};
  const TestSlot slot(std::size_t{1} << 16);
  const auto batch_of = [&](std::uint64_t index) -> const wire::Batch& {
    const auto assembled = assemble_batch(*source, style, BatchIndex{index}, slot.bytes());
    REQUIRE(assembled);
    return batch_in(slot, *assembled);
  };
  const wire::Batch& first = batch_of(0);
  CHECK(first.batch_sequences() == 3);
  CHECK(first.batch_length() == 30);
  CHECK(first.batch_frames() == 30);
  CHECK(first.step_sequences() == 2);
  CHECK(first.step_frames() == 30);
  CHECK(first.loss_weight() == 2.0);
  REQUIRE(first.weights() != nullptr);
  CHECK(std::vector<float>(first.weights()->begin(), first.weights()->end()) ==
        std::vector<float>{1, 0, 0.5F});
  const wire::Batch& filler = batch_of(1);
  CHECK(filler.batch_sequences() == 1);
  CHECK(filler.batch_frames() == 0);
  CHECK(filler.step_sequences() == 2);
  CHECK(filler.step_frames() == 30);
  CHECK(filler.loss_weight() == 0.0);
  const wire::Batch& plain = batch_of(2);
  CHECK(plain.weights() == nullptr);
  CHECK(plain.step_sequences() == 2);
  CHECK(plain.step_frames() == 60);
}
