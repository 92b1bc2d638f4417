#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/delivery/wire/access.h"
#include "formats/formats.h"

namespace batchwright {

/// The answer to a client's request for an arena.
struct ArenaHandle {
  int descriptor = -1;
  std::uint64_t bytes = 0;
};

/// The Unix socket on which clients get the arenas' descriptors, and whose open connection is a
/// local client's sign of life: the kernel ends it when the client dies, however it dies.
/// Threads: the event loop only. The callbacks never come from within a call.
class ArenaSocket {
 public:
  struct Limits {
    /// Most open connections, including those without a session but not retired ones. Beyond, the
    /// oldest that has said nothing is closed; where none is, the newcomer.
    std::size_t max_connections = 0;
    /// How long a connection may take to name its session.
    std::chrono::milliseconds bind_time{10'000};
  };
  struct Callbacks {
    /// Whether this process may have a connection; without it, every one may.
    std::function<bool(const std::optional<PeerCredentials>&)> admit;
    /// A connection names its session. False: there is none, or it has a connection already.
    std::function<bool(SessionId)> bind;
    /// A bound session sent something other than a request, or does not read answers, and which of
    /// these: end it by disconnect() or retire().
    std::function<void(SessionId, const std::string& why)> spoilt;
    /// An arena's descriptor cannot be sent now, and why; the request is tried again.
    std::function<void(const std::string& why)> delayed;
    /// The connection of a bound session ended, or that of one that was retired.
    std::function<void(SessionId)> lost;
    /// Errors: not_found.
    std::function<Result<ArenaHandle>(SessionId, ArenaNumber)> find;
  };

  /// Listens at `path`, replacing a socket that no process answers.
  /// Errors: already_exists when another daemon answers there; io_error.
  static Result<std::unique_ptr<ArenaSocket>> listen(boost::asio::io_context& loop,
                                                     const std::string& path, const Limits& limits,
                                                     Callbacks callbacks);
  ~ArenaSocket();  ///< Ends all connections and removes the socket's file.
  ArenaSocket(const ArenaSocket&) = delete;
  ArenaSocket& operator=(const ArenaSocket&) = delete;

  /// Ends the connection of a session, without a call of `lost`.
  void disconnect(SessionId session);
  /// The session is over, and its process may still read what it holds: ends our direction of the
  /// connection, and answers nothing more. `lost` tells when the other direction ends.
  void retire(SessionId session);

 private:
  struct State;
  explicit ArenaSocket(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace batchwright
