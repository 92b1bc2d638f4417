#pragma once

#include <boost/asio/io_context.hpp>
#include <compare>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "daemon/delivery/wire/frame_socket.h"
#include "formats/formats.h"

namespace batchwright {

/// The name ZeroMQ gives a peer for as long as it is connected: up to 255 bytes, unique within
/// the socket.
struct PeerName {
  bool remote = false;  ///< Came over `tcp://`.
  std::string name;

  friend auto operator<=>(const PeerName&, const PeerName&) = default;
};

/// The ROUTER socket of the `ipc://` or of the `tcp://` endpoints, which admit different peers.
///
/// Threads: the event loop only. Frames reach `on_message` one by one, never from within send().
class Router {
 public:
  /// A message, valid during the call.
  struct Incoming {
    PeerName peer;
    std::span<const std::byte> frame;   ///< The first one.
    std::span<const std::byte> second;  ///< Empty: there is none.
    std::size_t frames = 0;             ///< The number it had.
    std::string_view peer_address;      ///< The address of IncomingMessage.
    int descriptor = -1;                ///< The connection's.
  };
  using OnMessage = std::function<void(const Incoming&)>;

  struct Settings {
    bool remote = false;
    std::string curve_secret_key;  ///< Empty: no encryption.
    bool ask_gatekeeper = false;
  };

  Router(boost::asio::io_context& loop, SocketThreads& threads, const Settings& settings,
         OnMessage on_message);

  /// The endpoint with the port that it got. Errors: io_error, naming the endpoint and the reason.
  Result<std::string> bind(const std::string& endpoint) { return socket_.bind(endpoint); }

  /// Queues one frame, and never waits. Errors: disconnected when the peer is gone, or reads so
  /// slowly that its queue is full; it then gets nothing, and is to be dropped.
  Result<void> send(const PeerName& peer, std::span<const std::byte> frame);
  /// Queues a message with the payload's frames behind the first, which must stay as they are until
  /// `payload.sent` is called.
  Result<void> send(const PeerName& peer, std::span<const std::byte> frame, Payload payload);

 private:
  FrameSocket socket_;
};

}  // namespace batchwright
