#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/live/events.h"
#include "daemon/live/settings.h"
#include "formats/base/base.h"

// A case of README.md, member by member.

namespace batchwright {

/// The settings of a case, with their defaults. They are not checked yet.
/// Errors: bad_configuration, which names the key, what was found, and what is allowed.
Result<LiveSettings> read_live_settings(const boost::json::object& given);
/// The same for those that may change while a feed serves; others stay as they are.
Result<void> read_live_limits(const boost::json::object& given, LiveSettings& settings);

/// Small numbers for names, in the order in which they come.
class NameNumbers {
 public:
  std::uint32_t number(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
};

struct LoggedEvent {
  std::uint64_t at_ms = 0;
  LiveEvent event;
};

/// One event of a case's log. `settings` are those that were given so far, without what follows
/// from them; an event that changes limits changes them.
/// Errors: invalid_argument, which names the member, what was found, and what is allowed; of limits
/// bad_configuration.
Result<LoggedEvent> read_live_event(const boost::json::object& logged, LiveSettings& settings,
                                    NameNumbers& producers, NameNumbers& trainers);

}  // namespace batchwright
