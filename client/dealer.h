#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

namespace batchwright {

/// The ZeroMQ socket to the daemon. Its .cpp file alone knows ZeroMQ.
/// Threads: one at a time, with a lock between them.
class Dealer {
 public:
  /// Begins to connect; ZeroMQ tries again until somebody listens there.
  /// Errors: invalid_argument (the endpoint), io_error.
  static Result<std::unique_ptr<Dealer>> connect(const std::string& endpoint);

  /// Never waits: what is under way is bounded by the window of each subscription.
  /// Errors: io_error.
  Result<void> send(const flatbuffers::DetachedBuffer& message);

  /// The same for the last message: closing the socket waits up to 200 ms for it to leave.
  Result<void> send_last(const flatbuffers::DetachedBuffer& message);

  /// A message, or none when none is there. Errors: malformed_message, io_error.
  Result<std::optional<ControlMessage>> receive();

  /// Waits until there is a message, one of `descriptors` (at most 4) is readable, or the time
  /// is over; a signal may end it early. Errors: io_error.
  Result<void> wait(std::initializer_list<int> descriptors, std::chrono::milliseconds limit);

 private:
  struct EndContext {
    void operator()(void* context) const noexcept;
  };
  struct CloseSocket {
    void operator()(void* socket) const noexcept;
  };
  Dealer() = default;

  std::unique_ptr<void, EndContext> context_;
  std::unique_ptr<void, CloseSocket> socket_;  // closed before its context ends
};

}  // namespace batchwright
