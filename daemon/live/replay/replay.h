#pragma once

#include <boost/json/value.hpp>

#include "formats/base/base.h"

namespace batchwright {

/// Replays cases of live feeds, as README.md writes them: one, or a list. Returns the same cases
/// with what their logs lead to as `expect`; `{"refused": text}` where the settings could not work.
/// Errors: invalid_argument, which names the case, the event, what was found, and what is allowed.
Result<boost::json::value> replay_live_cases(const boost::json::value& cases);

}  // namespace batchwright
