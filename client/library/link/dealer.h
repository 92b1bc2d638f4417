#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "client/library/fork_guard.h"
#include "client/library/ids.h"
#include "client/library/settings.h"
#include "formats/formats.h"

namespace batchwright {

/// The ZeroMQ socket to the daemon. Its .cpp file alone knows ZeroMQ.
/// Threads: one at a time, with a lock between them.
class Dealer {
 public:
  /// The daemon's address and keys, and limits for its messages.
  struct Way {
    std::string endpoint;
    std::optional<CurveKeys> keys;
    bool inline_batches = false;  ///< Large messages are taken, and heartbeats are sent.
  };
  /// A control message; a batch comes with a Delivery to a client without an arena.
  struct Incoming {
    ControlMessage control;
    Payload batch;
  };

  /// Begins to connect; ZeroMQ tries again until a daemon listens there.
  /// Errors: invalid_argument (the endpoint or a key), unsupported (no CURVE), io_error.
  static Result<std::unique_ptr<Dealer>> connect(const Way& way);

  /// Never waits: what is under way is bounded by the window of each subscription.
  /// Errors: io_error.
  Result<void> send(const flatbuffers::DetachedBuffer& message);

  /// The same for the last message: closing the socket waits up to 200 ms for it to leave.
  Result<void> send_last(const flatbuffers::DetachedBuffer& message);

  /// A message, or none when none is there. A batch stays in the frame it came in, which ZeroMQ
  /// puts at a multiple of 8 bytes, unless it is a small one that shares memory with others: that
  /// is copied to such a place, and so are the parts of one that came in several.
  /// Errors: malformed_message, io_error.
  Result<std::optional<Incoming>> receive();

  /// The bytes that have come over the present connection; empty where nobody counts them, as over
  /// `ipc://`.
  std::optional<std::uint64_t> bytes_received();

  /// Whether a connection that was made has ended since. ZeroMQ makes a new one, but the daemon
  /// that answers there knows nothing of us. What came before the end can be received after it.
  bool cut();

  /// Waits until there is a message, the connection ends, one of `descriptors` (at most 4) is
  /// readable, or the time is over; a signal may end it early. Errors: io_error.
  Result<void> wait(std::initializer_list<int> descriptors, std::chrono::milliseconds limit);

  ~Dealer();
  Dealer(const Dealer&) = delete;
  Dealer& operator=(const Dealer&) = delete;

 private:
  struct EndContext {
    void operator()(void* context) const noexcept;
  };
  struct CloseSocket {
    void operator()(void* socket) const noexcept;
  };
  Dealer() = default;
  Result<void> watch_connection();
  void note_events();

  std::unique_ptr<void, EndContext> context_;
  std::unique_ptr<void, CloseSocket> monitor_;
  std::unique_ptr<void, CloseSocket> socket_;  // closed before its context ends
  std::optional<ForkGuard> guard_;             ///< Guards the current connection.
  int connection_ = -1;                        ///< Its descriptor.
  bool cut_ = false;                           ///< One has ended; cut() has not reported it.
};

/// Errors: invalid_argument, when a key is no key or the pair is none; unsupported.
Result<void> check_keys(const CurveKeys& keys);

}  // namespace batchwright
