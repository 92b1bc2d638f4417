#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "tests/integration/daemon_process.h"
#include "tests/integration/seen.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace json = boost::json;

constexpr std::uint64_t kOfA = 40;
constexpr std::uint64_t kOfB = 12;

/// A feed over two datasets of 40 and 12 sequences, whose ordinals count on from one to the other.
class MixedFeed {
 public:
  explicit MixedFeed(const std::string& weights, const std::string& plan = "")
      : daemon_("[feed.plan]\nsize = 5\nseed = 11\nmix_weights = " + weights + "\n" + plan, 0) {
    make_small_dataset(a(), mixed_lengths(kOfA, 50));
    make_small_dataset(b(), mixed_lengths(kOfB, 30), kOfA);
    std::string& config = daemon_.config();
    const std::string one = "\"" + daemon_.dataset().string() + "\"";
    config.replace(config.find(one), one.size(),
                   "[\"" + a().string() + "\", \"" + b().string() + "\"]");
  }

  std::filesystem::path a() const { return daemon_.folder() / "a"; }
  std::filesystem::path b() const { return daemon_.folder() / "b"; }
  DaemonProcess& daemon() { return daemon_; }

 private:
  DaemonProcess daemon_;
};

/// How often an epoch uses each of the 52 sequences.
std::vector<std::uint64_t> uses(const std::vector<SeenBatch>& batches, std::uint64_t epoch) {
  std::vector<std::uint64_t> times(kOfA + kOfB);
  for (const SeenBatch& batch : batches) {
    if (batch.epoch != epoch) continue;
    for (const SeenRow& row : batch.rows) ++times.at(row.ordinal);
  }
  return times;
}

/// Least, most and sum of the uses of one dataset's sequences.
struct Uses {
  std::uint64_t least, most, all;
  friend bool operator==(const Uses&, const Uses&) = default;
};

Uses uses_of(const std::vector<std::uint64_t>& times, std::uint64_t begin, std::uint64_t end) {
  Uses uses{~std::uint64_t{0}, 0, 0};
  for (std::uint64_t i = begin; i < end; ++i) {
    uses.least = std::min(uses.least, times[i]);
    uses.most = std::max(uses.most, times[i]);
    uses.all += times[i];
  }
  return uses;
}

/// What each of two epochs uses of A and of B.
void check_uses(const std::vector<SeenBatch>& batches, const Uses& of_a, const Uses& of_b) {
  for (const std::uint64_t epoch : {0U, 1U}) {
    const auto times = uses(batches, epoch);
    CHECK(uses_of(times, 0, kOfA) == of_a);
    CHECK(uses_of(times, kOfA, kOfA + kOfB) == of_b);
  }
}

/// Keys and frames are those of the dataset that the ordinal lies in.
void check_rows(const bw_batch* batch) {
  const bw_batch_header& header = *bw_batch_get_header(batch);
  const auto* values = static_cast<const float*>(bw_batch_tensor_named(batch, "features")->data);
  for (std::uint64_t row = 0; row < header.sequences; ++row) {
    const std::uint64_t ordinal = header.ordinals[row];
    CHECK(bw_batch_key(batch, row, nullptr) == "seq-" + std::to_string(ordinal));
    const std::uint64_t end = header.lengths[row] - 1;
    CHECK(values[(row * header.batch_length + end) * 4 + 3] == small_value(ordinal, end, 3));
  }
}

}  // namespace

TEST_CASE("integration: mixed datasets have the shares of their weights, and wrap or end as told") {
  SUBCASE("wrap: until the last is used up, others start again") {
    MixedFeed feed("[1, 1]");
    REQUIRE(feed.daemon().start());
    const auto batches = take(feed.daemon().endpoint(), {.epochs = 2}, check_rows);
    check_uses(batches, {1, 1, 40}, {3, 4, 40});
    CHECK(uses(batches, 0) != uses(batches, 1));
  }
  SUBCASE("end: with the first that is used up") {
    MixedFeed feed("[1, 1]", "mix_exhausted = \"end\"\n");
    REQUIRE(feed.daemon().start());
    const auto batches = take(feed.daemon().endpoint(), {.epochs = 2}, check_rows);
    check_uses(batches, {0, 1, 12}, {1, 1, 12});
    CHECK(uses(batches, 0) != uses(batches, 1));
  }
  SUBCASE("weights that are no whole numbers") {
    MixedFeed feed("[2.5, 0.5]");
    REQUIRE(feed.daemon().start());
    check_uses(take(feed.daemon().endpoint(), {.epochs = 2}), {1, 2, 60}, {1, 1, 12});
  }
}

