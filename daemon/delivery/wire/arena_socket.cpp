#include "daemon/delivery/wire/arena_socket.h"

#include <fmt/core.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "daemon/stats/stats.h"

namespace batchwright {
namespace {

using Socket = boost::asio::local::stream_protocol::socket;
using boost::system::error_code;

static_assert(sizeof(ArenaRequest) == 16 && sizeof(ArenaReply) == 24);

/// Descriptors that may be on their way to one client, which asks for one at a time. The kernel
/// counts them against what all processes of this user may have open, until they are received.
constexpr unsigned kMostUnread = 2;
/// Until a descriptor that could not be sent is tried again.
constexpr std::chrono::milliseconds kTryAgain{100};

/// Whether the peer has read all that was sent to it.
bool all_is_read(int socket) {
  int queued = 0;
  return ::ioctl(socket, SIOCOUTQ, &queued) == 0 && queued == 0;
}

}  // namespace

struct ArenaSocket::State : std::enable_shared_from_this<State> {
  struct Connection {
    explicit Connection(boost::asio::io_context& loop) : socket(loop), timer(loop) {}
    Socket socket;
    boost::asio::steady_timer timer;
    ArenaRequest request;
    SessionId session{0};      ///< 0 until bound.
    std::uint64_t number = 0;  ///< In the order in which they came.
    unsigned unread = 0;       ///< Descriptors sent since it had read all.
    bool retired = false;
  };
  using Shared = std::shared_ptr<Connection>;

  State(boost::asio::io_context& event_loop, const Limits& bounds, Callbacks calls)
      : loop(event_loop),
        acceptor(event_loop),
        pause(event_loop),
        limits(bounds),
        callbacks(std::move(calls)) {}

  void accept() {
    auto connection = std::make_shared<Connection>(loop);
    acceptor.async_accept(connection->socket,
                          [self = shared_from_this(), connection](const error_code& error) {
                            if (error == boost::asio::error::operation_aborted) return;
                            if (error) return self->accept_later();
                            self->welcome(connection);
                            self->accept();
                          });
  }

