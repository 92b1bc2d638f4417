#include "daemon/delivery/feed/growth.h"

#include <doctest/doctest.h>

#include "tests/support/small_dataset.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

/// A feed with `follow` over shards that grow. A sequence of more than 100 frames does not fit.
class Growing {
 public:
  explicit Growing(std::size_t shards = 1) : counts_(shards) {
    for (std::size_t i = 0; i < shards; ++i) paths_.push_back(folder_ / std::to_string(i));
    settings_.name = "train";
    settings_.follow = true;
    settings_.slots = 2;
    settings_.plan.cut = Cut::frames;
    settings_.plan.max_frames = 100;
  }

  FeedSettings& settings() { return settings_; }

  /// One commit.
  void append(const std::vector<std::uint32_t>& lengths, std::size_t shard = 0) {
    make_small_dataset(paths_[shard], lengths, counts_[shard]);
    counts_[shard] += lengths.size();
  }

  Result<FittingData> find(std::uint64_t memory = kPlenty) {
    auto dataset = catalog_.open(paths_, VerifyRecords::never, Locking::on);
    if (!dataset) return dataset.error();
    asked_ = 0;
    return find_fitting_data(**dataset, settings_, catalog_, [this, memory](std::uint64_t) {
      ++asked_;
      return memory;
    });
  }
  /// The sequences of each shard that are served.
  std::vector<std::uint64_t> served(std::uint64_t memory = kPlenty) {
    const auto found = find(memory);
    if (!found) return {};
    const auto counts = found->first.source->snapshot->shard_sequences();
    return {counts.begin(), counts.end()};
  }
  int asked() const { return asked_; }

 private:
  TemporaryFolder folder_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::uint64_t> counts_;
  FeedSettings settings_;
  Catalog catalog_;
  int asked_ = 0;
};

using Counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("delivery: a feed begins with the last commit that it can serve, wherever that lies") {
  for (int good = 1; good <= 6; ++good) {
    for (int bad = 0; bad <= 6; ++bad) {
      Growing growing;
      for (int i = 0; i < good; ++i) growing.append({40, 50});
      if (bad > 0) growing.append({101});
      for (int i = 1; i < bad; ++i) growing.append({30});
      const auto found = growing.find();
      REQUIRE(found);
      CHECK(found->first.source->snapshot->sequences() == 2 * static_cast<std::uint64_t>(good));
      CHECK(found->why_not_newer.empty() == (bad == 0));
      CHECK(growing.asked() == 1);
    }
  }
}

TEST_CASE("delivery: why the newest commit is left out is said") {
  Growing growing;
  growing.append({40, 50});
  growing.append({300});
  const auto found = growing.find();
  REQUIRE(found);
  CHECK(found->why_not_newer ==
        "1 of 3 sequences exceed max_frames = 100, the longest with 300 frames; "
        "max_length = 100 would leave them out");
}

TEST_CASE("delivery: a commit that needs more memory than is left is left out, too") {
  Growing growing;
  growing.settings().plan.cut = Cut::fixed;
  growing.settings().plan.max_frames = 0;
  growing.settings().plan.size = 1;
  growing.append({10, 20});
  const std::uint64_t enough = growing.find()->needs.arena_bytes();
  growing.append({20'000});
  CHECK(growing.served() == Counts{3});
  CHECK(growing.served(enough) == Counts{2});
  // None fits: the newest says why.
  CHECK(growing.find(enough - 1).error().message.starts_with("its arena needs 0.6"));
}

TEST_CASE("delivery: of several shards those alone go back whose sequences do not fit") {
  Growing growing(3);
  for (std::size_t shard = 0; shard < 3; ++shard) growing.append({10, 20}, shard);
  growing.append({30}, 0);
  growing.append({200}, 1);
  growing.append({30}, 2);
  CHECK(growing.served() == Counts{3, 2, 3});
  growing.append({200}, 2);
  CHECK(growing.served() == Counts{3, 2, 3});
}

TEST_CASE("delivery: a feed that does not follow has the newest data or none") {
  Growing growing;
  growing.settings().follow = false;
  growing.append({40, 50});
  CHECK(growing.served() == Counts{2});
  growing.append({101});
  CHECK(growing.find().error().code == ErrorCode::infeasible);
}

TEST_CASE("delivery: what no commit can be served with has one reason") {
  Growing growing;
  growing.settings().plan.world = 8;
  for (int i = 0; i < 5; ++i) growing.append({40, 50});
  const auto found = growing.find();
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::infeasible);
}
