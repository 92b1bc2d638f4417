#include "tests/simulation/daemon/data.h"

#include <algorithm>

#include "tests/simulation/world/world.h"

namespace batchwright::simulation {
namespace {

constexpr std::uint64_t kFirstContent = 1000;
constexpr std::size_t kSlotBytes = 4096;

std::uint32_t length_of(std::uint64_t sequence) {
  return static_cast<std::uint32_t>(sequence * 7919 % 5 + 1);
}

/// The batches that take most padded frames, largest first.
std::vector<BatchIndex> worst_of(const EpochPlan& plan) {
  std::vector<BatchIndex> all;
  for (std::uint64_t i = 0; i < plan.batches(); ++i) all.push_back({i});
  std::stable_sort(all.begin(), all.end(), [&plan](BatchIndex one, BatchIndex other) {
    const auto size = [&plan](BatchIndex index) {
      const BatchFigures figures = plan.figures(index);
      return std::uint64_t{figures.rows} * figures.batch_length;
    };
    return size(one) > size(other);
  });
  all.resize(std::min<std::size_t>(all.size(), kMostRehearsals));
  return all;
}

}  // namespace

Data::Data(PlanSettings settings, std::uint32_t sequences) : settings_(std::move(settings)) {
  versions_.push_back({kFirstContent, {}, kSlotBytes});
  for (std::uint64_t i = 0; i < sequences; ++i) versions_.back().lengths.push_back(length_of(i));
}

void Data::grow(std::uint32_t sequences, bool needs_larger_slots) {
  Version next = newest();
  ++next.content;
  for (std::uint32_t i = 0; i < sequences; ++i) {
    next.lengths.push_back(length_of(next.lengths.size()));
  }
  if (needs_larger_slots) next.slot_bytes += kSlotBytes;
  versions_.push_back(std::move(next));
}

const Data::Version* Data::find(std::uint64_t content) const {
  const auto found = std::find_if(versions_.begin(), versions_.end(),
                                  [&](const Version& each) { return each.content == content; });
  return found == versions_.end() ? nullptr : &*found;
}

DataFacts Data::facts_of(const Version& version) {
  DataFacts facts;
  facts.sequences = version.lengths.size();
  facts.fingerprint = fingerprint_of(version);
  facts.terms = "size = 1";
  return facts;
}

const PlannedEpoch& Data::plan(const Version& version, Epoch epoch) {
  const std::pair place{version.content, epoch};
  if (const auto found = plans_.find(place); found != plans_.end()) return found->second;
  auto planned = plan_epoch(version.lengths, settings_, epoch);
  if (!planned) throw Violation("an epoch cannot be planned: " + planned.error().message);
  std::vector<BatchIndex> worst = worst_of(*planned);
  const auto source = std::make_shared<const EpochSource>(epoch, fingerprint_of(version), nullptr,
                                                          std::move(*planned));
  return plans_.emplace(place, PlannedEpoch{source, source, {}, std::move(worst), 0.0})
      .first->second;
}

}  // namespace batchwright::simulation
