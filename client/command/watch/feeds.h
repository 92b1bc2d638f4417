#pragma once

#include <string>

#include "client/library/batchwright/client.hpp"

// What a daemon says of its feeds, for people.

namespace batchwright {

/// The feed of this name, a live one or not. Throws client::Error (BW_NOT_FOUND), whose text lists
/// the feeds. Lifetime: the connection's.
const bw_feed& feed_named(const client::Connection& connection, const std::string& name);

/// The feed of this name that is configured and not served; null where there is none. Lifetime: the
/// connection's.
const bw_absent_feed* absent_feed(const client::Connection& connection, const std::string& name);

/// What a field is, in words: `"tokens" [T, 4] int32, aligned`.
std::string field_text(const bw_field& field);

}  // namespace batchwright
