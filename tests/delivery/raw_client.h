#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace batchwright::test {

/// The client's side of the conversation, message by message, right or wrong.
class RawClient {
 public:
  /// In Z85; all empty: no encryption.
  struct Keys {
    std::string server;
    std::string own_public;
    std::string own_secret;
  };

  explicit RawClient(const std::string& endpoint) : RawClient(endpoint, Keys{}) {}
  RawClient(const std::string& endpoint, const Keys& keys);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  template <class TableT>
  void send(TableT body) {
    const auto message = encode(std::move(body));
    send_bytes({reinterpret_cast<const std::byte*>(message.data()), message.size()});
  }
  /// As above; and says that it waits, so that it is given more than a first batch without having
  /// released that.
  void send(wire::SubscribeT subscribe) {
    const std::uint32_t subscription = subscribe.subscription;
    send<wire::SubscribeT>(std::move(subscribe));
    say_waiting(subscription);
  }
  /// Says that the program waits and holds so many batches.
  void say_waiting(std::uint32_t subscription = 1, std::uint32_t holds = 0);
  /// With a second frame after it.
  template <class TableT>
  void send_framed(TableT body, std::span<const std::byte> second) {
    const auto message = encode(std::move(body));
    send_two({reinterpret_cast<const std::byte*>(message.data()), message.size()}, second);
  }
  void send_two(std::span<const std::byte> first, std::span<const std::byte> second);
  /// Throws when the message does not leave within 10 s.
  void send_bytes(std::span<const std::byte> frame);
  /// Hello, if there is still a connection that it may leave by: ZeroMQ gives one up for good when
  /// the daemon refuses its encryption.
  void knock();
  /// A message of so many frames.
  void send_frames(std::size_t frames, std::span<const std::byte> frame);
  /// The next message; empty when none comes within 10 s.
  std::optional<ControlMessage> receive();
  /// What came after the first frame of the message that came last, and in how many frames.
  const std::vector<std::byte>& batch() const { return batch_; }
  std::size_t batch_frames() const { return batch_frames_; }
  /// The next message but signs of life.
  std::optional<ControlMessage> receive_news();
  /// Whether no message is there now.
  bool silent();

  /// Hello, and the Welcome's session; 0 when it was refused.
  std::uint64_t hello(bool inline_batches = false);
  std::uint64_t hello(wire::HelloT hello);
  /// Connects to the arena socket and binds the session. False when it was refused.
  bool attach(const std::string& arena_socket, std::uint64_t session);
  /// A descriptor of the arena, or -1; `bytes` as replied.
  int arena(std::uint32_t number, std::uint64_t session, std::uint64_t& bytes);
  /// Ends the arena connection, as the kernel does when a client dies.
  void die();
  /// Sends what is no request to the arena socket. False when it does not leave.
  bool spoil_arena_link();
  /// Whether the daemon ends its side of the arena connection within 10 s.
  bool arena_link_is_ended();
  /// Ends the connection to the endpoint, without a word.
  void hang_up();

  /// Hello and attach.
  void join(const std::string& arena_socket);
  void join(const std::string& arena_socket, wire::HelloT hello);
  std::uint64_t session() const { return session_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::byte> batch_;
  std::size_t batch_frames_ = 0;
  int arena_connection_ = -1;
  std::uint64_t session_ = 0;
};

/// A fresh pair of CURVE keys, in Z85.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};
KeyPair make_keys();

/// A subscription to feed "train".
wire::SubscribeT subscribe_to_train(std::uint32_t subscription = 1);

}  // namespace batchwright::test
