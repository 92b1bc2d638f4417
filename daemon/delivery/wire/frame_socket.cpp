#include "daemon/delivery/wire/frame_socket.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "daemon/delivery/wire/intake.h"

namespace batchwright {
namespace {

/// What is handled in one turn of the loop, so that a flood leaves time to the others.
constexpr int kMessagesPerTurn = 256;
constexpr std::size_t kBytesPerTurn = kMaxControlBytes;

constexpr std::size_t kMostFrames = 8;
constexpr std::chrono::milliseconds kHeartbeat{1000};
constexpr std::chrono::milliseconds kHeartbeatTimeout = std::chrono::minutes(10);
/// A connection that has not shown by then that it speaks ZeroMQ, and has a key, is closed.
constexpr std::chrono::milliseconds kHandshake{3000};
constexpr unsigned kMostRemoteThreads = 8;

/// The callback, and its loop, for when ZeroMQ is done with the bytes of all frames.
struct Sent {
  boost::asio::io_context& loop;
  std::function<void()> callback;
  std::atomic<std::size_t> frames;
};

/// Called on a thread of ZeroMQ's.
void bytes_are_free(void*, void* hint) {
  auto* const sent = static_cast<Sent*>(hint);
  if (sent->frames.fetch_sub(1) != 1) return;
  const std::unique_ptr<Sent> last(sent);
  boost::asio::post(last->loop, std::move(last->callback));
}

/// The frames of a payload. ZeroMQ takes memory that can be written to, and only reads it.
std::vector<zmq::message_t> borrowed(boost::asio::io_context& loop, Payload payload) {
  const std::size_t all = payload.bytes.size();
  const std::size_t part = payload.part_bytes == 0 ? all : std::min(payload.part_bytes, all);
  const std::size_t count = all == 0 ? 1 : (all + part - 1) / part;
  auto* const sent = new Sent{loop, std::move(payload.sent), {count}};  // freed by the last frame
  std::vector<zmq::message_t> frames;
  frames.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = payload.bytes.subspan(i * part, std::min(part, all - i * part));
    frames.emplace_back(const_cast<std::byte*>(bytes.data()), bytes.size(), bytes_are_free, sent);
  }
  return frames;
}

zmq::socket_type type_of(SocketOptions::Kind kind) {
  switch (kind) {
    case SocketOptions::Kind::router: return zmq::socket_type::router;
    case SocketOptions::Kind::publisher: return zmq::socket_type::pub;
    case SocketOptions::Kind::reply: break;
  }
  return zmq::socket_type::rep;
}

void set_options(zmq::socket_t& socket, const SocketOptions& options) {
  // Before bind(): a listener keeps the linger it was made with, and a session whose peer goes
  // while the socket closes waits so long. ZeroMQ's default is without end.
  socket.set(zmq::sockopt::linger, static_cast<int>(SocketThreads::kLinger.count()));
  socket.set(zmq::sockopt::handshake_ivl, static_cast<int>(kHandshake.count()));
  socket.set(zmq::sockopt::sndhwm, options.send_queue);
  socket.set(zmq::sockopt::rcvhwm, options.receive_queue);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxControlBytes));
  if (options.kind == SocketOptions::Kind::router) socket.set(zmq::sockopt::router_mandatory, true);
  if (options.heartbeats) {
    // Without a time to live: the other side's ZeroMQ would count that down while a large batch is
    // coming, and end the connection in the middle of it.
    socket.set(zmq::sockopt::heartbeat_ivl, static_cast<int>(kHeartbeat.count()));
    socket.set(zmq::sockopt::heartbeat_timeout, static_cast<int>(kHeartbeatTimeout.count()));
  }
  if (options.curve_secret_key.empty()) return;
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, options.curve_secret_key);
  if (options.ask_gatekeeper) socket.set(zmq::sockopt::zap_domain, "batchwright");
}

/// Retries a ZeroMQ call interrupted by a signal (EINTR); such a call has had no effect.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

/// Empty where the transport tells none.
std::string_view address_of(const zmq::message_t& frame) {
  const char* address = zmq_msg_gets(frame.handle(), "Peer-Address");
  return address == nullptr ? std::string_view() : address;
}

Error queue_is_full() {
  return {ErrorCode::disconnected, "the peer does not read: its queue is full"};
}

}  // namespace

