#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <csignal>
#include <set>
#include <sstream>

#include "client/library/batchwright/client.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/trainer.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr const char* kSemiSorted =
    "slots = 8\n[feed.plan]\norder = \"semi-sorted\"\ncut = \"dynamic\"\nsize = 4\n"
    "shuffle = \"batches\"\nseed = 3\n";

/// Every value of every row, padding included, is what the dataset says.
void check_values(const bw_batch* batch, const std::vector<std::uint32_t>& lengths) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const bw_tensor* features = bw_batch_tensor_named(batch, "features");
  REQUIRE(features != nullptr);
  const auto* values = static_cast<const float*>(features->data);
  const bool time_major = header.layout == BW_TIME_MAJOR;
  for (std::uint64_t row = 0; row < header.sequences; ++row) {
    const std::uint64_t ordinal = header.ordinals[row];
    REQUIRE(header.lengths[row] == lengths[ordinal]);
    CHECK(bw_batch_key(batch, row, nullptr) == "seq-" + std::to_string(ordinal));
    for (std::uint64_t t = 0; t < header.batch_length; ++t) {
      const std::uint64_t frame =
          time_major ? t * header.sequences + row : row * header.batch_length + t;
      for (std::uint64_t d = 0; d < 4; ++d) {
        const float expected = t < lengths[ordinal] ? small_value(ordinal, t, d) : 0.0F;
        REQUIRE(values[frame * 4 + d] == expected);
      }
    }
  }
}

}  // namespace

TEST_CASE("integration: two epochs bring every sequence exactly as it was stored") {
  for (const std::string layout : {"batch-major", "time-major"}) {
    DaemonProcess daemon("layout = \"" + layout + "\"\n" + kSemiSorted);
    REQUIRE(daemon.start());
    Trainer trainer(daemon.endpoint());
    trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 2; });
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::multiset<std::uint64_t> seen;
      trainer.epoch([&](const bw_batch* batch) {
        check_values(batch, daemon.lengths());
        const bw_batch_header& header = *bw_batch_get_header(batch);
        seen.insert(header.ordinals, header.ordinals + header.sequences);
      });
      CHECK(seen.size() == daemon.lengths().size());
      CHECK(std::set<std::uint64_t>(seen.begin(), seen.end()).size() == seen.size());
    }
  }
}

TEST_CASE("integration: tail names the same batches as the plan does") {
  DaemonProcess daemon(kSemiSorted);
  REQUIRE(daemon.start());
  const Finished tail = run({program("batchwright"), "tail", "--feed", "train", "--endpoint",
                             daemon.endpoint(), "--epochs", "2", "--json"});
  REQUIRE_MESSAGE(tail.code == 0, tail.err);
  const Finished plan =
      run({program("batchwright"), "plan", "--dataset", daemon.dataset(), "--order", "semi-sorted",
           "--cut", "dynamic", "--size", "4", "--shuffle", "batches", "--seed", "3", "--epoch", "1",
           "--json", "--batches"});
  REQUIRE_MESSAGE(plan.code == 0, plan.err);
  const auto batches = boost::json::parse(plan.out).at("batch_list").as_array();
  std::istringstream lines(tail.out);
  std::size_t met = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto batch = boost::json::parse(line);
    if (batch.at("epoch").to_number<int>() != 1) continue;
    const auto& rows = batches.at(met++).as_array();
    const auto& keys = batch.at("keys").as_array();
    REQUIRE(rows.size() == keys.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(keys[i].as_string() == "seq-" + std::to_string(rows[i].to_number<std::uint64_t>()));
    }
  }
  CHECK(met == batches.size());
}

TEST_CASE("integration: /stats shows what was really delivered") {
  DaemonProcess daemon(kSemiSorted);
  REQUIRE(daemon.start());
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frames = 0;
  std::uint64_t padded = 0;
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  trainer.epoch([&](const bw_batch* batch) {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    ++batches;
    bytes += header.bytes;
    frames += header.frames;
    padded += std::uint64_t{header.sequences} * header.batch_length;
  });
  CHECK(daemon.counter("batches_delivered") == batches);
  CHECK(daemon.counter("bytes_delivered") == bytes);
  CHECK(daemon.counter("frames_delivered") == frames);
  CHECK(daemon.counter("padded_frames_delivered") == padded);
  CHECK(daemon.counter("sequences_delivered") == daemon.lengths().size());
}

