#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "daemon/delivery/wire/frame_socket.h"
#include "daemon/stats/stats.h"

namespace batchwright {

/// Admits remote clients by their public keys: ZeroMQ asks it for each connection (ZAP, RFC 27),
/// before the first message.
///
/// Lifetime: outlives the sockets that ask it, for ZeroMQ lets every peer in where it finds none.
/// Threads: the event loop only.
class ZapAuthenticator {
 public:
  ZapAuthenticator(boost::asio::io_context& loop, SocketThreads& threads, EventLog& log,
                   std::set<std::string> authorized);

  /// Begins to answer; call it before the first endpoint is bound. Errors: io_error.
  Result<void> open();

  /// Replaces the list of keys; connected clients stay.
  void authorize(std::set<std::string> authorized) { authorized_ = std::move(authorized); }

 private:
  void answer(const IncomingMessage& question);
  bool admits(const IncomingMessage& question);

  std::set<std::string> authorized_;  ///< Keys as Z85 text.
  EventLog& log_;
  FrameSocket socket_;
};

}  // namespace batchwright
