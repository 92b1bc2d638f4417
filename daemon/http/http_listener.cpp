#include "daemon/http/http_listener.h"

#include <fmt/core.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "daemon/http/listen_address.h"

namespace batchwright {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using boost::system::error_code;

/// How long accepting rests when the process is out of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptPause{1000};
/// So many connections are accepted within that time, and no more: a crowd that comes again and
/// again would take the loop from those it is there for.
constexpr int kMostAccepted = 16;
constexpr std::chrono::milliseconds kAcceptSpan{16};
/// Connections that wait in the kernel: about a second's worth, for a longer queue would only make
/// every peer wait longer.
constexpr int kBacklog = 1024;

}  // namespace

struct HttpListener::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, EventLog& events) : acceptor(loop), pause(loop), log(events) {}

  Result<void> bind(const std::string& address, const stream_protocol::endpoint& where) {
    const auto failed = [&address](const char* call, const error_code& code) {
      return Error{ErrorCode::io_error, fmt::format("cannot serve statistics on {}: {}: {}",
                                                    address, call, code.message())};
    };
    error_code code;
    if (acceptor.open(where.protocol(), code)) return failed("socket", code);
    // A restarted daemon takes its port again although old connections linger in TIME_WAIT.
    acceptor.set_option(asio::socket_base::reuse_address(true), code);
    if (acceptor.bind(where, code)) {
      return code == boost::asio::error::address_in_use ? taken(address) : failed("bind", code);
    }
    if (acceptor.listen(kBacklog, code)) {
      return failed("listen", code);
    }
    return {};
  }

  static Error taken(const std::string& address) {
    return {ErrorCode::io_error,
            fmt::format("cannot serve statistics on {}: the address is in use, perhaps by "
                        "another daemon on this host; set daemon.stats to another port, or to "
                        "\"\" for none",
                        address)};
  }

  Result<void> bind_file(const std::string& file, const SocketAccess& access) {
    // Only a socket at which nothing answers is removed: one left by a killed daemon.
    auto claimed = claim_socket_path(file);
    if (!claimed) return claimed.error();
    claim = std::move(*claimed);
    // From bind() to set_access() the file would else have the mode that the umask leaves.
    const RestrictedUmask nobody_else;
    auto bound = bind("unix://" + file, asio::local::stream_protocol::endpoint(file));
    if (!bound) return bound;
    // Ours from here on, and so ours to remove, should set_access() fail.
    own.emplace(file);
    return set_access(file, access);
  }

  void accept() {
    acceptor.async_accept([self = shared_from_this()](error_code code, Socket socket) {
      if (!self->stopped) self->accepted(code, std::move(socket));
    });
  }

  void accepted(error_code code, Socket socket) {
    if (code) {
      // Without a pause a full descriptor table would keep the loop busy for nothing.
      log.note<Event::stats_accept_failed>(code.message());
      return rest_until(std::chrono::steady_clock::now() + kAcceptPause);
    }
    take(std::move(socket));
    const auto now = std::chrono::steady_clock::now();
    if (now >= span_end) {
      span_end = now + kAcceptSpan;
      left = kMostAccepted;
    }
    if (--left > 0) return accept();
    rest_until(span_end);
  }

  void rest_until(std::chrono::steady_clock::time_point end) {
    pause.expires_at(end);
    pause.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled && !self->stopped) self->accept();
    });
  }

  void stop() {
    if (std::exchange(stopped, true)) return;
    error_code ignored;  // closing is all that is wanted
    acceptor.close(ignored);
    pause.cancel();
    // It holds the endpoint's state, which holds this listener.
    take = nullptr;
    if (own) own->remove();
    claim.reset();
  }

  asio::basic_socket_acceptor<stream_protocol> acceptor;
  asio::steady_timer pause;
  EventLog& log;
  std::function<void(Socket)> take;
  SocketClaim claim;              ///< Of a Unix socket.
  std::optional<SocketFile> own;  ///< A Unix socket that is ours.
  std::uint16_t port = 0;
  std::chrono::steady_clock::time_point span_end;
  int left = 0;  ///< Connections that may be accepted until then.
  bool stopped = false;
};

HttpListener::HttpListener(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpListener::~HttpListener() { state_->stop(); }

Result<std::unique_ptr<HttpListener>> HttpListener::open(asio::io_context& loop,
                                                         const std::string& address,
                                                         const SocketAccess& access,
                                                         EventLog& log) {
  const auto parsed = parse_http_address(address);
  if (!parsed) return parsed.error();
  std::unique_ptr<HttpListener> listener(new HttpListener(std::make_shared<State>(loop, log)));
  State& state = *listener->state_;
  if (const auto* file = std::get_if<UnixAddress>(&*parsed)) {
    if (auto bound = state.bind_file(file->path, access); !bound) return bound.error();
    return listener;
  }
  const auto& port = std::get<ListenAddress>(*parsed);
  const asio::ip::tcp::endpoint where(asio::ip::make_address(port.host), port.port);
  if (auto bound = state.bind(address, where); !bound) return bound.error();
  asio::ip::tcp::endpoint found;
  // The kernel says which port it is, as :0 leaves the choice to it.
  socklen_t size = static_cast<socklen_t>(found.capacity());
  ::getsockname(state.acceptor.native_handle(), found.data(), &size);
  state.port = found.port();
  if (!port.loopback) log.note<Event::stats_exposed>(address);
  return listener;
}

void HttpListener::accept(std::function<void(Socket)> take) {
  state_->take = std::move(take);
  state_->accept();
}

std::uint16_t HttpListener::port() const { return state_->port; }
void HttpListener::stop() { state_->stop(); }

}  // namespace batchwright
