#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The name ZeroMQ gives a peer for as long as it is connected: up to 255 bytes.
using PeerName = std::string;

/// Bytes that travel without a copy, from where they lie.
struct Payload {
  std::span<const std::byte> bytes;
  std::function<void()> sent;  ///< Called on the loop, later and once: the bytes are free again.
};

/// The ROUTER socket on the event loop, and the only code that knows ZeroMQ here.
///
/// Threads: the event loop only. Frames reach `on_message` one by one, never from within send().
class Router {
 public:
  /// A message of one frame, valid during the call; `frames` says how many it had in truth.
  using OnMessage =
      std::function<void(const PeerName&, std::span<const std::byte>, std::size_t frames)>;

  Router(boost::asio::io_context& loop, OnMessage on_message);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Errors: io_error, naming the endpoint and the reason.
  Result<void> bind(const std::string& endpoint);

  /// Queues one frame, and never waits. Errors: disconnected when the peer is gone, or reads so
  /// slowly that its queue is full; it then gets nothing, and is to be dropped.
  Result<void> send(const PeerName& peer, std::span<const std::byte> frame);
  /// The same with a second frame, which must stay as it is until `payload.sent` is called.
  Result<void> send(const PeerName& peer, std::span<const std::byte> frame, Payload payload);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace batchwright
