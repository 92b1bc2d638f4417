#pragma once

#include <string>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// The settings of a connection. Errors: invalid_argument, unsupported.
Result<ConnectSettings> to_settings(const bw_connect_options& options);

/// The endpoints of a list with commas. Errors: invalid_argument (none, or one twice).
Result<std::vector<std::string>> to_endpoints(const std::string& list);

/// The request to the daemon; rank and ranks are looked up in the environment when left to it.
/// Errors: invalid_argument, which says where the value came from.
Result<wire::SubscribeT> to_request(const bw_subscribe_options& options);

}  // namespace batchwright