  /// Out of descriptors, most likely: asking again at once would only burn the loop's time.
  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && !self->stopped) self->accept();
    });
  }

  void welcome(const Shared& connection) {
    // A refused connection closes with its last reference.
    const auto peer = credentials_of(connection->socket.native_handle());
    if (callbacks.admit && !callbacks.admit(peer)) return;
    if (connections.size() - retired >= limits.max_connections && !close_oldest_silent()) return;
    connection->number = ++last_number;
    connections.insert(connection);
    connection->timer.expires_after(limits.bind_time);
    connection->timer.async_wait([self = shared_from_this(), connection](const error_code& error) {
      if (!error && connection->session.value == 0) self->close(connection);
    });
    read(connection);
  }

  /// False when every one has named its session.
  bool close_oldest_silent() {
    Shared oldest;
    for (const Shared& each : connections) {
      if (each->session.value != 0) continue;
      if (oldest == nullptr || each->number < oldest->number) oldest = each;
    }
    if (oldest != nullptr) close(oldest);
    return oldest != nullptr;
  }

  void read(const Shared& connection) {
    boost::asio::async_read(
        connection->socket, boost::asio::buffer(&connection->request, sizeof connection->request),
        [self = shared_from_this(), connection](const error_code& error, std::size_t) {
          if (!self->connections.contains(connection)) return;
          if (error) return self->lose(connection);
          self->take_request(connection);
        });
  }

  void take_request(const Shared& connection) {
    if (connection->retired) return read(connection);
    const auto answered = answer(connection);
    if (!answered && answered.error().code == ErrorCode::does_not_fit) {
      if (callbacks.delayed) callbacks.delayed(answered.error().message);
      return try_again_later(connection);
    }
    if (answered || spoil(connection, answered.error().message)) read(connection);
  }

  void try_again_later(const Shared& connection) {
    connection->timer.expires_after(kTryAgain);
    connection->timer.async_wait([self = shared_from_this(), connection](const error_code& error) {
      if (!error && self->connections.contains(connection)) self->take_request(connection);
    });
  }

  /// False when the connection has ended over it. A bound one is the sign of a living process, and
  /// ends only if that holds nothing.
  bool spoil(const Shared& connection, const std::string& why) {
    if (connection->session.value == 0) {
      close(connection);
    } else {
      callbacks.spoilt(connection->session, why);
    }
    return connections.contains(connection);
  }

  void retire(const Shared& connection) {
    if (std::exchange(connection->retired, true)) return;
    ++retired;
    error_code ignored;
    connection->socket.shutdown(Socket::shutdown_send, ignored);
  }

  /// Errors: does_not_fit (the request is to be tried again), any other (the connection is to end).
  Result<void> answer(const Shared& connection) {
    const Error no_request{ErrorCode::malformed_message,
                           "it sent something other than an arena request"};
    const ArenaRequest& request = connection->request;
    if (request.magic != ArenaRequest::kMagic || request.session == 0) return no_request;
    const int socket = connection->socket.native_handle();
    if (all_is_read(socket)) connection->unread = 0;
    if (connection->unread >= kMostUnread) {
      return Error{ErrorCode::malformed_message,
                   fmt::format("it asks for arenas and leaves {} answers unread", kMostUnread)};
    }
    ArenaReply reply;
    reply.arena = request.arena;
    int descriptor = -1;
    if (request.arena == 0) {
      if (connection->session.value != 0) return no_request;
      if (!bind(connection)) reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
    } else if (connection->session.value != request.session) {
      reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
    } else if (auto found = callbacks.find(connection->session, ArenaNumber{request.arena})) {
      descriptor = found->descriptor;
      reply.bytes = found->bytes;
    } else {
      reply.code = static_cast<std::uint32_t>(found.error().code);
    }
    auto sent = send_with_descriptor(socket, std::as_bytes(std::span(&reply, 1)), descriptor);
    if (sent && descriptor >= 0) ++connection->unread;
    return sent;
  }

  bool bind(const Shared& connection) {
    const SessionId session{connection->request.session};
    if (bound.contains(session) || !callbacks.bind(session)) return false;
    connection->session = session;
    connection->timer.cancel();
    bound.emplace(session, connection);
    return true;
  }

  void lose(const Shared& connection) {
    const SessionId session = connection->session;
    close(connection);
    if (session.value != 0) callbacks.lost(session);
  }

  void close(const Shared& connection) {
    error_code ignored;
    if (connection->retired) --retired;
    connection->timer.cancel();
    connection->socket.close(ignored);
    bound.erase(connection->session);
    connections.erase(connection);
  }

  boost::asio::io_context& loop;
  boost::asio::local::stream_protocol::acceptor acceptor;
  boost::asio::steady_timer pause;
  std::optional<SocketFile> file;
  const Limits limits;
  Callbacks callbacks;
  std::set<Shared> connections;
  std::map<SessionId, Shared> bound;
  std::size_t retired = 0;  ///< Retired ones among the connections.
  std::uint64_t last_number = 0;
  bool stopped = false;
};

ArenaSocket::ArenaSocket(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ArenaSocket>> ArenaSocket::listen(boost::asio::io_context& loop,
                                                         const std::string& path,
                                                         const Limits& limits,
                                                         Callbacks callbacks) {
  if (auto cleared = clear_socket_path(path); !cleared) return cleared.error();
  auto state = std::make_shared<State>(loop, limits, std::move(callbacks));
  error_code error;
  state->acceptor.open(boost::asio::local::stream_protocol(), error);
  if (!error) state->acceptor.bind({path}, error);
  if (!error) state->file.emplace(path);
  if (!error) state->acceptor.listen(128, error);
  if (error) return Error{ErrorCode::io_error, fmt::format("{}: {}", path, error.message())};
  state->accept();
  return std::unique_ptr<ArenaSocket>(new ArenaSocket(std::move(state)));
}

ArenaSocket::~ArenaSocket() {
  state_->stopped = true;
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->pause.cancel();
  while (!state_->connections.empty()) state_->close(*state_->connections.begin());
  if (state_->file) state_->file->remove();
}

void ArenaSocket::disconnect(SessionId session) {
  if (const auto found = state_->bound.find(session); found != state_->bound.end()) {
    state_->close(State::Shared(found->second));
  }
}

void ArenaSocket::retire(SessionId session) {
  if (const auto found = state_->bound.find(session); found != state_->bound.end()) {
    state_->retire(found->second);
  }
}

}  // namespace batchwright
