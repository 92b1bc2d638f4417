#include "daemon/delivery/router.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>
#include <zmq.hpp>

namespace batchwright {
namespace {

/// Messages handled in one turn of the loop, so that a flood leaves time to the others.
constexpr int kMessagesPerTurn = 256;

/// Frames queued for one peer. A window of tickets is far less; who lets this many pile up does
/// not read.
constexpr int kPeerQueue = 4096;

/// How long a last word such as Bye may take to leave, for a peer that reads slowly.
constexpr int kLingerMilliseconds = 200;

constexpr std::string_view kIpc = "ipc://";

/// Whom to tell, and on which loop, that ZeroMQ is done with the bytes of a frame.
struct Sent {
  boost::asio::io_context& loop;
  std::function<void()> callback;
};

/// Comes on a thread of ZeroMQ's.
void bytes_are_free(void*, void* hint) {
  const std::unique_ptr<Sent> sent(static_cast<Sent*>(hint));
  boost::asio::post(sent->loop, std::move(sent->callback));
}

/// ZeroMQ takes memory that can be written to, and only reads it.
zmq::message_t borrowed(boost::asio::io_context& loop, Payload payload) {
  auto sent = std::make_unique<Sent>(Sent{loop, std::move(payload.sent)});
  return {const_cast<std::byte*>(payload.bytes.data()), payload.bytes.size(), bytes_are_free,
          sent.release()};
}

}  // namespace

/// ZMQ_FD is edge-triggered and stands for sends as well as for receives: after each of them
/// ZMQ_EVENTS has to be asked again before waiting for the descriptor.
struct Router::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& event_loop, OnMessage callback)
      : loop(event_loop), on_message(std::move(callback)), descriptor(event_loop) {
    socket.set(zmq::sockopt::linger, kLingerMilliseconds);
    socket.set(zmq::sockopt::router_mandatory, true);
    socket.set(zmq::sockopt::sndhwm, kPeerQueue);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMaxControlBytes));
    descriptor.assign(socket.get(zmq::sockopt::fd));
  }

  void look_soon() {
    if (look_posted || stopped) return;
    look_posted = true;
    boost::asio::post(loop, [self = shared_from_this()] {
      self->look_posted = false;
      self->look();
    });
  }

  /// Handles what has arrived, then waits for the descriptor.
  void look() {
    for (int i = 0; i < kMessagesPerTurn && !stopped; ++i) {
      if (!receive_one()) return wait();
    }
    look_soon();
  }

  void wait() {
    if (waiting || stopped) return;
    waiting = true;
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            self->waiting = false;
                            if (!error) self->look();
                          });
    // What came between the last look and the wait has no edge left to announce it.
    if ((socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0) look_soon();
  }

  /// False when nothing is there. A signal may interrupt the look; then it is repeated.
  bool receive_one() {
    zmq::message_t peer;
    zmq::message_t body;
    std::size_t frames = 0;
    try {
      if (!socket.recv(peer, zmq::recv_flags::dontwait)) return false;
      for (bool more = peer.more(); more; ++frames) {
        zmq::message_t frame;
        static_cast<void>(socket.recv(frame));
        more = frame.more();
        if (frames == 0) body = std::move(frame);
      }
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) spdlog::error("receive: {}", error.what());
      return error.num() == EINTR;
    }
    on_message(peer.to_string(), {static_cast<const std::byte*>(body.data()), body.size()}, frames);
    return true;
  }

  boost::asio::io_context& loop;
  OnMessage on_message;
  zmq::context_t context;
  zmq::socket_t socket{context, zmq::socket_type::router};
  boost::asio::posix::stream_descriptor descriptor;
  std::vector<std::string> files;  ///< Of `ipc://` endpoints; libzmq leaves them behind.
  bool look_posted = false;
  bool waiting = false;
  bool stopped = false;
};

Router::Router(boost::asio::io_context& loop, OnMessage on_message)
    : state_(std::make_shared<State>(loop, std::move(on_message))) {
  state_->look_soon();
}

Router::~Router() {
  state_->stopped = true;
  state_->descriptor.release();  // the descriptor is ZeroMQ's own
  state_->socket.close();
  for (const std::string& file : state_->files) ::unlink(file.c_str());
}

Result<void> Router::bind(const std::string& endpoint) {
  try {
    state_->socket.bind(endpoint);
    if (endpoint.starts_with(kIpc)) state_->files.push_back(endpoint.substr(kIpc.size()));
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::io_error, "bind " + endpoint + ": " + error.what()};
  }
  return {};
}

Result<void> Router::send(const PeerName& peer, std::span<const std::byte> frame) {
  state_->look_soon();
  try {
    const auto flags = zmq::send_flags::dontwait;
    const auto more = zmq::send_flags::sndmore | flags;
    if (state_->socket.send(zmq::buffer(peer), more) &&
        state_->socket.send(zmq::buffer(frame.data(), frame.size()), flags)) {
      return {};
    }
    return Error{ErrorCode::disconnected, "the peer does not read: its queue is full"};
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::disconnected, std::string("the peer is gone: ") + error.what()};
  }
}

Result<void> Router::send(const PeerName& peer, std::span<const std::byte> frame, Payload payload) {
  state_->look_soon();
  zmq::message_t batch = borrowed(state_->loop, std::move(payload));
  try {
    const auto flags = zmq::send_flags::dontwait;
    const auto more = zmq::send_flags::sndmore | flags;
    if (state_->socket.send(zmq::buffer(peer), more) &&
        state_->socket.send(zmq::buffer(frame.data(), frame.size()), more) &&
        state_->socket.send(batch, flags)) {
      return {};
    }
    return Error{ErrorCode::disconnected, "the peer does not read: its queue is full"};
  } catch (const zmq::error_t& error) {
    return Error{ErrorCode::disconnected, std::string("the peer is gone: ") + error.what()};
  }
}

}  // namespace batchwright
