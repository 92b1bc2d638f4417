#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "client/library/batchwright/client.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// The error of options whose `struct_size` cannot be right.
Error wrong_struct_size(std::size_t size);

/// The caller's options, whose header may be older or newer than this library: what is missing
/// keeps its default, and what is unknown must be zero.
/// Errors: invalid_argument, unsupported (a newer option is set).
template <class Options>
Result<Options> read_options(const Options* given, Options defaults) {
  if (given == nullptr) return defaults;
  const std::size_t size = given->struct_size;
  if (size < sizeof given->struct_size || size > 4096) {
    return wrong_struct_size(size);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof defaults &&
      std::any_of(bytes + sizeof defaults, bytes + size, [](unsigned char b) { return b != 0; })) {
    return Error{ErrorCode::unsupported, "an option is set that this library is too old for"};
  }
  std::memcpy(&defaults, given, std::min(size, sizeof defaults));
  return defaults;
}

/// The settings of a connection. Errors: invalid_argument, unsupported.
Result<ConnectSettings> to_settings(const bw_connect_options& options);

/// The endpoints of a list with commas. Errors: invalid_argument (none, or one twice).
Result<std::vector<std::string>> to_endpoints(const std::string& list);

/// The request to the daemon; rank and ranks are looked up in the environment when left to it.
/// Errors: invalid_argument, which says where the value came from.
Result<wire::SubscribeT> to_request(const bw_subscribe_options& options);

}  // namespace batchwright
