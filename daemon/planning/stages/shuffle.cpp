#include "daemon/planning/stages/shuffle.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "daemon/planning/rng.h"
#include "daemon/planning/stages/sort.h"

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
std::priority_queue<Part, std::vector<Part>, SplitLater> first_to_split(const PlanBuilder& builder,
                                                                        std::size_t count) {
  std::priority_queue<Part, std::vector<Part>, SplitSooner> largest;  // the least of them on top
  for (std::uint32_t batch = 0; batch < builder.batches(); ++batch) {
    largest.push({builder.starts[batch + 1] - builder.starts[batch], builder.starts[batch]});
    // Only as many as will be split are kept: parts of a split batch are never larger than it.
    if (largest.size() > count) largest.pop();
  }
  std::priority_queue<Part, std::vector<Part>, SplitLater> queue;
  for (; !largest.empty(); largest.pop()) queue.push(largest.top());
  return queue;
}

/// Rows of the first of two parts: half, rounded up to `multiple` if that leaves a second part.
std::uint32_t first_half(std::uint32_t rows, std::uint32_t multiple) {
  const std::uint32_t half = rows - rows / 2;
  // Parts are batches like others, so the first keeps to size_multiple where it can.
  const std::uint32_t up = (half + multiple - 1) / multiple * multiple;
  return up < rows ? up : half;
}

/// Permutes values that batches have in the order of their cut as the batches are.
void permute_batches(std::span<std::uint32_t> values, const PlanBuilder& builder,
                     const PlanSettings& settings, std::uint64_t seed) {
  // Buckets were cut by growing length: without this the epoch would go from short to long.
  if (builder.buckets.has_any()) {
    RandomStream random(seed, Stream::draw);
    permute(values, random);
  }
  if (settings.shuffle != Shuffle::off) {
    RandomStream random(seed, Stream::batches);
    permute(values, random);
  }
}

/// Fills builder.sequence, except for groups.
void order_batches(PlanBuilder& builder, const PlanSettings& settings, std::uint64_t seed) {
  const std::size_t world = settings.world;
  builder.sequence.reserve((builder.batches() + world - 1) / world *
                           world);  // for remainder = wrap
  builder.sequence.resize(builder.batches());
  std::iota(builder.sequence.begin(), builder.sequence.end(), 0u);
  permute_batches(builder.sequence, builder, settings, seed);
}

/// The longest row of each batch, on the grid.
std::vector<std::uint32_t> take_batch_lengths(PlanBuilder& builder, const PlanSettings& settings) {
  // Noted while they were cut, unless spreading has changed the batches since.
  if (!builder.batch_lengths.empty()) return std::exchange(builder.batch_lengths, {});
  std::vector<std::uint32_t> lengths(builder.batches());
  for (std::uint32_t batch = 0; batch < builder.batches(); ++batch) {
    for (std::uint32_t i = builder.starts[batch]; i < builder.starts[batch + 1]; ++i) {
      const std::uint32_t length = builder.table.length(builder.order.items()[i]);
      lengths[batch] = std::max(lengths[batch], length);
    }
    lengths[batch] = on_grid(settings, lengths[batch]);
  }
  return lengths;
}

