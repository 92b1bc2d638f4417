#include "tests/delivery/raw_client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <zmq.hpp>

namespace batchwright::test {

struct RawClient::State {
  zmq::context_t context;
  zmq::socket_t socket{context, zmq::socket_type::dealer};
};

RawClient::RawClient(const std::string& endpoint, const Keys& keys)
    : state_(std::make_unique<State>()) {
  if (!keys.server.empty()) {
    state_->socket.set(zmq::sockopt::curve_serverkey, keys.server);
    state_->socket.set(zmq::sockopt::curve_publickey, keys.own_public);
    state_->socket.set(zmq::sockopt::curve_secretkey, keys.own_secret);
  }
  state_->socket.set(zmq::sockopt::linger, 0);
  state_->socket.set(zmq::sockopt::rcvtimeo, 10'000);
  state_->socket.set(zmq::sockopt::sndtimeo, 10'000);
  state_->socket.connect(endpoint);
}

RawClient::~RawClient() { die(); }

void RawClient::say_waiting(std::uint32_t subscription, std::uint32_t holds) {
  wire::AskT question;
  question.subscription = subscription;
  question.quiet = true;
  question.holds = holds;
  send(std::move(question));
}

void RawClient::send_bytes(std::span<const std::byte> frame) {
  if (!state_->socket.send(zmq::buffer(frame.data(), frame.size()), zmq::send_flags::none)) {
    throw std::runtime_error("a message did not leave within 10 s");
  }
}

void RawClient::send_two(std::span<const std::byte> first, std::span<const std::byte> second) {
  state_->socket.send(zmq::buffer(first.data(), first.size()), zmq::send_flags::sndmore);
  send_bytes(second);
}

void RawClient::send_frames(std::size_t frames, std::span<const std::byte> frame) {
  for (std::size_t i = 1; i < frames; ++i) {
    state_->socket.send(zmq::buffer(frame.data(), frame.size()), zmq::send_flags::sndmore);
  }
  send_bytes(frame);
}

void RawClient::knock() {
  wire::HelloT hello;
  hello.protocol = kProtocolVersion;
  hello.inline_batches = true;
  const auto message = encode(std::move(hello));
  static_cast<void>(
      state_->socket.send(zmq::buffer(message.data(), message.size()), zmq::send_flags::dontwait));
}

std::optional<ControlMessage> RawClient::receive() {
  zmq::message_t frame;
  batch_.clear();
  batch_frames_ = 0;
  if (!state_->socket.recv(frame)) return std::nullopt;
  for (bool more = frame.more(); more; ++batch_frames_) {
    zmq::message_t part;
    static_cast<void>(state_->socket.recv(part));
    const auto* bytes = static_cast<const std::byte*>(part.data());
    batch_.insert(batch_.end(), bytes, bytes + part.size());
    more = part.more();
  }
  auto message =
      ControlMessage::decode({static_cast<const std::byte*>(frame.data()), frame.size()});
  if (!message) return std::nullopt;
  return std::move(*message);
}

std::optional<ControlMessage> RawClient::receive_news() {
  auto message = receive();
  while (message && message->as<wire::Alive>() != nullptr) message = receive();
  return message;
}

bool RawClient::silent() { return (state_->socket.get(zmq::sockopt::events) & ZMQ_POLLIN) == 0; }

std::uint64_t RawClient::hello(bool inline_batches) {
  wire::HelloT hello;
  hello.inline_batches = inline_batches;
  hello.protocol = kProtocolVersion;
  hello.client = "raw";
  return this->hello(std::move(hello));
}

std::uint64_t RawClient::hello(wire::HelloT hello) {
  send(std::move(hello));
  const auto answer = receive();
  if (!answer || answer->as<wire::Welcome>() == nullptr) return 0;
  return session_ = answer->as<wire::Welcome>()->session();
}

bool RawClient::attach(const std::string& arena_socket, std::uint64_t session) {
  arena_connection_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, arena_socket.c_str(), sizeof address.sun_path - 1);
  if (::connect(arena_connection_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return false;
  }
  ArenaRequest request;
  request.session = session;
  ArenaReply reply;
  return ::send(arena_connection_, &request, sizeof request, MSG_NOSIGNAL) == sizeof request &&
         ::recv(arena_connection_, &reply, sizeof reply, MSG_WAITALL) == sizeof reply &&
         reply.code == 0;
}

int RawClient::arena(std::uint32_t number, std::uint64_t session, std::uint64_t& bytes) {
  ArenaRequest request;
  request.arena = number;
  request.session = session;
  ::send(arena_connection_, &request, sizeof request, MSG_NOSIGNAL);
  ArenaReply reply;
  iovec buffer{&reply, sizeof reply};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  int descriptor = -1;
  if (::recvmsg(arena_connection_, &message, MSG_CMSG_CLOEXEC) != sizeof reply) return -1;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  }
  bytes = reply.bytes;
  return descriptor;
}

void RawClient::die() {
  if (arena_connection_ >= 0) ::close(arena_connection_);
  arena_connection_ = -1;
}

bool RawClient::spoil_arena_link() {
  const std::array<char, sizeof(ArenaRequest)> noise{};
  return ::send(arena_connection_, noise.data(), noise.size(), MSG_NOSIGNAL) == sizeof noise;
}

bool RawClient::arena_link_is_ended() {
  const timeval limit{10, 0};
  ::setsockopt(arena_connection_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char byte = 0;
  return ::recv(arena_connection_, &byte, 1, 0) == 0;
}

void RawClient::hang_up() { state_->socket.close(); }

void RawClient::join(const std::string& arena_socket) {
  if (hello() == 0 || !attach(arena_socket, session_)) throw std::runtime_error("refused");
}

void RawClient::join(const std::string& arena_socket, wire::HelloT hello) {
  if (this->hello(std::move(hello)) == 0 || !attach(arena_socket, session_)) {
    throw std::runtime_error("refused");
  }
}

KeyPair make_keys() {
  std::array<char, 41> public_key{};
  std::array<char, 41> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) throw zmq::error_t();
  return {public_key.data(), secret_key.data()};
}

wire::SubscribeT subscribe_to_train(std::uint32_t subscription) {
  wire::SubscribeT subscribe;
  subscribe.subscription = subscription;
  subscribe.feed = "train";
  subscribe.epochs = 1;
  return subscribe;
}

}  // namespace batchwright::test
