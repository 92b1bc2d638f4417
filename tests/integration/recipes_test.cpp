#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <map>
#include <set>

#include "daemon/config/config.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"
#include "tests/storage/recipe/sound_dataset.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kSeed = 4;

std::string every_step(const std::filesystem::path& folder) {
  return R"([feed.features]
like = "kaldi"
options = { mel_bands = 23 }
sample_rate = 16000
speeds = [0.9, 1.0, 1.1]
dither = 1
aligned = ["labels"]
cmvn = "utterance"
spec_augment = true
time_width = 10
deltas = 1
stack = 4
stride = 3
label_delay = 5
[[feed.style]]
noise = [")" +
         (folder / "noise").string() + R"("]
rooms = [")" +
         (folder / "rooms").string() + R"("]
telephone_probability = 0.5
gain_db = [-6, 6]
[[feed.style]]
weight = 0.5
)";
}

/// A feed whose rows are made of 40 sounds of two rates.
struct MadeFeed {
  explicit MadeFeed(const std::string& plan, const std::string& feed = "")
      : daemon(feed + "\n[feed.plan]\nseed = 4\n" + plan, 0) {
    std::vector<MadeSound> sounds;
    for (std::uint32_t i = 0; i < 40; ++i) sounds.push_back(sound(i));
    make_sound_dataset(daemon.dataset(), sounds);
    make_sound_dataset(daemon.folder() / "noise", {{3000}, {90'000}});
    make_sound_dataset(daemon.folder() / "rooms", {{800}});
    daemon.config() += every_step(daemon.folder());
    const auto config = parse_config(daemon.config(), "config.toml");
    REQUIRE_MESSAGE(config, config.error().message);
    rows =
        std::make_unique<OpenedRecipe>(daemon.dataset(), config->feeds[0].served.features, kSeed);
  }

  static MadeSound sound(std::uint32_t ordinal) {
    const std::uint32_t rate = ordinal % 5 == 0 ? 8'000 : 16'000;
    const std::size_t samples = 100 + ordinal * 7919 % 9000;
    const std::uint64_t there = samples * 16'000 / rate;
    const auto frames = static_cast<std::uint32_t>(there < 400 ? 0 : (there - 400) / 160 + 1);
    return {samples, rate, frames, 0};
  }

  /// Checks each row of a batch, and what comes after it, against one that is made here.
  void check(const bw_batch* batch) const {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    std::uint64_t real = 0;
    RowMaker maker;
    for (std::size_t r = 0; r < header.sequences; ++r) {
      if (header.lengths[r] == 0) continue;
      const auto made = rows->make(maker, header.ordinals[r], header.epoch);
      const std::uint32_t start = header.starts == nullptr ? 0 : header.starts[r];
      for (std::size_t f = 0; f < made.size(); ++f) {
        if (rows->recipe->makes(f)) check_row(batch, r, f, start, made[f]);
      }
      real += rows->recipe->real_frames(start, header.lengths[r]);
    }
    CHECK(header.step_frames == real);
  }

  void check_row(const bw_batch* batch, std::size_t row, std::size_t field, std::uint32_t start,
                 const MadeField& made) const {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    const FieldSpec& spec = rows->recipe->schema().fields[field];
    const bw_tensor* tensor = bw_batch_tensor_named(batch, spec.name.c_str());
    REQUIRE(tensor != nullptr);
    const std::size_t width = frame_bytes(spec);
    const auto* bytes = static_cast<const std::byte*>(tensor->data);
    REQUIRE(start + header.lengths[row] <= made.length);
    if (header.starts == nullptr) CHECK(header.lengths[row] == made.length);
    for (std::uint32_t t = 0; t < header.batch_length; ++t) {
      const std::byte* const there = bytes + (row * header.batch_length + t) * width;
      if (t < header.lengths[row]) {
        REQUIRE(std::equal(there, there + width, made.bytes.data() + (start + t) * width));
      } else {
        REQUIRE(std::all_of(there, there + width, [](std::byte b) { return b == std::byte{}; }));
      }
    }
  }

  Look look() const {
    return [this](const bw_batch* batch) { check(batch); };
  }

  DaemonProcess daemon;
  std::unique_ptr<OpenedRecipe> rows;
};

/// The lengths that rows had, by ordinal, in one epoch.
std::map<std::uint64_t, std::uint32_t> lengths_of(const std::vector<SeenBatch>& batches,
                                                  std::uint64_t epoch) {
  std::map<std::uint64_t, std::uint32_t> lengths;
  for (const SeenBatch& batch : batches) {
    for (const SeenRow& row : batch.rows) {
      if (batch.epoch == epoch) lengths[row.ordinal] = row.length;
    }
  }
  return lengths;
}

}  // namespace

TEST_CASE("integration: a recipe's rows arrive bit for bit, each epoch with its own lengths") {
  MadeFeed feed("order = \"semi-sorted\"\ncut = \"frames\"\nmax_frames = 200\n");
  REQUIRE(feed.daemon.start());
  const auto batches = take(feed.daemon.endpoint(), {.epochs = 3}, feed.look());
  std::set<std::map<std::uint64_t, std::uint32_t>> different;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto lengths = feed.rows->recipe->lengths(*feed.rows->snapshot, Epoch{epoch});
    REQUIRE(lengths);
    std::map<std::uint64_t, std::uint32_t> wanted;
    for (std::uint64_t i = 0; i < (*lengths)->size(); ++i) {
      if ((**lengths)[i] > 0) wanted[i] = (**lengths)[i];
    }
    // What is too short for a frame is left out, and nothing else.
    CHECK(lengths_of(batches, epoch) == wanted);
    different.insert(wanted);
  }
  CHECK(different.size() == 3);
}

TEST_CASE("integration: chunks and lanes of made rows have the frames that the whole has there") {
  for (const std::string plan :
       {"size = 6\nchunk = 7\nhop = 3\n", "lanes = 6\nunroll = 4\norder = \"random\"\n"}) {
    MadeFeed feed(plan);
    REQUIRE(feed.daemon.start());
    take(feed.daemon.endpoint(), {.epochs = 2}, feed.look());
  }
}

TEST_CASE("integration: a killed daemon goes on with the rows that it would have made") {
  MadeFeed feed("order = \"semi-sorted\"\nsize = 6\ncut = \"dynamic\"\nshuffle = \"batches\"\n");
  REQUIRE(feed.daemon.start());
  const auto whole = take(feed.daemon.endpoint(), {.epochs = 2}, feed.look());
  Trainer trainer(feed.daemon.endpoint());
  subscribe(trainer, {.epochs = 2});
  std::vector<SeenBatch> batches;
  while (trainer.next() == BW_OK) {
    feed.check(trainer.batch());
    batches.push_back(seen(trainer.batch()));
    if (batches.size() % 4 == 0 && batches.size() <= 12) {
      feed.daemon.process().signal(SIGKILL);
      feed.daemon.process().wait(20);
      REQUIRE(feed.daemon.start());
    }
  }
  // A batch that was held at the death comes once more, or not at all.
  for (const SeenBatch& batch : whole) {
    CHECK(std::find(batches.begin(), batches.end(), batch) != batches.end());
  }
}

TEST_CASE("integration: pages say where the time of a recipe goes") {
  MadeFeed feed("size = 6\n");
  REQUIRE(feed.daemon.start());
  take(feed.daemon.endpoint(), {.epochs = 1});
  const auto page = boost::json::parse(feed.daemon.stats_now()).at("feeds").at(0);
  const auto& making = page.at("making");
  for (const auto& step : making.at("steps").as_object()) {
    CHECK_MESSAGE(step.value().to_number<double>() > 0.0, std::string(step.key()));
  }
  CHECK(making.at("steps").as_object().size() == 7);
  CHECK(making.at("real_time_factor").to_number<double>() > 0.0);
  CHECK(making.at("sound_seconds").to_number<double>() > 1.0);
  CHECK(page.at("counters").at("noise_left_out").to_number<int>() == 0);
  const std::string metrics = feed.daemon.page("/metrics");
  CHECK(metrics.find("batchwright_make_seconds_total{feed=\"train\",step=\"features\"} ") !=
        std::string::npos);
  CHECK(metrics.find("batchwright_sound_seconds_total{feed=\"train\"} ") != std::string::npos);
}

TEST_CASE("integration: another recipe is another fingerprint, and the difference is named") {
  MadeFeed feed("size = 6\n");
  REQUIRE(feed.daemon.start());
  Trainer trainer(feed.daemon.endpoint());
  subscribe(trainer, {.epochs = 2});
  REQUIRE(trainer.next() == BW_OK);
  std::string& config = feed.daemon.config();
  config.replace(config.find("time_width = 10"), 15, "time_width = 11");
  REQUIRE(feed.daemon.reload());
  bw_status status = BW_OK;
  while (status == BW_OK || status == BW_EPOCH_END) status = trainer.step();
  CHECK(status == BW_FINGERPRINT_MISMATCH);
  CHECK(std::string(bw_error_message()).find("features.time_width") != std::string::npos);
}

TEST_CASE(
    "integration: a run of the first draws is told what continues it, and goes on with that") {
  const std::string line = "draws = 1 under [feed.features] continues this run";
  MadeFeed feed("size = 6\n");
  const std::string second = feed.daemon.config();
  std::string first = second;
  first.insert(first.find("dither = 1\n"), "draws = 1\n");
  feed.daemon.config() = first;
  REQUIRE(feed.daemon.start());
  Trainer trainer(feed.daemon.endpoint());
  subscribe(trainer, {.epochs = 2});
  REQUIRE(trainer.next() == BW_OK);
  const bw_position position = trainer.position();
  const std::string terms = trainer.terms();
  CHECK(terms.find("features.draws") == std::string::npos);
  // Goes on from there; why not, where it is refused.
  const auto refusal = [&](const std::string& had) -> std::string {
    Trainer again(feed.daemon.endpoint());
    try {
      again.subscribe([&](bw_subscribe_options& options) {
        options.epoch = position.epoch;
        options.step = position.step;
        options.fingerprint = &position.fingerprint;
        if (!had.empty()) options.terms = had.c_str();
      });
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return again.next() == BW_OK ? "" : "no batch";
  };
  feed.daemon.config() = second;
  REQUIRE(feed.daemon.reload());
  // A checkpoint with terms, and an older one without.
  CHECK(refusal(terms).find(line) != std::string::npos);
  CHECK(refusal("").find(line) != std::string::npos);
  feed.daemon.config() = first;
  REQUIRE(feed.daemon.reload());
  CHECK(refusal(terms).empty());
  CHECK(refusal("").empty());
}

TEST_CASE("integration: a journal of the first draws is refused, and told what continues it") {
  const std::string line = "draws = 1 under [feed.features] continues this run";
  MadeFeed feed("size = 6\n");
  std::string second = feed.daemon.config();
  second.insert(second.find("[feed.plan]"),
                "journal = \"" + (feed.daemon.folder() / "journal").string() + "\"\n");
  std::string first = second;
  first.insert(first.find("dither = 1\n"), "draws = 1\n");
  const auto is_told = [&](const std::string& config) {
    feed.daemon.config() = config;
    feed.daemon.launch();
    eventually([&] {
      const std::string log = feed.daemon.process().err();
      return !feed.daemon.process().running() || log.find("ready: ") != std::string::npos ||
             log.find(line) != std::string::npos;
    });
    feed.daemon.process().signal(SIGTERM);
    feed.daemon.process().wait(20);
    return feed.daemon.process().err().find(line) != std::string::npos;
  };
  CHECK_FALSE(is_told(first));
  CHECK(is_told(second));
  CHECK_FALSE(is_told(first));
}

TEST_CASE("integration: a sequence that an epoch has again is augmented again") {
  MadeFeed feed("size = 3\nworld = 16\nremainder = \"wrap\"\n");
  REQUIRE(feed.daemon.start());
  std::map<std::uint64_t, std::set<std::string>> rows;
  std::size_t all = 0;
  take(feed.daemon.endpoint(), {.epochs = 1}, [&](const bw_batch* batch) {
    const bw_batch_header& header = *bw_batch_get_header(batch);
    const bw_tensor* tensor = bw_batch_tensor_named(batch, "features");
    const std::size_t width = 23 * 2 * 4 * sizeof(float) * header.batch_length;
    for (std::size_t r = 0; r < header.sequences; ++r) {
      const auto* const begin = static_cast<const char*>(tensor->data) + r * width;
      const std::string row(begin, width / header.batch_length * header.lengths[r]);
      // One frame is its own mean, which CMVN takes away, whatever was drawn.
      if (MadeFeed::sound(static_cast<std::uint32_t>(header.ordinals[r])).labels == 1) {
        CHECK(row == std::string(row.size(), '\0'));
        continue;
      }
      rows[header.ordinals[r]].insert(row);
      ++all;
    }
  });
  std::size_t different = 0;
  for (const auto& [ordinal, made] : rows) different += made.size();
  CHECK(all > rows.size());
  CHECK(different == all);
}

TEST_CASE("integration: chunks in random order make no row twice where row_cache has room") {
  const auto sound_seconds = [](const std::string& cache) {
    MadeFeed feed("order = \"random\"\nsize = 6\nchunk = 3\n", "row_cache = \"" + cache + "\"\n");
    REQUIRE(feed.daemon.start());
    take(feed.daemon.endpoint(), {.epochs = 1}, feed.look());
    const auto page = boost::json::parse(feed.daemon.stats_now());
    const auto& train = page.at("feeds").at(0);
    CHECK(train.at("making_bytes").to_number<std::uint64_t>() > 0);
    CHECK(feed.daemon.process().err().find("beside its arena to make its rows") !=
          std::string::npos);
    return train.at("making").at("sound_seconds").to_number<double>();
  };
  double all = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const double seconds = (100 + i * 7919 % 9000) / (i % 5 == 0 ? 8'000.0 : 16'000.0);
    all += seconds > 0.025 ? seconds : 0;
  }
  CHECK(sound_seconds("1MiB") < 1.02 * all);
  CHECK(sound_seconds("0B") > 2 * all);
}

TEST_CASE("integration: what making rows takes counts under memory") {
  MadeFeed feed("size = 6\n");
  std::string& config = feed.daemon.config();
  config.replace(config.find("256MiB"), 6, "1MiB");
  config.insert(config.find("dataset = "), "slots = 16\n");
  feed.daemon.launch();
  const std::string why = "making its rows";
  eventually([&] {
    return !feed.daemon.process().running() ||
           feed.daemon.process().err().find(why) != std::string::npos;
  });
  CHECK(feed.daemon.process().err().find(why) != std::string::npos);
}

TEST_CASE("integration: noise that is not there keeps a feed away, and so does a wrong recipe") {
  MadeFeed feed("size = 6\n");
  const std::string sound = feed.daemon.config();
  feed.daemon.config() += "\n[[feed.style]]\nnoise = [\"/no/such/noise\"]\n";
  REQUIRE(feed.daemon.start());
  CHECK(feed.daemon.process().err().find("/no/such/noise") != std::string::npos);
  feed.daemon.process().signal(SIGTERM);
  feed.daemon.process().wait(20);
  feed.daemon.config() = sound;
  const std::string aligned = "aligned = [\"labels\"]";
  feed.daemon.config().replace(sound.find(aligned), aligned.size(), "aligned = [\"label\"]");
  REQUIRE(feed.daemon.start());
  CHECK(feed.daemon.process().err().find("feed train: not served; the daemon keeps trying: "
                                         "features: aligned: ") != std::string::npos);
}