TEST_CASE("integration: four replicas in step cost one assembly each batch") {
  DaemonProcess daemon(kSemiSorted, 200);
  REQUIRE(daemon.start());
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < 4; ++i) {
    trainers.push_back(std::make_unique<Trainer>(daemon.endpoint()));
    trainers.back()->subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  }
  const std::uint64_t steps = trainers[0]->grant().steps;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (const auto& trainer : trainers) CHECK(trainer->next() == BW_OK);
  }
  CHECK(daemon.counter("batches_delivered") == 4 * steps);
  CHECK(daemon.counter("batches_reassembled") == 0);
}

TEST_CASE("integration: a resumed subscription sees exactly the batches that were left") {
  DaemonProcess daemon(kSemiSorted);
  REQUIRE(daemon.start());
  Trainer whole(daemon.endpoint());
  whole.subscribe([](bw_subscribe_options& options) { options.epochs = 2; });
  const auto all = whole.ordinals_until_end();

  Trainer first(daemon.endpoint());
  first.subscribe([](bw_subscribe_options& options) { options.epochs = 2; });
  std::vector<std::vector<std::uint64_t>> seen;
  for (int i = 0; i < 7; ++i) seen.push_back(first.next_ordinals());
  const bw_position position = first.position();

  Trainer second(daemon.endpoint());
  second.subscribe([&](bw_subscribe_options& options) {
    options.epochs = 2;
    options.epoch = position.epoch;
    options.step = position.step;
    options.fingerprint = &position.fingerprint;
  });
  for (auto& rest : second.ordinals_until_end()) seen.push_back(std::move(rest));
  CHECK(seen == all);
}

TEST_CASE("integration: two feeds of one daemon know nothing of each other") {
  DaemonProcess daemon(kSemiSorted);
  daemon.config() += "[[feed]]\nname = \"dev\"\ndataset = \"" + daemon.dataset().string() +
                     "\"\n[feed.plan]\norder = \"sorted\"\nsize = 10\n";
  REQUIRE(daemon.start());
  Trainer train(daemon.endpoint());
  train.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  Trainer dev(daemon.endpoint());
  dev.subscribe([](bw_subscribe_options& options) {
    options.feed = "dev";
    options.epochs = 1;
  });
  CHECK(dev.ordinals_until_end().size() == 6);
  CHECK(train.ordinals_until_end().size() == train.grant().steps);
}

TEST_CASE("integration: a corrupt record stops the feed with its key, or is left out, as told") {
  for (const std::string policy : {"stop", "skip"}) {
    DaemonProcess daemon("on_corrupt = \"" + policy +
                         "\"\n[feed.plan]\norder = \"sorted\"\nsize = 4\n");
    // A byte of the payload of one sequence: the value of its frame 3, dimension 1.
    const float value = small_value(31, 3, 1);
    REQUIRE(flip_byte(daemon.dataset() / "data.mdb", &value, sizeof value));
    REQUIRE(daemon.start());
    Trainer trainer(daemon.endpoint());
    trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
    std::size_t sequences = 0;
    bw_status status = BW_OK;
    while ((status = trainer.next()) == BW_OK) sequences += trainer.last_rows();
    if (policy == "stop") {
      CHECK(status == BW_CORRUPT_RECORD);
      CHECK(std::string(bw_error_message()).find("seq-31") != std::string::npos);
      CHECK(daemon.stats().find("\"failed\"") != std::string::npos);
    } else {
      CHECK(status == BW_END);
      CHECK(sequences == daemon.lengths().size() - 1);
      CHECK(daemon.counter("sequences_skipped") == 1);
      CHECK(daemon.process().err().find("sequence 31 skipped") != std::string::npos);
    }
    CHECK(daemon.process().running());
  }
}

TEST_CASE("integration: a batch of which nothing is left ends the feed, and never comes empty") {
  DaemonProcess daemon("on_corrupt = \"skip\"\n[feed.plan]\norder = \"sorted\"\nsize = 1\n");
  const float value = small_value(31, 3, 1);
  REQUIRE(flip_byte(daemon.dataset() / "data.mdb", &value, sizeof value));
  REQUIRE(daemon.start());
  Trainer trainer(daemon.endpoint());
  trainer.subscribe([](bw_subscribe_options& options) { options.epochs = 1; });
  bw_status status = BW_OK;
  while ((status = trainer.next()) == BW_OK) CHECK(trainer.last_rows() == 1);
  CHECK(status == BW_CORRUPT_RECORD);
  CHECK(std::string(bw_error_message()).find("all 1 rows are corrupt") != std::string::npos);
}