struct SocketThreads::State {
  State(EventLog* events, unsigned remote_threads)
      : log(events), remote(remote_threads), context(static_cast<int>(1 + remote_threads)) {}

  /// A bit for each thread that may serve a connection. ZeroMQ takes the one with the least load.
  std::uint64_t affinity(bool is_remote) const {
    constexpr std::uint64_t kFirst = 1;
    return is_remote && remote != 0 ? ((kFirst << remote) - 1) << 1 : kFirst;
  }

  EventLog* log;
  unsigned remote;
  zmq::context_t context;
};

SocketThreads::SocketThreads(EventLog* log, unsigned remote)
    : state_(std::make_unique<State>(log, std::min(remote, kMostRemoteThreads))) {}
SocketThreads::~SocketThreads() = default;

unsigned SocketThreads::remote_threads_of(unsigned cores) {
  return std::clamp(cores / 2, 1U, kMostRemoteThreads);
}

/// ZMQ_FD becomes readable when ZeroMQ's thread has something for the socket, and each call of the
/// socket may take that in: so what a send has taken in shows at the next attempt to receive only.
struct FrameSocket::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& event_loop, EventLog* events, zmq::socket_t made,
        OnMessage callback)
      : loop(event_loop),
        log(events),
        on_message(std::move(callback)),
        socket(std::move(made)),
        descriptor(event_loop, socket.get(zmq::sockopt::fd)) {}

  void look_soon() {
    if (look_posted || looking || stopped || !on_message) return;
    look_posted = true;
    boost::asio::post(loop, [self = shared_from_this()] {
      self->look_posted = false;
      self->look();
    });
  }

  /// Handles what has arrived, then waits for the descriptor.
  void look() {
    std::optional<EventLog::Turn> turn;
    if (log != nullptr) turn.emplace(*log, "messages");
    looking = true;  // what is sent meanwhile is followed by an attempt to receive in any case
    const bool all = receive_all();
    looking = false;
    all ? wait() : look_soon();
  }

  /// False when there may be more than a turn's share.
  bool receive_all() {
    std::size_t bytes = 0;
    for (int i = 0; i < kMessagesPerTurn && bytes < kBytesPerTurn && !stopped; ++i) {
      if (!receive_one(bytes)) return true;
    }
    return false;
  }

  /// The attempt to receive that came before has taken in all there was. Since then the descriptor
  /// is readable when there is more, and a wait that begins finds it so.
  void wait() {
    if (waiting || stopped) return;
    waiting = true;
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            self->waiting = false;
                            if (!error) self->look();
                          });
  }

  auto receive(zmq::message_t& frame, zmq::recv_flags flags) {
    return uninterrupted([&] { return socket.recv(frame, flags); });
  }

  /// False when nothing is there.
  bool receive_one(std::size_t& bytes) {
    std::array<zmq::message_t, kMostFrames> frames;
    IncomingMessage message;
    std::size_t size = 0;
    try {
      if (!receive(frames[0], zmq::recv_flags::dontwait)) return false;
      message.frame_count = 1;
      size = frames[0].size();
      for (bool more = frames[0].more(); more; ++message.frame_count) {
        zmq::message_t frame;
        static_cast<void>(receive(frame, zmq::recv_flags::none));
        more = frame.more();
        size += frame.size();
        if (message.frame_count < kMostFrames) frames[message.frame_count] = std::move(frame);
      }
    } catch (const zmq::error_t& error) {
      if (log != nullptr) log->note<Event::receive_failed>(error.what());
      return false;
    }
    bytes += size;
    for (std::size_t i = 0; i < std::min(message.frame_count, kMostFrames); ++i) {
      message.frames.push_back(bytes_of(frames[i].to_string_view()));
    }
    // Of a message that was there when ZMQ_EVENTS was asked, the frame with the peer's name knows
    // nothing of its connection.
    const zmq::message_t& whence = frames[std::min<std::size_t>(message.frame_count - 1, 1)];
    message.peer_address = address_of(whence);
    message.descriptor = zmq_msg_get(whence.handle(), ZMQ_SRCFD);
    consume_intake(message.descriptor, message.frame_count, size);
    on_message(message);
    return true;
  }

  /// Ends a message of which a frame could not be sent: ZeroMQ would take the next message's frames
  /// for more of it, and they would go to its peer.
  struct Begun {
    zmq::socket_t& socket;
    bool more = false;
    ~Begun() {
      if (more) zmq_send(socket.handle(), "", 0, ZMQ_DONTWAIT);
    }
  };

  /// False when the queue is full. Throws what ZeroMQ throws.
  bool send(Frames frames, std::span<zmq::message_t> payload) {
    const auto flags = zmq::send_flags::dontwait;
    std::size_t left = frames.size() + payload.size();
    Begun begun{socket};
    for (const auto& frame : frames) {
      const auto how = --left == 0 ? flags : flags | zmq::send_flags::sndmore;
      const auto bytes = zmq::buffer(frame.data(), frame.size());
      if (!uninterrupted([&] { return socket.send(bytes, how); })) return false;
      begun.more = left != 0;
    }
    for (zmq::message_t& frame : payload) {
      const auto how = --left == 0 ? flags : flags | zmq::send_flags::sndmore;
      if (!uninterrupted([&] { return socket.send(frame, how); })) return false;
      begun.more = left != 0;
    }
    return true;
  }

  boost::asio::io_context& loop;
  EventLog* log;  ///< Null: failures are not logged.
  OnMessage on_message;
  zmq::socket_t socket;
  boost::asio::posix::stream_descriptor descriptor;
  std::vector<SocketFile> files;  ///< Files of `ipc://` endpoints; libzmq leaves them behind.
  bool look_posted = false;
  bool looking = false;
  bool waiting = false;
  bool stopped = false;
};

