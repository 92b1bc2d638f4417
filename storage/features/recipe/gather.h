#pragma once

#include <functional>
#include <optional>
#include <string>

#include "storage/features/recipe/opened_recipe.h"

namespace batchwright {

/// The recipe up to the features, without anything that is drawn: what statistics are made of.
RecipeSettings without_draws(const RecipeSettings& settings);

/// Told from any thread, one at a time: sequences done, of how many.
using GatherProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Sums over the frames of all sequences, and where `speaker` names a scalar field of whole
/// numbers, over those of each of its values. The same bits for any number of threads. `recipe` is
/// one of without_draws(), for the snapshot. Blocks on the disk. Errors: bad_configuration (no such
/// field); those of making a row, naming the sequence; infeasible (no frame).
Result<CmvnStatistics> gather_statistics(const Recipe& recipe, const Snapshot& of,
                                         const std::string& speaker, unsigned threads,
                                         const GatherProgress& progress = {});

}  // namespace batchwright
