#pragma once

#include <fmt/core.h>

#include <memory>
#include <string_view>

#include "client/library/batchwright/client.h"
#include "client/library/session/connections.h"
#include "formats/formats.h"

namespace batchwright {

// What the files of the C ABI share: the errors of arguments, and the way from a handle to what it
// stands for.

inline bw_status report_invalid(const char* what) {
  return report({ErrorCode::invalid_argument, what});
}

inline bw_status forked() {
  return report(
      {ErrorCode::forked,
       "this connection was made before fork(); a forked child must open its own connection"});
}

inline bw_status closed() {
  return report({ErrorCode::invalid_argument, "this connection is closed, or never was one"});
}

/// Keeps what the handle stands for alive during the call, even if another thread closes it
/// meanwhile.
template <class Call>
bw_status with(const bw_connection* handle, Call call) {
  return at_border([&] {
    const auto connection = Connections::of_process().find(handle);
    return connection ? call(*connection) : closed();
  });
}

/// The one session of a connection. Errors: unsupported.
inline Result<std::shared_ptr<Session>> session_of(const Connected& connection) {
  if (connection.sessions.size() == 1) return connection.sessions.front();
  return Error{ErrorCode::unsupported,
               fmt::format("this connection has {} endpoints; for a live feed connect to its own",
                           connection.sessions.size())};
}

/// Whether the feed is one of live ones, as far as is known: it may be newer than the connection.
inline Result<bool> knows(const Connected& connection, std::string_view name) {
  for (const bw_feed& feed : connection.feeds) {
    if (name != feed.name) continue;
    if (feed.live != 0) return true;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("feed \"{}\" has a dataset; only live feeds have producers and "
                             "versions",
                             name)};
  }
  return false;
}

/// Runs `call` with the session of a connection that may have this live feed.
template <class Call>
bw_status with_live(bw_connection* connection, const char* feed, Call call) {
  if (connection == nullptr) return report_invalid("no connection");
  if (feed == nullptr || *feed == '\0') return report_invalid("no feed is named");
  return with(connection, [&](const Connected& found) {
    const auto session = session_of(found);
    if (!session) return report(session.error());
    if ((*session)->link().forked()) return forked();
    const auto known = knows(found, feed);
    if (!known) return report(known.error());
    return call(**session, *known);
  });
}

}  // namespace batchwright
