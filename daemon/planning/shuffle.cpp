#include "daemon/planning/shuffle.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <string>

#include "daemon/planning/rng.h"
#include "daemon/planning/sort.h"

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

/// Longest row of a cut batch.
std::uint32_t batch_length(const Draft& draft, std::uint32_t batch) {
  if (!draft.batch_lengths.empty()) return draft.batch_lengths[batch];
  std::uint32_t longest = 0;
  for (std::uint32_t i = draft.starts[batch]; i < draft.starts[batch + 1]; ++i) {
    longest = std::max(longest, draft.table.length(draft.order.items()[i]));
  }
  return longest;
}

/// Puts like lengths into one step. The batches come in a random order: those that fill no step
/// stay at the end, so that chance decides which they are. The others are sorted by length,
/// longest first, and make groups of `world`; groups, and batches within each, are permuted.
void group_batches(Draft& draft, std::uint32_t world, std::uint64_t seed) {
  const std::size_t grouped = draft.sequence.size() - draft.sequence.size() % world;
  std::vector<std::uint64_t> words(grouped);
  for (std::size_t i = 0; i < grouped; ++i) {
    words[i] = key_word(~batch_length(draft, draft.sequence[i]), draft.sequence[i]);
  }
  std::vector<std::uint64_t> spare(grouped);
  stable_sort_by_key(words, spare);
  std::vector<std::uint32_t> groups(grouped / world);
  std::iota(groups.begin(), groups.end(), 0u);
  RandomStream random(seed, Stream::groups);
  permute(std::span(groups), random);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::span<std::uint32_t> step(&draft.sequence[g * world], world);
    for (std::size_t i = 0; i < world; ++i) {
      step[i] = static_cast<std::uint32_t>(words[std::size_t{groups[g]} * world + i]);
    }
    permute(step, random);
  }
}

}  // namespace

Result<void> spread_batches(Draft& draft, const PlanSettings& settings) {
  const std::uint32_t over = draft.batches() % settings.world;
  if (settings.remainder != Remainder::spread || over == 0) return {};
  if (draft.order.items().size() < draft.batches() - over + std::size_t{settings.world}) {
    return Error{ErrorCode::infeasible,
                 "remainder = spread: " + std::to_string(draft.order.items().size()) +
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
  draft.batch_lengths.clear();  // of batches that are no more
  return {};
}

Result<void> sequence_batches(Draft& draft, const PlanSettings& settings, std::uint64_t seed) {
  draft.sequence.resize(draft.batches());
  std::iota(draft.sequence.begin(), draft.sequence.end(), 0u);
  if (!draft.bucket_limits.empty()) permute_batches(draft, seed, Stream::draw);
  if (settings.shuffle != Shuffle::off) permute_batches(draft, seed, Stream::batches);
  if (settings.shuffle == Shuffle::groups) group_batches(draft, settings.world, seed);

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
