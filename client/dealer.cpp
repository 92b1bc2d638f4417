#include "client/dealer.h"

#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace batchwright {
namespace {

/// A goodbye that cannot be sent in this time is not missed: the arena connection's end says it.
constexpr int kLingerMs = 200;

Error failed(const std::string& call) {
  return {ErrorCode::io_error, call + ": " + zmq_strerror(zmq_errno())};
}

struct CloseMessage {
  void operator()(zmq_msg_t* message) const noexcept { zmq_msg_close(message); }
};

}  // namespace

void Dealer::EndContext::operator()(void* context) const noexcept {
  while (zmq_ctx_term(context) != 0 && zmq_errno() == EINTR) {
  }
}

void Dealer::CloseSocket::operator()(void* socket) const noexcept { zmq_close(socket); }

Result<std::unique_ptr<Dealer>> Dealer::connect(const std::string& endpoint) {
  std::unique_ptr<Dealer> dealer(new Dealer);
  dealer->context_.reset(zmq_ctx_new());
  if (!dealer->context_) return failed("zmq_ctx_new");
  dealer->socket_.reset(zmq_socket(dealer->context_.get(), ZMQ_DEALER));
  if (!dealer->socket_) return failed("zmq_socket");
  void* socket = dealer->socket_.get();
  const int linger = 0;
  const int unlimited = 0;  // windows bound both queues
  const auto largest = static_cast<std::int64_t>(kMaxControlBytes);
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
  zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
  if (zmq_connect(socket, endpoint.c_str()) != 0) {
    return Error{ErrorCode::invalid_argument,
                 "endpoint \"" + endpoint + "\": " + zmq_strerror(zmq_errno())};
  }
  return dealer;
}

Result<void> Dealer::send(const flatbuffers::DetachedBuffer& message) {
  while (zmq_send(socket_.get(), message.data(), message.size(), ZMQ_DONTWAIT) < 0) {
    if (zmq_errno() != EINTR) return failed("zmq_send");
  }
  return {};
}

Result<void> Dealer::send_last(const flatbuffers::DetachedBuffer& message) {
  zmq_setsockopt(socket_.get(), ZMQ_LINGER, &kLingerMs, sizeof kLingerMs);
  return send(message);
}

Result<std::optional<ControlMessage>> Dealer::receive() {
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  const std::unique_ptr<zmq_msg_t, CloseMessage> closing(&frame);
  while (zmq_msg_recv(&frame, socket_.get(), ZMQ_DONTWAIT) < 0) {
    if (zmq_errno() == EAGAIN) return std::optional<ControlMessage>();
    if (zmq_errno() != EINTR) return failed("zmq_msg_recv");
  }
  if (zmq_msg_more(&frame) != 0) {
    return Error{ErrorCode::malformed_message, "a message of several frames from the daemon"};
  }
  auto message = ControlMessage::decode(
      {static_cast<const std::byte*>(zmq_msg_data(&frame)), zmq_msg_size(&frame)});
  if (!message) return message.error();
  return std::optional(std::move(*message));
}

Result<void> Dealer::wait(std::initializer_list<int> descriptors, std::chrono::milliseconds limit) {
  std::array<zmq_pollitem_t, 5> items{};
  int count = 0;
  items[static_cast<std::size_t>(count++)] = {socket_.get(), 0, ZMQ_POLLIN, 0};
  for (const int fd : descriptors) {
    items.at(static_cast<std::size_t>(count++)) = {nullptr, fd, ZMQ_POLLIN, 0};
  }
  // zmq_poll looks at the socket's own state before it sleeps, so that the edge-triggered
  // descriptor behind it cannot be missed.
  const long sleep = static_cast<long>(std::min<std::int64_t>(limit.count(), INT_MAX));
  if (zmq_poll(items.data(), count, sleep) < 0 && zmq_errno() != EINTR) return failed("zmq_poll");
  return {};
}

}  // namespace batchwright
