#include <doctest/doctest.h>

#include "tests/assembly/snapshot.h"

using namespace batchwright;

namespace {

const BatchStyle kTrain{"train", Layout::batch_major, {}, OnCorrupt::stop};

std::shared_ptr<MadeUpSnapshot> dataset(std::size_t sequences, std::uint32_t longest) {
  std::vector<std::uint32_t> lengths(sequences);
  std::vector<std::uint32_t> tokens(sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    lengths[i] = 1 + static_cast<std::uint32_t>(i * 7919 % longest);
    tokens[i] = static_cast<std::uint32_t>(i * 31 % 40);
  }
  return std::make_shared<MadeUpSnapshot>(all_kinds(), std::move(lengths), std::move(tokens));
}

}  // namespace

TEST_CASE("assembly: the slot's size holds every batch of the plan, and not much more") {
  const auto snapshot = dataset(300, 120);
  for (const Cut cut : {Cut::fixed, Cut::dynamic}) {
    PlanSettings settings = in_order(8);
    settings.cut = cut;
    const auto bound = plan_bound(snapshot->lengths(), settings);
    REQUIRE(bound);
    const auto bytes = slot_bytes_for(*snapshot, kTrain, *bound);
    REQUIRE(bytes);
    const auto source = plan_of(snapshot, settings);
    const TestSlot slot(*bytes);
    for (std::uint64_t i = 0; i < source->plan.batches(); ++i) {
      CHECK(assemble_batch(*source, kTrain, BatchIndex{i}, slot.bytes()));
    }
    const std::size_t frames = bound->padded_frames * (12 + 2);
    CHECK(*bytes < frames + bound->rows * (39 * 4 + 8 + 8 + 60) + 4096);
  }
}

TEST_CASE("assembly: a feed whose batches pass the format's limit is refused with the figures") {
  const auto snapshot = dataset(10, 100);
  const auto bytes = slot_bytes_for(*snapshot, kTrain, {100, std::uint64_t{1} << 30});
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().code == ErrorCode::does_not_fit);
  CHECK(bytes.error().message.find("1073741824 padded frames") != std::string::npos);
  CHECK(bytes.error().message.find("feed \"train\" would take 1503") != std::string::npos);
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK_FALSE(slot_bytes_for(*snapshot, kTrain, {most, 1}));
  CHECK_FALSE(slot_bytes_for(*snapshot, kTrain, {1, most}));
}
