#include "daemon/planning/stages/select.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>

#include "daemon/planning/rng.h"
#include "daemon/planning/stages/sweep.h"

namespace batchwright {
namespace {

Error bad_length(std::size_t ordinal, std::uint32_t length) {
  return {ErrorCode::invalid_argument,
          fmt::format("sequence {} has {} frames, allowed: 1 to 2147483647", ordinal, length)};
}

/// So many rows, each with the most frames that one takes in a batch.
Result<void> check_product(std::uint64_t items, const PlanBuilder& builder,
                           const PlanSettings& settings) {
  const std::uint32_t longest = on_grid(settings, builder.longest);
  if (items > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::infeasible,
                 fmt::format("an epoch of {} rows, allowed: up to 4294967295", items)};
  }
  if (items * longest > std::uint64_t{1} << 62) {
    return Error{ErrorCode::infeasible,
                 fmt::format("{} rows of up to {} frames: their product passes 2^62 frames", items,
                             longest)};
  }
  return {};
}

/// One dataset of all sequences, or those that were given.
Result<std::vector<PlanBuilder::Dataset>> datasets_of(std::uint64_t sequences,
                                                      const PlanSettings& settings,
                                                      std::span<const std::uint64_t> given) {
  const std::size_t count = std::max<std::size_t>(given.size(), 1);
  if (!settings.mix_weights.empty() && settings.mix_weights.size() != count) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("mix_weights has {} weights for {} datasets",
                             settings.mix_weights.size(), count)};
  }
  // Without weights the datasets of a feed count as one, in their order.
  if (settings.mix_weights.empty() || given.empty()) {
    return std::vector<PlanBuilder::Dataset>{{sequences, 0}};
  }
  std::vector<PlanBuilder::Dataset> datasets;
  std::uint64_t end = 0;
  for (const std::uint64_t size : given) datasets.push_back({end += size, 0});
  if (end == sequences) return datasets;
  return Error{ErrorCode::invalid_argument,
               fmt::format("datasets of {} sequences in all, and {} lengths", end, sequences)};
}

/// Why nothing is kept of a dataset.
Error none_kept(const PlanBuilder& builder, std::size_t number,
                std::span<const std::uint32_t> lengths, const PlanSettings& settings) {
  const std::uint64_t begin = number == 0 ? 0 : builder.datasets[number - 1].end;
  const auto own = lengths.subspan(begin, builder.datasets[number].end - begin);
  const bool mixed = builder.datasets.size() > 1;
  const std::string name =
      mixed ? fmt::format("dataset {} of {}: ", number + 1, builder.datasets.size()) : "";
  if (own.empty()) {
    return {ErrorCode::infeasible,
            fmt::format("{}has no sequences; each that is mixed needs some", name)};
  }
  const bool both = settings.min_length != 0 && settings.max_length != 0;
  std::string limits;
  if (settings.min_length != 0) limits += fmt::format("min_length = {}", settings.min_length);
  if (both) limits += " and ";
  if (settings.max_length != 0) limits += fmt::format("max_length = {}", settings.max_length);
  const auto [least, most] = std::minmax_element(own.begin(), own.end());
  return {ErrorCode::infeasible,
          fmt::format("{}{} {} out every sequence; they have {} to {} frames", name, limits,
                      both ? "leave" : "leaves", *least, *most)};
}

Result<void> count_kept(PlanBuilder& builder, std::span<const std::uint32_t> lengths,
                        const PlanSettings& settings) {
  const AllowedLengths allowed(settings);
  builder.shortest = kLongest;
  std::size_t ordinal = 0;
  for (PlanBuilder::Dataset& dataset : builder.datasets) {
    for (; ordinal < dataset.end; ++ordinal) {
      const std::uint32_t length = lengths[ordinal];
      // A recipe makes no row of sound that is too short, and says so by min_length.
      if ((length == 0 && allowed.has(0)) || length > kLongest) return bad_length(ordinal, length);
      if (!allowed.has(length)) continue;
      ++dataset.kept;
      builder.longest = std::max(builder.longest, length);
      builder.shortest = std::min(builder.shortest, length);
    }
    builder.kept += dataset.kept;
    if (dataset.kept == 0) {
      const auto number = static_cast<std::size_t>(&dataset - builder.datasets.data());
      return none_kept(builder, number, lengths, settings);
    }
  }
  builder.left_out = lengths.size() - builder.kept;
  return {};
}

