#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "daemon/delivery/wire/frame_socket.h"
#include "daemon/delivery/wire/router.h"
#include "formats/formats.h"

namespace batchwright {

/// Publishes events to all listeners (formats/PROTOCOL.md, Events). Nothing depends on their
/// arrival: a slow listener loses some, and nothing waits for it.
/// Threads: the event loop only.
class EventPublisher {
 public:
  /// Settings as of a router: keys matter for `tcp://` alone.
  EventPublisher(boost::asio::io_context& loop, SocketThreads& threads, Router::Settings settings);

  /// The endpoint with the port that it got. Errors: io_error.
  Result<std::string> bind(const std::string& endpoint) { return socket_.bind(endpoint); }

  /// Never waits.
  void publish(wire::EventT event);

 private:
  FrameSocket socket_;
};

}  // namespace batchwright
