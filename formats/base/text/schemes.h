#pragma once

#include <string_view>

namespace batchwright {

/// The beginning of an endpoint that is a Unix socket, as ZeroMQ spells it.
constexpr std::string_view kIpc = "ipc://";
/// The end of the arena socket's path, which is otherwise the endpoint's.
constexpr std::string_view kArenaSuffix = ".arena";
/// The beginning of an address of pages that is a Unix socket.
constexpr std::string_view kUnix = "unix://";

}  // namespace batchwright