/// What rows of an order file have to be, which depends on the lengths. Empty: they are.
std::string_view flaw_of(const ListedRow& row, std::uint32_t length, const PlanSettings& settings) {
  const bool in_lanes = settings.lanes != 0;
  if (!row.has_sequence()) {
    return settings.cut == Cut::file ? "" : "no sequence (-), which needs cut = file";
  }
  if (length == 0 || length > kLongest) return "a sequence of no or too many frames";
  if (row.frames == 0) return "";
  if (in_lanes) return "a part of a sequence; lanes cut whole ones";
  const bool is_within = row.start < length && row.frames <= length - row.start;
  return is_within ? "" : "a part that passes the end of its sequence";
}

/// Checks the rows of an order file, and counts them in place of the sequences.
Result<void> count_listed(PlanBuilder& builder, std::span<const std::uint32_t> lengths,
                          const PlanSettings& settings) {
  if (!settings.order_rows) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("order_file = {} has not been read", settings.order_file)};
  }
  const OrderRows& listed = *settings.order_rows;
  const ItemTable table(lengths, settings);
  builder.shortest = kLongest;
  for (std::uint32_t i = 0; i < listed.rows.size(); ++i) {
    const ListedRow& row = listed.rows[i];
    if (row.has_sequence() && row.ordinal >= lengths.size()) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("{}: sequence {} of {}", listed.place_of(i), row.ordinal, lengths.size())};
    }
    const std::uint32_t whole = row.has_sequence() ? lengths[row.ordinal] : 0;
    if (const auto flaw = flaw_of(row, whole, settings); !flaw.empty()) {
      return Error{
          ErrorCode::infeasible,
          fmt::format("{}: found {}: sequence {} with {} frames, start {}, count {}",
                      listed.place_of(i), flaw, row.ordinal, whole, row.start, row.frames)};
    }
    builder.longest = std::max(builder.longest, table.length(i));
    builder.shortest = std::min(builder.shortest, table.length(i));
  }
  builder.kept = listed.sequences;
  if (settings.cut != Cut::file || listed.lines() % settings.world == 0) return {};
  return Error{
      ErrorCode::infeasible,
      fmt::format("order file {}: found {} lines with a batch each; allowed: a multiple of "
                  "world = {}",
                  listed.file, listed.lines(), settings.world)};
}

/// Draws `wanted` of the sequences that a dataset keeps: each is seen once, and all draws are
/// equally likely.
void draw(PlanBuilder& builder, std::size_t number, std::uint64_t wanted, RandomStream& random) {
  const auto lengths = builder.table.sequence_lengths();
  const AllowedLengths allowed = builder.table.allowed();
  builder.drawn.resize((lengths.size() + 63) / 64);
  std::uint64_t to_see = builder.datasets[number].kept;
  std::uint64_t ordinal = number == 0 ? 0 : builder.datasets[number - 1].end;
  for (; wanted > 0; ++ordinal) {
    if (!allowed.has(lengths[ordinal])) continue;
    // Selection sampling (Knuth, vol. 2, algorithm S). Where all that is left is wanted, nothing is
    // drawn: DEFINITIONS.md has the rule, and the second planner follows it.
    const std::uint64_t drawn = wanted == to_see || random.below(to_see) < wanted ? 1 : 0;
    builder.drawn[ordinal / 64] |= drawn << ordinal % 64;
    wanted -= drawn;
    --to_see;
  }
}

/// The rows that a draw makes.
std::uint64_t rows_of(const PlanBuilder& builder) {
  if (!builder.table.is_chunked()) return builder.selected;
  if (builder.uses_all) return builder.table.items();
  std::uint64_t rows = 0;
  builder.each_sequence([&](std::uint32_t ordinal, std::uint64_t times) {
    rows += times * builder.table.items_of(ordinal);
  });
  return rows;
}

}  // namespace

