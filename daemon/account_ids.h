#pragma once

#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The number of a user or a group that is given by name or number. `key` names the setting in
/// messages. Errors: bad_configuration (there is none), io_error (the accounts' service is away).
Result<unsigned> user_id(const std::string& key, const std::string& user);
Result<unsigned> group_id(const std::string& key, const std::string& group);

}  // namespace batchwright