/// The places of `lengths`, longest first, equal ones in order.
std::vector<std::uint32_t> sorted_places(std::span<const std::uint32_t> lengths) {
  std::vector<std::uint32_t> places(lengths.size());
  std::iota(places.begin(), places.end(), 0u);
  std::sort(places.begin(), places.end(), [lengths](std::uint32_t a, std::uint32_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  return places;
}

/// The same, much faster, but with 16 bytes a place instead of 4.
std::vector<std::uint32_t> fast_sorted_places(std::vector<std::uint32_t> lengths) {
  std::vector<std::uint64_t> words(lengths.size());
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = key_word(~lengths[i], i);
  std::vector<std::uint32_t>().swap(lengths);
  std::vector<std::uint64_t> spare(words.size());
  stable_sort_by_key(words, spare);
  std::vector<std::uint64_t>().swap(spare);
  std::vector<std::uint32_t> places(words.size());
  std::transform(words.begin(), words.end(), places.begin(), item_of);
  return places;
}

/// Whether the fast sort keeps within 16 bytes a sequence, or what cutting took.
bool has_room(const PlanBuilder& builder) {
  const std::size_t rows = builder.order.size();
  const std::size_t batches = builder.batches();
  const std::size_t most = std::max(16 * builder.table.sequence_lengths().size(),
                                    8 * rows + 8 * batches + builder.table.bytes());
  return 4 * rows + 20 * batches + builder.table.bytes() <= most;
}

/// Puts like lengths into one step. The batches come in a random order: those that fill no step
/// stay at the end, so that chance decides which they are. The others are sorted by length,
/// longest first, and make groups of `world`; groups, and batches within each, are permuted.
void group_batches(PlanBuilder& builder, const PlanSettings& settings, std::uint64_t seed) {
  const std::size_t world = settings.world;
  auto lengths = take_batch_lengths(builder, settings);
  permute_batches(lengths, builder, settings, seed);
  const std::size_t all = lengths.size();
  lengths.resize(all - all % world);
  auto places = has_room(builder) ? fast_sorted_places(std::move(lengths)) : sorted_places(lengths);
  std::vector<std::uint32_t>().swap(lengths);
  RandomStream random(seed, Stream::groups);
  for (std::size_t i = places.size() / world; i > 1; --i) {  // permute(), of whole groups
    const std::size_t other = random.below(i);
    if (other == i - 1) continue;
    std::swap_ranges(&places[(i - 1) * world], &places[(i - 1) * world] + world,
                     &places[other * world]);
  }
  // Now that there is room: the order that the places are in.
  order_batches(builder, settings, seed);
  for (std::uint32_t& place : places) place = builder.sequence[place];
  std::copy(places.begin(), places.end(), builder.sequence.begin());
  for (std::size_t start = 0; start < places.size(); start += world) {
    permute(std::span(&builder.sequence[start], world), random);
  }
}

}  // namespace

Result<void> spread_batches(PlanBuilder& builder, const PlanSettings& settings) {
  const std::uint32_t over = builder.batches() % settings.world;
  if (settings.remainder != Remainder::spread || over == 0) return {};
  // A batch of one row cannot be split.
  if (builder.order.items().size() < builder.batches() - over + std::size_t{settings.world}) {
    return Error{
        ErrorCode::infeasible,
        fmt::format(
            "remainder = spread: {} rows cannot make a multiple of world = {} batches out of {}",
            builder.order.items().size(), settings.world, builder.batches())};
  }
  const std::size_t splits = settings.world - over;
  std::vector<std::uint32_t>().swap(builder.batch_lengths);  // of batches that will be no more
  builder.starts.reserve(builder.starts.size() + splits);
  auto parts = first_to_split(builder, splits);
  for (std::size_t i = 0; i < splits; ++i) {
    const Part part = parts.top();
    parts.pop();
    const std::uint32_t first = first_half(part.rows, settings.size_multiple);
    parts.push({first, part.start});
    parts.push({part.rows - first, part.start + first});
    builder.starts.push_back(part.start + first);
  }
  // Splits are found by size; the starts have to grow again.
  std::sort(builder.starts.begin(), builder.starts.end());
  return {};
}

Result<void> sequence_batches(PlanBuilder& builder, const PlanSettings& settings,
                              std::uint64_t seed) {
  if (settings.shuffle == Shuffle::groups) {
    group_batches(builder, settings, seed);
  } else {
    order_batches(builder, settings, seed);
  }

  // `spread` has left nothing over; what follows is `drop` or `wrap`.
  const std::size_t over = builder.sequence.size() % settings.world;
  if (over == 0) return {};
  if (settings.remainder == Remainder::drop) {
    builder.sequence.resize(builder.sequence.size() - over);
    if (!builder.sequence.empty()) return {};
    return Error{ErrorCode::infeasible,
                 fmt::format("the epoch has {} batches, fewer than world = {}, and remainder = "
                             "drop leaves none: use spread or wrap",
                             builder.batches(), settings.world)};
  }
  for (std::size_t next = 0; builder.sequence.size() % settings.world != 0; ++next) {
    builder.sequence.push_back(builder.sequence[next]);
  }
  return {};
}

}  // namespace batchwright