Result<PlanBuilder> begin_plan(std::span<const std::uint32_t> lengths, const PlanSettings& settings,
                               std::span<const std::uint64_t> datasets) {
  if (lengths.empty()) return Error{ErrorCode::invalid_argument, "no sequences to plan"};
  if (lengths.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} sequences, allowed: up to 4294967295", lengths.size())};
  }
  PlanBuilder builder;
  if (settings.order == Order::file) {
    if (auto counted = count_listed(builder, lengths, settings); !counted) return counted.error();
    builder.table = ItemTable(lengths, settings);
    return builder;
  }
  auto parts = datasets_of(lengths.size(), settings, datasets);
  if (!parts) return parts.error();
  builder.datasets = std::move(*parts);
  if (auto counted = count_kept(builder, lengths, settings); !counted) return counted.error();
  builder.table = ItemTable(lengths, settings);
  if (settings.chunk != 0) {
    auto table = ItemTable::chunked(lengths, settings);
    if (!table) return table.error();
    builder.table = std::move(*table);
    // L_max is of the rows, and no chunk is longer.
    builder.longest = std::min(builder.longest, settings.chunk);
  }
  return builder;
}

std::vector<std::uint64_t> sequences_wanted(const PlanBuilder& builder,
                                            const PlanSettings& settings, double share) {
  std::vector<std::uint64_t> wanted;
  for (const PlanBuilder::Dataset& dataset : builder.datasets) {
    const auto exact = share * static_cast<double>(dataset.kept);
    // To the nearest, and at least one sequence, as DEFINITIONS.md has it.
    wanted.push_back(std::max(static_cast<std::uint64_t>(exact + 0.5), std::uint64_t{1}));
  }
  if (settings.mix_weights.empty()) return wanted;
  // The epoch's length in units of weight: until the first dataset is used up, or the last.
  double length = static_cast<double>(wanted[0]) / settings.mix_weights[0];
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    const double own = static_cast<double>(wanted[i]) / settings.mix_weights[i];
    const bool ends = settings.mix_exhausted == Exhausted::end;
    length = ends ? std::min(length, own) : std::max(length, own);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Within 64 bits; select_items() refuses far less than that.
    const double exact = std::min(settings.mix_weights[i] * length, 1e18);
    wanted[i] = std::max(static_cast<std::uint64_t>(exact + 0.5), std::uint64_t{1});
  }
  return wanted;
}

Result<void> select_items(PlanBuilder& builder, const PlanSettings& settings, Epoch epoch) {
  if (const OrderRows* const listed = builder.table.listed(); listed != nullptr) {
    builder.selected = listed->sequences;
    builder.rows = listed->rows.size();
    builder.repeats = listed->repeats;
    return check_product(builder.rows, builder, settings);
  }
  auto sweep = Sweep::make(settings);
  if (!sweep) return sweep.error();
  const auto wanted = sequences_wanted(builder, settings, sweep->share(epoch.value));
  for (const std::uint64_t sequences : wanted) {
    builder.selected += sequences;
    // Asked after each, before the sum of several could wrap around.
    if (wanted.size() > 1 && builder.selected > std::numeric_limits<std::uint32_t>::max()) {
      return Error{ErrorCode::infeasible,
                   fmt::format("mix_weights = {} make an epoch of more than 4294967295 sequences: "
                               "use weights closer to each other, or mix_exhausted = end",
                               get_setting(settings, "mix_weights"))};
    }
    if (auto fits = check_product(builder.selected, builder, settings); !fits) return fits;
  }
  builder.uses_all = settings.mix_weights.empty() && builder.left_out == 0 &&
                     builder.selected == builder.table.sequence_lengths().size();
  // One stream for all datasets: each draws behind the one before.
  RandomStream random(settings.seed + epoch.value, Stream::select);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    PlanBuilder::Dataset& dataset = builder.datasets[i];
    dataset.passes = wanted[i] / dataset.kept;
    if (wanted[i] % dataset.kept != 0) draw(builder, i, wanted[i] % dataset.kept, random);
    builder.repeats |= wanted[i] > dataset.kept;
  }
  builder.rows = rows_of(builder);
  return check_product(builder.rows, builder, settings);
}

}  // namespace batchwright
