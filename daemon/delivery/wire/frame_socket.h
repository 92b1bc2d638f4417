#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// Bytes that travel without a copy, from where they lie.
struct Payload {
  std::span<const std::byte> bytes;
  std::function<void()> sent;  ///< Called on the loop, later and once: the bytes are free again.
  std::size_t part_bytes =
      0;  ///< The size of a frame, except for the last one; 0: one frame for all.
};

/// The threads that move bytes in and out of sockets: one for this machine's clients, and others
/// for those of a network, whose encryption takes a core. So a batch that is being encrypted never
/// holds up a local ticket.
///
/// Lifetime: outlives its sockets, and must end before the memory that payloads lie in: until then
///   ZeroMQ may read it. Ending takes kLinger at most.
class SocketThreads {
 public:
  /// `log` outlives the sockets; null: failures to receive are not logged. Without threads for
  /// remote peers, which sockets may still have, the one serves all.
  explicit SocketThreads(EventLog* log = nullptr, unsigned remote = 0);
  ~SocketThreads();
  SocketThreads(const SocketThreads&) = delete;
  SocketThreads& operator=(const SocketThreads&) = delete;

  /// How long a last word such as Bye may take to leave, for a peer that reads slowly.
  static constexpr std::chrono::milliseconds kLinger{200};
  /// Threads for remote peers: half the number of cores, 1 to 8; more would take cores from
  /// trainers.
  static unsigned remote_threads_of(unsigned cores);

 private:
  friend class FrameSocket;
  struct State;
  std::unique_ptr<State> state_;
};

/// A socket's purpose, and its limits towards peers.
struct SocketOptions {
  enum class Kind : std::uint8_t {
    router,     ///< The first frame names the peer.
    publisher,  ///< Sends to all listeners; slow ones lose messages.
    reply,      ///< One answer to each question.
  };
  Kind kind = Kind::router;
  bool remote = false;       ///< Its peers are on a network.
  int send_queue = 1000;     ///< Messages to one peer that may pile up.
  int receive_queue = 1000;  ///< And from one.
  /// Peers are asked for a sign of life each second. ZeroMQ itself gives one up that has not
  /// answered for kHeartbeatTimeout, so that no connection stays for good whose other end is gone.
  bool heartbeats = false;
  std::string curve_secret_key;  ///< Z85 text. Empty: no encryption.
  bool ask_gatekeeper = false;   ///< Checks a peer's key before it is let in (zap_authenticator.h).
};

/// A message as it arrived, valid during the call.
struct IncomingMessage {
  std::vector<std::span<const std::byte>> frames;  ///< The first 8 of them.
  std::size_t frame_count = 0;                     ///< The number it had.
  std::string_view peer_address;                   ///< For ipc://, a host name and `:uid:gid:pid`.
  int descriptor = -1;                             ///< The connection's, if it has one.
};

/// A ZeroMQ socket on the event loop, and the only code of this room that knows ZeroMQ.
///
/// Threads: the event loop only. `on_message` never comes from within send().
class FrameSocket {
 public:
  using OnMessage = std::function<void(const IncomingMessage&)>;

  /// Without `on_message` it only sends.
  FrameSocket(boost::asio::io_context& loop, SocketThreads& threads, const SocketOptions& options,
              OnMessage on_message);
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  /// The endpoint that it came to be, with the port in the place of port 0.
  /// Errors: io_error, naming the endpoint and the reason.
  Result<std::string> bind(const std::string& endpoint);

  /// Queues one message, and never waits. Errors: disconnected when the peer is gone, or reads so
  /// slowly that its queue is full; it then gets nothing.
  using Frames = std::initializer_list<std::span<const std::byte>>;
  Result<void> send(Frames frames);
  /// Queues a message whose last frames are those of the payload, which must stay as it is until
  /// `payload.sent` is called.
  Result<void> send(Frames frames, Payload payload);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The public key, in Z85, of a secret one. Errors: bad_configuration.
Result<std::string> public_key_of(const std::string& secret_key);
/// 32 bytes in Z85, as people write keys.
std::string key_text(std::span<const std::byte> key);

}  // namespace batchwright
