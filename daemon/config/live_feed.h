#pragma once

#include <span>

#include "daemon/config/complaints.h"
#include "daemon/config/keys.h"
#include "daemon/config/values.h"

namespace batchwright {

// What a feed with a table [feed.live] has, and no other.

/// A live feed of which the file says nothing: the defaults of its rows.
LiveFeedSettings default_live_feed();

/// The rows of a live feed alone: of [[feed]] itself, and of [feed.live]. The keys of LiveLimits
/// apply in place; for the others the pool is made again.
std::span<const Key<LiveFeedSettings>> live_feed_keys();
std::span<const Key<LiveFeedSettings>> live_keys();
/// The table [feed.fields], which has a row and its own reader.
const KeyRow& fields_row();
/// The rows of one field of [feed.fields].
std::span<const Key<FieldSpec>> field_keys();

/// Complains of the keys of a live feed in one that is not live.
void refuse_live_keys(const ConfigNode& feed, Complaints& complaints);

/// Reads the keys of a live feed, and complains of those that it cannot have.
void read_live_feed(const ConfigNode& node, FeedConfig& feed, Complaints& complaints);

/// Checks what several keys of a live feed say together, once each of them is sound by itself, and
/// fills in what follows from them.
void check_live_feed(const ConfigNode& node, FeedConfig& feed, Complaints& complaints);

}  // namespace batchwright
