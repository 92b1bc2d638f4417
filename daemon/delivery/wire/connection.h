#pragma once

#include <cstdint>
#include <optional>

namespace batchwright {

/// A connection of ZeroMQ's, which may close it at any time: a descriptor that stands for something
/// else by then is told by the socket's cookie, which no other socket gets.
struct Connection {
  int descriptor = -1;
  std::uint64_t cookie = 0;
};

/// The connection behind a descriptor as it is now.
Connection connection_of(int descriptor);

/// What the kernel says of a TCP connection.
struct Traffic {
  std::uint64_t left = 0;  ///< Bytes that the other side's kernel has acknowledged.
  std::uint64_t came = 0;  ///< Bytes that came from there.
  bool pending = false;    ///< Some are on their way to it.
};

/// Empty: the connection has ended, or is none of TCP.
std::optional<Traffic> traffic_of(const Connection& connection);

/// Ends it for both sides; ZeroMQ then frees what it has queued for it. Nothing, where it has
/// ended.
void end(const Connection& connection);

}  // namespace batchwright
