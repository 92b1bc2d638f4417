#include "client/library/link/zmq_transport.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "client/library/fork_guard.h"
#include "client/library/memory/arena_link.h"
#include "client/library/reach.h"

namespace batchwright {
namespace {

/// A goodbye that cannot be sent in this time is not missed: the arena connection's end says it.
constexpr int kLingerMs = 200;
/// Short enough that a daemon which comes back at once is met at once. Each failed attempt doubles
/// it: a thousand clients must not overwhelm a machine on which a daemon is starting.
constexpr int kReconnectMs = 20;
constexpr int kLongestReconnectMs = 500;
constexpr int kHeartbeatMs = 1000;
/// The daemon's answer may stand behind a batch, or a part of one, on a slow link; whether anything
/// comes is watched by DaemonLink.
constexpr int kHeartbeatTimeoutMs = 60'000;
/// The daemon gives up a client whose heartbeats it misses for so long.
constexpr int kTimeToLiveMs = 10'000;
/// Each socket has a context of its own, so one name serves them all.
constexpr const char* kMonitor = "inproc://monitor";
/// Descriptors that a connection takes, those of ZeroMQ's threads included, with some to spare.
constexpr std::size_t kDescriptors = 16;
constexpr std::size_t kThreads = 2;  // of ZeroMQ

Error zmq_failed(const std::string& call) {
  return {ErrorCode::io_error, fmt::format("{}: {}", call, zmq_strerror(zmq_errno()))};
}

/// Retries a ZeroMQ call interrupted by a signal (EINTR); such a call has had no effect.
template <class Call>
int uninterrupted(Call call) {
  int result = call();
  while (result < 0 && zmq_errno() == EINTR) result = call();
  return result;
}

/// One frame as ZeroMQ received it.
class Frame {
 public:
  Frame() { zmq_msg_init(&message_); }
  ~Frame() { zmq_msg_close(&message_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Whether there was one. Errors: io_error.
  Result<bool> receive(void* socket) {
    const auto call = [&] { return zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT); };
    if (uninterrupted(call) >= 0) return true;
    if (zmq_errno() == EAGAIN) return false;
    return zmq_failed("zmq_msg_recv");
  }
  bool more() const { return zmq_msg_more(&message_) != 0; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }

 private:
  zmq_msg_t message_;
};

/// The bytes of a frame that has come whole; they live as long as the payload.
Payload payload_of(std::shared_ptr<Frame> frame) {
  const std::span<const std::byte> bytes = frame->bytes();
  // Where every number of a batch can be read, the largest having 8 bytes.
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (address % alignof(std::uint64_t) == 0) return {std::move(frame), bytes};
  auto copy = std::make_shared<std::vector<std::uint64_t>>(bytes.size() / 8 + 1);
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  const std::span<const std::byte> copied = std::as_bytes(std::span(*copy)).first(bytes.size());
  return {std::move(copy), copied};
}

/// Puts the parts of a batch, of which `part` is the first, behind each other. A message comes as a
/// whole, so that each part is there.
Result<Payload> receive_parts(void* socket, Frame& part, std::uint64_t bytes) {
  if (bytes > kMaxBatchBytes) {
    return Error{ErrorCode::malformed_message, fmt::format("a batch of {} bytes", bytes)};
  }
  const std::shared_ptr<std::uint64_t[]> memory(new std::uint64_t[bytes / 8 + 1]);
  const std::span<std::byte> all =
      std::as_writable_bytes(std::span(memory.get(), bytes / 8 + 1)).first(bytes);
  std::size_t have = 0;
  while (true) {
    const auto here = part.bytes();
    if (here.size() > bytes - have) break;
    std::memcpy(all.data() + have, here.data(), here.size());
    have += here.size();
    if (!part.more() && have == bytes) return Payload{memory, all};
    if (!part.more()) break;
    const auto came = part.receive(socket);
    if (!came) return came.error();
    if (!*came) break;
  }
  return Error{ErrorCode::malformed_message,
               fmt::format("the parts of a batch are not the {} bytes of its ticket", bytes)};
}

void set(void* socket, int option, int value) {
  zmq_setsockopt(socket, option, &value, sizeof value);
}

void set_limits(void* socket, bool inline_batches) {
  const auto largest =
      static_cast<std::int64_t>(inline_batches ? kMaxBatchBytes : kMaxControlBytes);
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
  set(socket, ZMQ_LINGER, 0);
  set(socket, ZMQ_SNDHWM, 0);  // windows bound both queues
  set(socket, ZMQ_RCVHWM, 0);
  set(socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  set(socket, ZMQ_RECONNECT_IVL_MAX, kLongestReconnectMs);
  if (!inline_batches) return;
  set(socket, ZMQ_HEARTBEAT_IVL, kHeartbeatMs);
  set(socket, ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs);
  // The daemon's side ends the connection as well, where a process that was cloned from ours holds
  // it open and we are dead.
  set(socket, ZMQ_HEARTBEAT_TTL, kTimeToLiveMs);
}

Result<void> set_keys(void* socket, const CurveKeys& keys) {
  for (const auto& [option, key] : {std::pair(ZMQ_CURVE_SERVERKEY, &keys.server),
                                    std::pair(ZMQ_CURVE_PUBLICKEY, &keys.own_public),
                                    std::pair(ZMQ_CURVE_SECRETKEY, &keys.own_secret)}) {
    if (zmq_setsockopt(socket, option, key->c_str(), key->size() + 1) == 0) continue;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a key of CURVE was not taken: {}", zmq_strerror(zmq_errno()))};
  }
  return {};
}

struct EndContext {
  void operator()(void* context) const noexcept {
    uninterrupted([&] { return zmq_ctx_term(context); });
  }
};
struct CloseSocket {
  void operator()(void* socket) const noexcept { zmq_close(socket); }
};

class ZmqSocket final : public DaemonSocket {
 public:
  /// Errors: as Transport::connect().
  static Result<std::unique_ptr<DaemonSocket>> connect(const Transport::Address& address);
  ~ZmqSocket() override;

  Result<void> send(const flatbuffers::DetachedBuffer& message) override;
  Result<void> send_with(const flatbuffers::DetachedBuffer& message, const Payload& frame) override;
  Result<void> send_last(const flatbuffers::DetachedBuffer& message) override;
  /// A batch stays in the frame it came in, which ZeroMQ puts at a multiple of 8 bytes, unless it
  /// is a small one that shares memory with others: that is copied to such a place, and so are the
  /// parts of one that came in several.
  Result<std::optional<Incoming>> receive() override;
  std::optional<std::uint64_t> bytes_received() override;
  /// ZeroMQ makes a new connection, but the daemon that answers there knows nothing of us.
  bool cut() override;
  /// What is readable when there is a message, and when the connection has ended.
  std::array<void*, 2> awaited() const { return {socket_.get(), monitor_.get()}; }

 private:
  ZmqSocket() = default;
  Result<void> watch_connection();
  Result<void> send_part(const void* bytes, std::size_t size, int flags);
  void note_events();

  std::unique_ptr<void, EndContext> context_;
  std::unique_ptr<void, CloseSocket> monitor_;
  std::unique_ptr<void, CloseSocket> socket_;  // closed before its context ends
  std::optional<ForkGuard> guard_;             ///< Guards the current connection.
  int connection_ = -1;                        ///< Its descriptor.
  bool cut_ = false;                           ///< One has ended; cut() has not reported it.
};

Result<std::unique_ptr<DaemonSocket>> ZmqSocket::connect(const Transport::Address& address) {
  std::unique_ptr<ZmqSocket> made(new ZmqSocket);
  made->context_.reset(zmq_ctx_new());
  if (!made->context_) return zmq_failed("zmq_ctx_new");
  made->socket_.reset(zmq_socket(made->context_.get(), ZMQ_DEALER));
  if (!made->socket_) return zmq_failed("zmq_socket");
  void* socket = made->socket_.get();
  set_limits(socket, address.inline_batches);
  // A numeric address of IPv6 stands in brackets; names go on as IPv4, as the daemon's * does.
  set(socket, ZMQ_IPV6, address.endpoint.find('[') != std::string::npos);
  if (address.keys) {
    if (auto taken = set_keys(socket, *address.keys); !taken) return taken.error();
  }
  if (auto watched = made->watch_connection(); !watched) return watched.error();
  if (uninterrupted([&] { return zmq_connect(socket, address.endpoint.c_str()); }) != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("endpoint \"{}\": {}", address.endpoint, zmq_strerror(zmq_errno()))};
  }
  return std::unique_ptr<DaemonSocket>(std::move(made));
}

/// ZeroMQ's thread sends an event of the connection with its lock held, and waits while nothing
/// receives it: so the events end before their receiver is closed.
ZmqSocket::~ZmqSocket() {
  if (socket_) zmq_socket_monitor(socket_.get(), nullptr, 0);
}

Result<void> ZmqSocket::watch_connection() {
  constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED;
  const auto watch = [&] { return zmq_socket_monitor(socket_.get(), kMonitor, kEvents); };
  if (uninterrupted(watch) != 0) return zmq_failed("zmq_socket_monitor");
  monitor_.reset(zmq_socket(context_.get(), ZMQ_PAIR));
  if (!monitor_) return zmq_failed("zmq_socket");
  set(monitor_.get(), ZMQ_LINGER, 0);
  if (uninterrupted([this] { return zmq_connect(monitor_.get(), kMonitor); }) != 0) {
    return zmq_failed("zmq_connect to the monitor");
  }
  return {};
}

Result<void> ZmqSocket::send_part(const void* bytes, std::size_t size, int flags) {
  const auto call = [&] { return zmq_send(socket_.get(), bytes, size, ZMQ_DONTWAIT | flags); };
  if (uninterrupted(call) < 0) return zmq_failed("zmq_send");
  return {};
}

Result<void> ZmqSocket::send(const flatbuffers::DetachedBuffer& message) {
  return send_part(message.data(), message.size(), 0);
}

Result<void> ZmqSocket::send_with(const flatbuffers::DetachedBuffer& message,
                                  const Payload& frame) {
  if (auto sent = send_part(message.data(), message.size(), ZMQ_SNDMORE); !sent) return sent;
  return send_part(frame.bytes.data(), frame.bytes.size(), 0);
}

Result<void> ZmqSocket::send_last(const flatbuffers::DetachedBuffer& message) {
  set(socket_.get(), ZMQ_LINGER, kLingerMs);
  return send(message);
}

Result<std::optional<DaemonSocket::Incoming>> ZmqSocket::receive() {
  Frame first;
  const auto there = first.receive(socket_.get());
  if (!there) return there.error();
  if (!*there) return std::optional<Incoming>();
  if (!guard_) note_events();  // an answer means connected: a fork may come now
  auto control = ControlMessage::decode(first.bytes());
  if (!control) return control.error();
  Incoming incoming{std::move(*control), {}};
  if (!first.more()) return std::optional(std::move(incoming));
  auto second = std::make_shared<Frame>();
  if (const auto came = second->receive(socket_.get()); !came) return came.error();
  const auto* ticket = incoming.control.as<wire::Delivery>();
  if (ticket == nullptr) {
    return Error{ErrorCode::malformed_message, "a message of too many frames from the daemon"};
  }
  if (second->more()) {
    auto whole = receive_parts(socket_.get(), *second, ticket->size());
    if (!whole) return whole.error();
    incoming.batch = *std::move(whole);
  } else {
    incoming.batch = payload_of(std::move(second));
  }
  return std::optional(std::move(incoming));
}

/// The kernel's struct tcp_info begins with more than glibc's header shows; all before this number
/// has 128 bytes.
std::optional<std::uint64_t> ZmqSocket::bytes_received() {
  struct {
    std::array<std::byte, 128> before;
    std::uint64_t bytes_received;
  } info{};
  socklen_t size = sizeof info;
  note_events();
  if (connection_ < 0 || getsockopt(connection_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < sizeof info) {
    return {};
  }
  return info.bytes_received;
}

bool ZmqSocket::cut() {
  note_events();
  return std::exchange(cut_, false);
}

/// The first frame of an event is its number, in 16 bits, and a value, in 32: here the descriptor.
/// ZeroMQ tells of an end before it closes the descriptor. So one that stands for something else
/// by the time we look has its end in the queue, and is forgotten at once.
void ZmqSocket::note_events() {
  while (true) {
    Frame event;
    const auto came = event.receive(monitor_.get());
    if (!came || !*came) return;
    std::uint16_t number = 0;
    std::int32_t descriptor = -1;
    const auto bytes = event.bytes();
    if (bytes.size() == sizeof number + sizeof descriptor) {
      std::memcpy(&number, bytes.data(), sizeof number);
      std::memcpy(&descriptor, bytes.data() + sizeof number, sizeof descriptor);
    }
    Frame address;
    if (event.more()) static_cast<void>(address.receive(monitor_.get()));
    guard_.reset();
    connection_ = number == ZMQ_EVENT_CONNECTED ? descriptor : -1;
    if (number == ZMQ_EVENT_CONNECTED) guard_.emplace(descriptor);
    if (number == ZMQ_EVENT_DISCONNECTED) cut_ = true;
  }
}

}  // namespace

Result<std::unique_ptr<Transport>> ZmqTransport::make() {
  Descriptor alarm(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!alarm) return Error{ErrorCode::io_error, "eventfd: no descriptor left"};
  return std::unique_ptr<Transport>(std::make_unique<ZmqTransport>(std::move(alarm)));
}

/// Not by std::random_device: a library that holds the C++ library would need glibc 2.36 for it.
std::uint64_t ZmqTransport::draw_token() {
  std::uint64_t token = 0;
  if (::getentropy(&token, sizeof token) != 0) {
    throw std::system_error(errno, std::generic_category(), "getentropy");
  }
  return token | 1;  // 0 would be none
}

/// ZeroMQ ends a process that has no descriptor or thread for it.
Result<std::unique_ptr<DaemonSocket>> ZmqTransport::connect(const Address& address) {
  if (auto room = room_for_descriptors(kDescriptors); !room) return room.error();
  if (auto room = room_for_threads(kThreads, "a connection"); !room) return room.error();
  return ZmqSocket::connect(address);
}

Result<std::shared_ptr<ArenaSource>> ZmqTransport::open_arenas(const std::string& path,
                                                               SessionId session,
                                                               const Deadline& deadline) {
  auto opened = ArenaLink::open(path, session, deadline);
  if (!opened) return opened.error();
  return std::shared_ptr<ArenaSource>(std::move(*opened));
}

Result<void> ZmqTransport::wait(DaemonSocket* socket, const ArenaSource* arenas,
                                std::chrono::milliseconds limit) {
  std::array<zmq_pollitem_t, 4> items{{{nullptr, alarm_.get(), ZMQ_POLLIN, 0}}};
  std::size_t count = 1;
  if (socket != nullptr) {
    for (void* one : static_cast<ZmqSocket*>(socket)->awaited()) {
      items.at(count++) = {one, 0, ZMQ_POLLIN, 0};
    }
  }
  if (arenas != nullptr) items.at(count++) = {nullptr, arenas->descriptor(), ZMQ_POLLIN, 0};
  // zmq_poll looks at a socket's own state before it sleeps, so that the edge-triggered descriptor
  // behind it cannot be missed.
  const long sleep = static_cast<long>(std::min<std::int64_t>(limit.count(), INT_MAX));
  const int found = zmq_poll(items.data(), static_cast<int>(count), sleep);
  if (found < 0 && zmq_errno() != EINTR) return zmq_failed("zmq_poll");
  std::uint64_t calls = 0;
  static_cast<void>(!read(alarm_.get(), &calls, sizeof calls));  // it does not block
  return {};
}

void ZmqTransport::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(alarm_.get(), &one, sizeof one));  // full is as good
}

Result<void> check_keys(const CurveKeys& keys) {
  if (zmq_has("curve") == 0) {
    return Error{ErrorCode::unsupported, "this libzmq was built without CURVE"};
  }
  std::array<std::uint8_t, 32> raw{};
  for (const std::string* key : {&keys.server, &keys.own_public, &keys.own_secret}) {
    if (zmq_z85_decode(raw.data(), key->c_str()) == nullptr) {
      return Error{ErrorCode::invalid_argument, "a CURVE key is not Z85 text"};
    }
  }
  std::array<char, 41> derived{};
  if (zmq_curve_public(derived.data(), keys.own_secret.c_str()) != 0) {
    return Error{ErrorCode::invalid_argument, "secret_key is not a CURVE key"};
  }
  if (keys.own_public == derived.data()) return {};
  return Error{ErrorCode::invalid_argument, "public_key does not belong to secret_key"};
}

}  // namespace batchwright
