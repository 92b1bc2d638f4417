#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "daemon/delivery/frame_socket.h"
#include "formats/formats.h"

namespace batchwright {

/// Tells events to whoever listens (formats/README.md, Events). Nothing depends on their arrival:
/// who listens slowly loses some, and nobody waits for him.
/// Threads: the event loop only.
class EventPublisher {
 public:
  /// Keys as of a router: they matter for `tcp://` alone.
  EventPublisher(boost::asio::io_context& loop, SocketThreads& threads,
                 std::string curve_secret_key, bool ask_gatekeeper);

  /// The endpoint with the port that it got. Errors: io_error.
  Result<std::string> bind(const std::string& endpoint) { return socket_.bind(endpoint); }

  /// Never waits.
  void publish(wire::EventT event);

 private:
  FrameSocket socket_;
};

}  // namespace batchwright