FrameSocket::FrameSocket(boost::asio::io_context& loop, SocketThreads& threads,
                         const SocketOptions& options, OnMessage on_message) {
  zmq::socket_t socket(threads.state_->context, type_of(options.kind));
  set_options(socket, options);
  socket.set(zmq::sockopt::affinity, threads.state_->affinity(options.remote));
  state_ =
      std::make_shared<State>(loop, threads.state_->log, std::move(socket), std::move(on_message));
  state_->look_soon();
}

FrameSocket::~FrameSocket() {
  state_->stopped = true;
  state_->descriptor.release();  // the descriptor is ZeroMQ's own
  state_->socket.close();
  for (const SocketFile& file : state_->files) file.remove();
}

Result<std::string> FrameSocket::bind(const std::string& endpoint) {
  try {
    // Only where it is asked for: with it, * means all addresses of both families.
    state_->socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
    uninterrupted([&] { state_->socket.bind(endpoint); });
    if (endpoint.starts_with(kIpc)) state_->files.emplace_back(endpoint.substr(kIpc.size()));
    return state_->socket.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::io_error, fmt::format("bind {}: {}", endpoint, error.what())};
  }
}

Result<void> FrameSocket::send(Frames frames) {
  state_->look_soon();
  try {
    if (state_->send(frames, {})) return {};
    return queue_is_full();
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::disconnected, fmt::format("the peer is gone: {}", error.what())};
  }
}

/// Where the message does not go out, its end calls `sent` all the same.
Result<void> FrameSocket::send(Frames frames, Payload payload) {
  state_->look_soon();
  std::vector<zmq::message_t> last = borrowed(state_->loop, std::move(payload));
  try {
    if (state_->send(frames, last)) return {};
    return queue_is_full();
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::disconnected, fmt::format("the peer is gone: {}", error.what())};
  }
}

Result<std::string> public_key_of(const std::string& secret_key) {
  std::array<char, kCurveKeyText + 1> text{};
  if (zmq_has("curve") == 0) {
    return Error{ErrorCode::bad_configuration,
                 "a key, and the libzmq of this build has no encryption; allowed: no key, and "
                 "insecure = true for tcp://"};
  }
  if (secret_key.size() != kCurveKeyText ||
      zmq_curve_public(text.data(), secret_key.c_str()) != 0) {
    return Error{ErrorCode::bad_configuration, "no secret key: 40 characters of Z85"};
  }
  return std::string(text.data());
}

std::string key_text(std::span<const std::byte> key) {
  std::array<char, kCurveKeyText + 1> text{};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(key.data());
  if (key.size() != 32 || zmq_z85_encode(text.data(), bytes, key.size()) == nullptr) return "";
  return text.data();
}

}  // namespace batchwright
