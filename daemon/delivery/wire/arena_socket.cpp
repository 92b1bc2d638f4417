#include "daemon/delivery/wire/arena_socket.h"

#include <fmt/core.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "daemon/stats/stats.h"

namespace batchwright {
namespace {

using Socket = boost::asio::local::stream_protocol::socket;
using boost::system::error_code;

static_assert(sizeof(ArenaRequest) == 16 && sizeof(ArenaReply) == 24);

}  // namespace

struct ArenaSocket::State : std::enable_shared_from_this<State> {
  struct Connection {
    explicit Connection(boost::asio::io_context& loop) : socket(loop), timer(loop) {}
    Socket socket;
    boost::asio::steady_timer timer;
    ArenaRequest request;
    SessionId session{0};  ///< 0 until bound.
    bool retired = false;
  };
  using Shared = std::shared_ptr<Connection>;

  State(boost::asio::io_context& event_loop, std::string socket_path, const Limits& bounds,
        Callbacks calls)
      : loop(event_loop),
        acceptor(event_loop),
        pause(event_loop),
        path(std::move(socket_path)),
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
    if (connections.size() - retired >= limits.max_connections) return;
    const auto peer = credentials_of(connection->socket.native_handle());
    if (callbacks.admit && !callbacks.admit(peer)) return;
    connections.insert(connection);
    connection->timer.expires_after(limits.bind_time);
    connection->timer.async_wait([self = shared_from_this(), connection](const error_code& error) {
      if (!error && connection->session.value == 0) self->close(connection);
    });
    read(connection);
  }

  void read(const Shared& connection) {
    boost::asio::async_read(
        connection->socket, boost::asio::buffer(&connection->request, sizeof connection->request),
        [self = shared_from_this(), connection](const error_code& error, std::size_t) {
          if (!self->connections.contains(connection)) return;
          if (error) return self->lose(connection);
          if (connection->retired || self->answer(connection) || self->spoil(connection)) {
            self->read(connection);
          }
        });
  }

  /// False when the connection has ended over it. A bound one is the sign of a living process, and
  /// ends only if that holds nothing.
  bool spoil(const Shared& connection) {
    if (connection->session.value == 0) {
      close(connection);
    } else {
      callbacks.spoilt(connection->session);
    }
    return connections.contains(connection);
  }

  void retire(const Shared& connection) {
    if (std::exchange(connection->retired, true)) return;
    ++retired;
    error_code ignored;
    connection->socket.shutdown(Socket::shutdown_send, ignored);
  }

  /// False when the connection is to end.
  bool answer(const Shared& connection) {
    const ArenaRequest& request = connection->request;
    if (request.magic != ArenaRequest::kMagic || request.session == 0) return false;
    ArenaReply reply;
    reply.arena = request.arena;
    int descriptor = -1;
    if (request.arena == 0) {
      if (connection->session.value != 0) return false;
      if (!bind(connection)) reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
    } else if (connection->session.value != request.session) {
      reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
    } else if (auto found = callbacks.find(ArenaNumber{request.arena})) {
      descriptor = found->descriptor;
      reply.bytes = found->bytes;
    } else {
      reply.code = static_cast<std::uint32_t>(found.error().code);
    }
    return send_with_descriptor(connection->socket.native_handle(),
                                std::as_bytes(std::span(&reply, 1)), descriptor)
        .has_value();
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
  std::string path;
  const Limits limits;
  Callbacks callbacks;
  std::set<Shared> connections;
  std::map<SessionId, Shared> bound;
  std::size_t retired = 0;  ///< Retired ones among the connections.
  bool stopped = false;
};

ArenaSocket::ArenaSocket(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ArenaSocket>> ArenaSocket::listen(boost::asio::io_context& loop,
                                                         const std::string& path,
                                                         const Limits& limits,
                                                         Callbacks callbacks) {
  if (auto cleared = clear_socket_path(path); !cleared) return cleared.error();
  auto state = std::make_shared<State>(loop, path, limits, std::move(callbacks));
  error_code error;
  state->acceptor.open(boost::asio::local::stream_protocol(), error);
  if (!error) state->acceptor.bind({path}, error);
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
  ::unlink(state_->path.c_str());
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
