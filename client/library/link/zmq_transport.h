#pragma once

#include <memory>

#include "client/library/link/transport.h"
#include "formats/formats.h"

namespace batchwright {

/// The system's clock, ZeroMQ's sockets and the daemon's arena socket. Its .cpp file alone knows
/// ZeroMQ.
class ZmqTransport final : public Transport {
 public:
  /// Errors: io_error (no descriptor).
  static Result<std::unique_ptr<Transport>> make();

  explicit ZmqTransport(Descriptor alarm) : alarm_(std::move(alarm)) {}

  std::uint64_t draw_token() override;
  Result<std::unique_ptr<DaemonSocket>> connect(const Address& address) override;
  Result<std::shared_ptr<ArenaSource>> open_arenas(const std::string& path, SessionId session,
                                                   const Deadline& deadline) override;
  Result<void> wait(DaemonSocket* socket, const ArenaSource* arenas,
                    std::chrono::milliseconds limit) override;
  void wake() override;

 private:
  const Descriptor alarm_;  ///< An eventfd that wakes the thread in wait().
};

/// Errors: invalid_argument, when a key is no key or the pair is none; unsupported.
Result<void> check_keys(const CurveKeys& keys);

}  // namespace batchwright
