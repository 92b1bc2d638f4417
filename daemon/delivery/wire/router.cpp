#include "daemon/delivery/wire/router.h"

#include <utility>

namespace batchwright {
namespace {

/// Messages queued for one peer. A window of tickets is far less; a peer with this many queued does
/// not read. Batches behind tickets are bounded by the windows.
constexpr int kSendQueue = 4096;
/// Messages queued from one peer, of at most 1 MiB each.
constexpr int kReceiveQueue = 64;

SocketOptions router_options(const Router::Settings& settings) {
  SocketOptions options;
  options.send_queue = kSendQueue;
  options.receive_queue = kReceiveQueue;
  options.remote = settings.remote;
  options.heartbeats = settings.remote;
  options.curve_secret_key = settings.curve_secret_key;
  options.ask_gatekeeper = settings.ask_gatekeeper;
  return options;
}

}  // namespace

Router::Router(boost::asio::io_context& loop, SocketThreads& threads, const Settings& settings,
               OnMessage on_message)
    : socket_(
          loop, threads, router_options(settings),
          [remote = settings.remote, call = std::move(on_message)](const IncomingMessage& message) {
            const auto name = message.frames.front();
            Incoming incoming;
            incoming.peer = {remote, {reinterpret_cast<const char*>(name.data()), name.size()}};
            if (message.frames.size() > 1) incoming.frame = message.frames[1];
            if (message.frames.size() > 2) incoming.second = message.frames[2];
            incoming.frames = message.frame_count - 1;
            incoming.peer_address = message.peer_address;
            incoming.descriptor = message.descriptor;
            call(incoming);
          }) {}

Result<void> Router::send(const PeerName& peer, std::span<const std::byte> frame) {
  return socket_.send({bytes_of(peer.name), frame});
}

Result<void> Router::send(const PeerName& peer, std::span<const std::byte> frame, Payload payload) {
  return socket_.send({bytes_of(peer.name), frame}, std::move(payload));
}

}  // namespace batchwright
