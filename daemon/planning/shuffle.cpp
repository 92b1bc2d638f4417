#include "daemon/planning/shuffle.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <string>

#include "daemon/planning/rng.h"

namespace batchwright {
namespace {

struct Part {
  std::uint32_t rows, start;
};

/// The part that is to be split later: fewer rows, or as many and further back.
struct SplitLater {
  bool operator()(const Part& a, const Part& b) const {
    return a.rows != b.rows ? a.rows < b.rows : a.start > b.start;
  }
};
struct SplitSooner {
  bool operator()(const Part& a, const Part& b) const { return SplitLater()(b, a); }
};

/// The `count` batches that are to be split first.
std::priority_queue<Part, std::vector<Part>, SplitLater> first_to_split(const Draft& draft,
                                                                        std::size_t count) {
  std::priority_queue<Part, std::vector<Part>, SplitSooner> largest;  // the least of them on top
  for (std::uint32_t batch = 0; batch < draft.batches(); ++batch) {
    largest.push({draft.starts[batch + 1] - draft.starts[batch], draft.starts[batch]});
    if (largest.size() > count) largest.pop();
  }
  std::priority_queue<Part, std::vector<Part>, SplitLater> queue;
  for (; !largest.empty(); largest.pop()) queue.push(largest.top());
  return queue;
}

/// Rows of the first of two parts: half, rounded up to `multiple` if that leaves a second part.
std::uint32_t first_half(std::uint32_t rows, std::uint32_t multiple) {
  const std::uint32_t half = rows - rows / 2;
  const std::uint32_t up = (half + multiple - 1) / multiple * multiple;
  return up < rows ? up : half;
}

void permute_batches(Draft& draft, std::uint64_t seed, Stream stream) {
  RandomStream random(seed, stream);
  permute(std::span(draft.sequence), random);
}

}  // namespace

Result<void> spread_batches(Draft& draft, const PlanSettings& settings) {
  const std::uint32_t over = draft.batches() % settings.world;
  if (settings.remainder != Remainder::spread || over == 0) return {};
  if (draft.items.size() < draft.batches() - over + std::size_t{settings.world}) {
    return Error{ErrorCode::infeasible,
                 "remainder = spread: " + std::to_string(draft.items.size()) +
                     " rows cannot make a multiple of world = " + std::to_string(settings.world) +
                     " batches out of " + std::to_string(draft.batches())};
  }
  const std::size_t splits = settings.world - over;
  auto parts = first_to_split(draft, splits);
  for (std::size_t i = 0; i < splits; ++i) {
    const Part part = parts.top();
    parts.pop();
    const std::uint32_t first = first_half(part.rows, settings.size_multiple);
    parts.push({first, part.start});
    parts.push({part.rows - first, part.start + first});
    draft.starts.push_back(part.start + first);
  }
  std::sort(draft.starts.begin(), draft.starts.end());
  return {};
}

Result<void> sequence_batches(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  draft.sequence.resize(draft.batches());
  std::iota(draft.sequence.begin(), draft.sequence.end(), 0u);
  if (settings.shuffle == Shuffle::batches) permute_batches(draft, seed, Stream::batches);

  const std::size_t over = draft.sequence.size() % settings.world;
  if (over == 0) return {};
  if (settings.remainder == Remainder::drop) {
    draft.sequence.resize(draft.sequence.size() - over);
    if (!draft.sequence.empty()) return {};
    return Error{ErrorCode::infeasible,
                 "the epoch has " + std::to_string(draft.batches()) +
                     " batches, fewer than world = " + std::to_string(settings.world) +
                     ", and remainder = drop leaves none: use spread or wrap"};
  }
  for (std::size_t next = 0; draft.sequence.size() % settings.world != 0; ++next) {
    draft.sequence.push_back(draft.sequence[next]);
  }
  return {};
}

}  // namespace batchwright