TEST_CASE("integration: a mixed feed is the same in every run, and chunks come along") {
  std::vector<std::vector<SeenBatch>> runs;
  for (int run = 0; run < 2; ++run) {
    MixedFeed feed("[1, 3]", "chunk = 16\n");
    REQUIRE(feed.daemon().start());
    runs.push_back(take(feed.daemon().endpoint(), {.epochs = 2}));
  }
  CHECK(runs[0] == runs[1]);
  // Every chunk of a sequence comes as often as the sequence is used: 40 : 120 sequences.
  std::uint64_t of_a = 0;
  std::uint64_t of_b = 0;
  for (const SeenBatch& batch : runs[0]) {
    for (const SeenRow& row : batch.rows) (row.ordinal < kOfA ? of_a : of_b) += row.reset;
  }
  CHECK(of_a == 2 * 40);
  CHECK(of_b == 2 * 120);
}

TEST_CASE("integration: plan and daemon name the same batches of mixed datasets") {
  for (const std::string exhausted : {"wrap", "end"}) {
    MixedFeed feed("[1, 3]", "mix_exhausted = \"" + exhausted + "\"\n");
    REQUIRE(feed.daemon().start());
    const Finished tail =
        run({program("batchwright"), "tail", "--feed", "train", "--endpoint",
             feed.daemon().endpoint(), "--epoch", "1", "--epochs", "1", "--json"});
    REQUIRE_MESSAGE(tail.code == 0, tail.err);
    const Finished plan =
        run({program("batchwright"), "plan", "--dataset", feed.a(), "--dataset", feed.b(),
             "--mix-weights", "1,3", "--mix-exhausted", exhausted, "--size", "5", "--seed", "11",
             "--epoch", "1", "--json", "--batches"});
    REQUIRE_MESSAGE(plan.code == 0, plan.err);
    json::array served;
    std::istringstream lines(tail.out);
    for (std::string line; std::getline(lines, line);) {
      served.push_back(json::parse(line).at("ordinals"));
    }
    CHECK(json::serialize(served) == json::serialize(json::parse(plan.out).at("batch_list")));
  }
}

TEST_CASE("integration: a feed whose weights are not one a dataset is not served, and says why") {
  const auto refusal = [](MixedFeed feed) {
    REQUIRE(feed.daemon().start());
    return feed.daemon().process().err();
  };
  const std::string three = refusal(MixedFeed("[1, 2, 3]"));
  const std::string line = "feed train: not served; the daemon keeps trying: mix_weights has ";
  CHECK_MESSAGE(three.find(line + "3 weights for 2 datasets") != std::string::npos, three);
  const std::string one = refusal(MixedFeed("[1]"));
  CHECK_MESSAGE(one.find(line + "1 weights for 2 datasets") != std::string::npos, one);
}

TEST_CASE("integration: a mixed feed resumed in its second epoch goes on exactly") {
  MixedFeed feed("[1, 1]", "mix_exhausted = \"end\"\norder = \"semi-sorted\"\n");
  REQUIRE(feed.daemon().start());
  const auto all = take(feed.daemon().endpoint(), {.epochs = 3});
  const auto from = std::find_if(all.begin(), all.end(), [](const SeenBatch& batch) {
    return batch.epoch == 1 && batch.step == 2;
  });
  REQUIRE(from != all.end());
  CHECK(take(feed.daemon().endpoint(), {.epochs = 2, .epoch = 1, .step = 2}) ==
        std::vector(from, all.end()));
}
