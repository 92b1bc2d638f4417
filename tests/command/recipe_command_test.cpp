#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/storage/recipe/sound_dataset.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;
namespace json = boost::json;

namespace {

/// A configuration with a feed over 30 sounds.
struct Configured {
  explicit Configured(const std::string& recipe) {
    std::vector<MadeSound> sounds;
    for (std::int32_t i = 0; i < 30; ++i) {
      sounds.push_back({300 + static_cast<std::size_t>(i) * 7919 % 9000, 16'000, 0, i % 3});
    }
    make_sound_dataset(folder / "s", sounds);
    std::ofstream(config()) << "[[feed]]\nname = \"train\"\ndataset = \"" << (folder / "s").string()
                            << "\"\n[feed.plan]\nsize = 4\nseed = 7\n[feed.features]\n"
                            << "like = \"kaldi\"\n"
                            << recipe;
  }

  std::string config() const { return (folder / "config.toml").string(); }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("command: plan --feed-config has the lengths of the epoch that it plans") {
  const Configured configured("speeds = [0.9, 1.0, 1.1]\n");
  RecipeSettings settings;
  settings.like = "kaldi";
  for (const double factor : {0.9, 1.0, 1.1}) settings.speeds.push_back(*parse_speed(factor));
  const OpenedRecipe opened(configured.folder / "s", settings);
  for (const std::uint64_t epoch : {0U, 1U, 2U}) {
    const Finished done = run({program("batchwright"), "plan", "--feed-config", configured.config(),
                               "--feed", "train", "--epoch", std::to_string(epoch), "--json"});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    const auto lengths = opened.recipe->lengths(*opened.snapshot, Epoch{epoch});
    REQUIRE(lengths);
    std::uint64_t frames = 0;
    std::uint64_t left_out = 0;
    for (const std::uint32_t length : **lengths) {
      frames += length;
      left_out += length == 0 ? 1 : 0;
    }
    const json::value report = json::parse(done.out);
    CHECK(report.at("frames").to_number<std::uint64_t>() == frames);
    CHECK(report.at("left_out").to_number<std::uint64_t>() == left_out);
    CHECK(left_out > 0);
  }
}

TEST_CASE("command: plan --feed-config says which feeds there are, and goes with no other data") {
  const Configured configured("");
  const auto refused = [&](std::vector<std::string> words) {
    std::vector<std::string> all = {program("batchwright"), "plan", "--feed-config",
                                    configured.config()};
    all.insert(all.end(), words.begin(), words.end());
    const Finished done = run(all);
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK(refused({"--feed", "trian"}).find("no feed \"trian\"; allowed with --feed: train") !=
        std::string::npos);
  CHECK(refused({"--dataset", "/x"}).find("excludes") != std::string::npos);
}

TEST_CASE("command: plan --feed-config of a live feed says that there is nothing to plan") {
  const TemporaryFolder folder;
  const std::string file = (folder / "live.toml").string();
  std::ofstream(file) << "[[feed]]\nname = \"rollouts\"\nfields = { z = { dtype = \"int32\" } }\n"
                         "[feed.live]\nmax_length = 9\n";
  const Finished done = run({program("batchwright"), "plan", "--feed-config", file});
  CHECK(done.code == 2);
  CHECK(done.err.find("live.toml: feed rollouts is live; allowed: one with a dataset") !=
        std::string::npos);
}

TEST_CASE("command: cmvn writes what a feed with cmvn reads") {
  const Configured configured(
      "cmvn = \"speaker\"\ncmvn_speaker = \"speaker\"\n"
      "cmvn_statistics = \"no-such-file\"\nspeeds = [0.9, 1.1]\n");
  const std::string file = (configured.folder / "train.cmvn").string();
  const auto gather = [&](const std::string& threads) {
    const Finished done = run({program("batchwright"), "cmvn", "--feed-config", configured.config(),
                               "--by", "speaker", "--into", file, "--threads", threads, "--json"});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    const json::value report = json::parse(done.out);
    CHECK(report.at("speakers").to_number<int>() == 3);
    CHECK(report.at("dimensions").to_number<int>() == 80);
    auto read = read_statistics(file);
    REQUIRE_MESSAGE(read, read.error().message);
    return *std::move(read);
  };
  const CmvnStatistics one = gather("1");
  // Threads make no difference, not to a bit.
  CHECK(content_of(gather("3")) == content_of(one));
  RecipeSettings settings;
  settings.like = "kaldi";
  const OpenedRecipe plain(configured.folder / "s", settings);
  CmvnSums wanted(80);
  for (std::uint64_t i = 0; i < 30; ++i) wanted.add(plain.features(i));
  CHECK(one.all.frames == wanted.frames);
  for (std::size_t d = 0; d < 80; ++d) {
    CHECK(one.all.sums[d] == doctest::Approx(wanted.sums[d]).epsilon(1e-12));
    CHECK(one.all.squares[d] == doctest::Approx(wanted.squares[d]).epsilon(1e-12));
  }
  settings.cmvn = true;
  settings.normalise.options.kind = CmvnKind::speaker;
  settings.normalise.speaker = "speaker";
  settings.normalise.statistics = file;
  const OpenedRecipe normalised(configured.folder / "s", settings);
  CHECK(normalised.features(1).size() == plain.features(1).size());
}

TEST_CASE("command: cmvn of a dataset and a front end is that of a feed that has them") {
  const Configured configured("options = { snip_edges = false }\n");
  const std::string dataset = (configured.folder / "s").string();
  const auto gathered = [&](std::vector<std::string> words) {
    const std::string file = (configured.folder / "sums").string();
    words.insert(words.begin(), {program("batchwright"), "cmvn", "--into", file});
    const Finished done = run(words);
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return content_of(*read_statistics(file));
  };
  const auto of_feed = gathered({"--feed-config", configured.config()});
  CHECK(of_feed == gathered({dataset, "--like", "kaldi", "--option", "snip_edges=false"}));
  CHECK(of_feed != gathered({dataset, "--like", "kaldi"}));
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {program("batchwright"), "cmvn", "--into", "/dev/null"});
    const Finished done = run(words);
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK(refusal({}).find("DATASET or --feed-config is required") != std::string::npos);
  CHECK(refusal({dataset}).find("sound") != std::string::npos);
  CHECK(refusal({dataset, "--feed-config", configured.config()}).find("excludes") !=
        std::string::npos);
  CHECK(refusal({dataset, "--like", "kaldi", "--option", "snip=1"}).find("snip_edges") !=
        std::string::npos);
}

TEST_CASE("command: cmvn refuses what has no frames or no such field") {
  const Configured configured("");
  const auto refused = [&](const std::string& by) {
    const Finished done = run({program("batchwright"), "cmvn", "--feed-config", configured.config(),
                               "--by", by, "--into", "/dev/null"});
    CHECK(done.code == 2);
    return done.err;
  };
  CHECK(refused("no-such-field").find("cmvn_speaker: ") != std::string::npos);
  CHECK(refused("audio").find("allowed: a scalar field of one whole number") != std::string::npos);
}

TEST_CASE("command: plan says what row cache makes no row twice, where rows are made in parts") {
  const auto planned = [](const std::string& plan) {
    const Configured configured("");
    std::ofstream(configured.config())
        << "[[feed]]\nname = \"train\"\nrow_cache = \"1MiB\"\ndataset = \""
        << (configured.folder / "s").string() << "\"\n[feed.plan]\n"
        << plan << "[feed.features]\nlike = \"kaldi\"\n";
    const Finished done =
        run({program("batchwright"), "plan", "--feed-config", configured.config(), "--json"});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return json::parse(done.out).as_object();
  };
  CHECK_FALSE(planned("size = 4\n").contains("row_cache_needed_bytes"));
  const json::object lanes = planned("lanes = 2\nunroll = 5\n");
  const json::object chunks = planned("chunk = 5\nsize = 4\norder = \"random\"\n");
  CHECK(lanes.at("row_cache_bytes").to_number<std::uint64_t>() == 1 << 20);
  // Two lanes keep two rows of at most 56 frames; chunks in random order most of all rows.
  const auto few = lanes.at("row_cache_needed_bytes").to_number<std::uint64_t>();
  const auto many = chunks.at("row_cache_needed_bytes").to_number<std::uint64_t>();
  CHECK(few > 30 * 80 * 4);
  CHECK(few < 2 * 60 * 80 * 4 + 30 * 16);
  CHECK(many > 4 * few);
}
