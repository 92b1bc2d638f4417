#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/ids.h"
#include "client/library/memory/arenas.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// The socket to one daemon.
/// Threads: one at a time, with a lock between them.
class DaemonSocket {
 public:
  /// A control message; a batch comes with a Delivery to a client without an arena.
  struct Incoming {
    ControlMessage control;
    Payload batch;
  };

  virtual ~DaemonSocket() = default;

  /// Never waits: what is under way is bounded by the window of each subscription.
  /// Errors: io_error.
  virtual Result<void> send(const flatbuffers::DetachedBuffer& message) = 0;
  /// The same for a message with a second frame.
  virtual Result<void> send_with(const flatbuffers::DetachedBuffer& message,
                                 const Payload& frame) = 0;
  /// The same for the last message: closing the socket waits up to 200 ms for it to leave.
  virtual Result<void> send_last(const flatbuffers::DetachedBuffer& message) = 0;
  /// A message, or none when none has come. Errors: malformed_message, io_error.
  virtual Result<std::optional<Incoming>> receive() = 0;
  /// The bytes that have come over the present connection; empty where they are not counted, as
  /// over `ipc://`.
  virtual std::optional<std::uint64_t> bytes_received() = 0;
  /// Whether a connection that was made has ended since this was asked last. What came before the
  /// end can be received after it.
  virtual bool cut() = 0;
};

/// All that a session takes from the machine: time, the socket to the daemon, the arenas that it
/// hands over, and a wait for any of them. The library has one, over ZeroMQ and Unix sockets; a
/// simulation has its own, and runs whole sessions in one thread and in virtual time.
///
/// Lifetime: the sockets that it makes end before it.
/// Threads: one at a time, with a lock between them; wake() from any.
class Transport {
 public:
  /// A daemon's address and keys, and limits for its messages.
  struct Address {
    std::string endpoint;
    std::optional<CurveKeys> keys;
    bool inline_batches = false;  ///< Large messages are taken, and heartbeats are sent.
  };

  virtual ~Transport() = default;

  /// Not a virtual call: programs take batches by it.
  Time now() const { return virtual_time_ ? *virtual_time_ : std::chrono::steady_clock::now(); }
  /// A number of 64 bits, not 0, that no other client draws.
  virtual std::uint64_t draw_token() = 0;
  /// Begins to connect, and tries again until a daemon listens.
  /// Errors: invalid_argument (the endpoint or a key), unsupported (no CURVE), io_error.
  virtual Result<std::unique_ptr<DaemonSocket>> connect(const Address& address) = 0;
  /// Connects to the socket at `path` on which a daemon hands over arenas, for this session.
  /// Errors: timed_out, io_error, disconnected, malformed_message, what the daemon refuses with.
  virtual Result<std::shared_ptr<ArenaSource>> open_arenas(const std::string& path,
                                                           SessionId session,
                                                           const Deadline& deadline) = 0;
  /// Waits until there is a message, a connection ends, or the time is over; ended early by wake(),
  /// and perhaps by a signal. Both may be null. Errors: io_error.
  virtual Result<void> wait(DaemonSocket* socket, const ArenaSource* arenas,
                            std::chrono::milliseconds limit) = 0;
  virtual void wake() = 0;

 protected:
  const Time* virtual_time_ = nullptr;  ///< Of a simulation; null: the system's clock.
};

}  // namespace batchwright
