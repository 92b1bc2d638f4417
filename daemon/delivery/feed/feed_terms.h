#pragma once

#include <optional>
#include <string>

#include "daemon/delivery/feed/feed_resources.h"

namespace batchwright {

/// What decides which batches a feed's trainers get and how they look, beside the data: planner,
/// plan as the configuration spells it, recipe, layout, and each field with its padding and the
/// dtype that it has in a batch. `schema` is that of the rows. One `key = value` a line, in the
/// configuration's order; what is not set has no line.
std::string terms_text(const FeedSettings& settings, const Schema& schema);

/// What fingerprint_of() would be with draws = 1 under [feed.features], as it was before there was
/// a second version. Empty where the recipe draws nothing, or has draws = 1.
std::optional<Fingerprint> fingerprint_of_first_draws(const Snapshot& snapshot,
                                                      const FeedSettings& settings);

/// What a feed's batches depend on. Whatever terms_text() tells belongs to it.
Fingerprint fingerprint_of(const Snapshot& snapshot, const FeedSettings& settings);

}  // namespace batchwright
