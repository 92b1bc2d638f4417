#pragma once

#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cstdlib>

#include "tests/client/fake/fake_daemon.h"

// Between the two files of the fake daemon.
namespace batchwright::test {

inline constexpr std::size_t kSlotBytes = 16384;
inline constexpr std::size_t kSlots = 64;
inline constexpr std::size_t kArenaBytes = kSlotBytes * kSlots;

inline void require(bool holds) {
  if (!holds) std::abort();  // the machine cannot run this test
}

/// What the thread inside owns.
struct FakeDaemon::Sockets {
  void* context = zmq_ctx_new();
  void* router = zmq_socket(context, ZMQ_ROUTER);
  int listener = -1;
  std::vector<int> connections;
  std::vector<std::byte> peer;
  std::size_t part_bytes = 0;  ///< The size of a batch's frames; 0: one frame.

  /// Linger is set before the socket is bound: a listener keeps the value it was made with, and by
  /// that value, without end by default, a session waits whose peer goes while the socket closes.
  Sockets() {
    const int linger = 0;
    zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof linger);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  void say(std::span<const std::byte> bytes, std::span<const std::byte> batch = {}) const {
    zmq_send(router, peer.data(), peer.size(), ZMQ_SNDMORE);
    zmq_send(router, bytes.data(), bytes.size(), batch.empty() ? 0 : ZMQ_SNDMORE);
    while (!batch.empty()) {
      const std::size_t part = part_bytes == 0 ? batch.size() : std::min(part_bytes, batch.size());
      zmq_send(router, batch.data(), part, part == batch.size() ? 0 : ZMQ_SNDMORE);
      batch = batch.subspan(part);
    }
  }
  template <class Body>
  void say(Body body) const {
    const auto bytes = encode(std::move(body));
    say(std::span(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  }
  void refuse(ErrorCode code, const std::string& text, std::uint32_t subscription) const {
    wire::RefusedT refused;
    refused.code = static_cast<std::uint16_t>(code);
    refused.message = text;
    refused.subscription = subscription;
    say(std::move(refused));
  }
  ~Sockets() {
    for (const int fd : connections) ::close(fd);
    if (listener >= 0) ::close(listener);
    zmq_close(router);
    zmq_ctx_term(context);
  }
};

}  // namespace batchwright::test
