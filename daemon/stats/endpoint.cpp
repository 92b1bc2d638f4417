// An HTTP server that may not harm the loop it runs on.
//
// Everything is asynchronous and bounded: a fixed number of connections, 8 KiB of header, no body,
// a time limit on each read and each write. A connection is a Session that keeps itself alive
// through the handler that is pending for it; State is shared by the listener and all sessions, so
// that handlers which run after stop() find what they ask: that it has stopped.

#include "daemon/stats/endpoint.h"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <set>

#include "daemon/stats/listen_address.h"

namespace batchwright {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::empty_body>;
using Answer = http::response<http::string_body>;

constexpr std::uint32_t kHeaderBytes = 8 * 1024;
/// How long accepting rests when the process is out of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptPause{1000};
/// How long a connection that is being closed may still send.
constexpr std::chrono::milliseconds kLinger{1000};

}  // namespace

struct Endpoint::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, Routes the_routes, EndpointLimits the_limits)
      : acceptor(loop), pause(loop), routes(std::move(the_routes)), limits(the_limits) {}

  void accept();
  void accepted(error_code code, tcp::socket socket);
  void ended(Session& session);
  void stop();

  tcp::acceptor acceptor;
  asio::steady_timer pause;
  Routes routes;
  EndpointLimits limits;
  std::set<Session*> sessions;  // they take themselves out
  bool accepting = false;
  bool stopped = false;
};

namespace {

Answer answer_with(Reply reply) {
  Answer answer;
  answer.result(reply.status);
  answer.set(http::field::content_type, reply.content_type);
  answer.set(http::field::cache_control, "no-store");
  answer.set("X-Content-Type-Options", "nosniff");
  answer.body() = std::move(reply.body);
  return answer;
}

Answer refuse(http::status status, std::string why) {
  return answer_with({static_cast<unsigned>(status), "text/plain; charset=utf-8", why + "\n"});
}

bool is_get(const Request& request) { return request.method() == http::verb::get; }

Answer refuse_method() {
  Answer answer = refuse(http::status::method_not_allowed, "allowed: GET");
  answer.set(http::field::allow, "GET");
  return answer;
}

/// The answer to a request that cannot be read; none when there is nobody to tell.
std::optional<Answer> answer_to_fault(error_code code, const Request& request) {
  if (code == http::error::header_limit || code == http::error::buffer_overflow) {
    return refuse(http::status::request_header_fields_too_large, "a header takes at most 8 KiB");
  }
  if (code == http::error::unexpected_body || code == http::error::body_limit) {
    if (!is_get(request)) return refuse_method();
    return refuse(http::status::payload_too_large, "a request has no body");
  }
  const error_code example = http::error::bad_method;
  if (code.category() != example.category() || code == http::error::end_of_stream ||
      code == http::error::partial_message) {
    return std::nullopt;
  }
  return refuse(http::status::bad_request, "not HTTP: " + code.message());
}

Answer call_route(const std::function<Reply()>& route) {
  try {
    return answer_with(route());
  } catch (const std::exception& fault) {
    spdlog::error("stats: a page could not be made: {}", fault.what());
    return refuse(http::status::internal_server_error, "the page could not be made");
  }
}

Answer answer_to(const Request& request, const Routes& routes) {
  if (!is_get(request)) return refuse_method();
  const std::string_view target(request.target().data(), request.target().size());
  const auto route = routes.find(target.substr(0, target.find('?')));
  if (route != routes.end()) return call_route(route->second);
  std::string known;
  for (const auto& [path, unused] : routes) known += " " + path;
  return refuse(http::status::not_found, "nothing here; there is:" + known);
}

Error cannot_listen(const std::string& address, const char* call, error_code code) {
  return {ErrorCode::io_error,
          "cannot serve statistics on " + address + ": " + call + ": " + code.message()};
}

}  // namespace

/// One connection: reads a request, writes the answer, and again.
class Endpoint::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::shared_ptr<State> state)
      : stream_(std::move(socket)), state_(std::move(state)) {
    state_->sessions.insert(this);
  }
  ~Session() { state_->ended(*this); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(state_->limits.request_time);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code code, std::size_t) { self->has_read(code); });
  }

  void close() { stream_.close(); }

 private:
  void has_read(error_code code) {
    if (state_->stopped) return;
    const auto& request = parser_->get();
    if (!code) {
      write(answer_to(request, state_->routes), request.keep_alive() && is_get(request));
    } else if (auto answer = answer_to_fault(code, request)) {
      // What could not be read to its end leaves no way to tell where the next request begins.
      write(std::move(*answer), false);
    }
  }

  void write(Answer answer, bool keep_alive) {
    answer_ = std::move(answer);
    answer_.version(parser_->get().version() == 10 ? 10 : 11);
    answer_.keep_alive(keep_alive);
    answer_.prepare_payload();
    stream_.expires_after(state_->limits.request_time);
    http::async_write(stream_, answer_,
                      [self = shared_from_this(), keep_alive](error_code code, std::size_t) {
                        self->has_written(code, keep_alive);
                      });
  }

  void has_written(error_code code, bool keep_alive) {
    if (state_->stopped || code) return;
    if (keep_alive) return read();
    error_code ignored;  // the peer may be gone already
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    drain();
  }

  /// Reads until the peer closes: a close with bytes unread would reset the connection and could
  /// take the answer away from the peer.
  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kHeaderBytes),
                            [self = shared_from_this()](error_code code, std::size_t) {
                              if (!code && !self->state_->stopped) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  // Holds one header and what a peer that does not wait sends behind it.
  beast::flat_buffer buffer_{2 * kHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Answer answer_;
  std::shared_ptr<State> state_;
};

void Endpoint::State::accept() {
  if (stopped || accepting || sessions.size() >= limits.connections) return;
  accepting = true;
  acceptor.async_accept([self = shared_from_this()](error_code code, tcp::socket socket) {
    self->accepting = false;
    if (!self->stopped) self->accepted(code, std::move(socket));
  });
}

void Endpoint::State::accepted(error_code code, tcp::socket socket) {
  if (!code) {
    std::make_shared<Session>(std::move(socket), shared_from_this())->read();
    return accept();
  }
  // Without a pause a full descriptor table would keep the loop busy for nothing.
  spdlog::warn("stats: accept: {}", code.message());
  pause.expires_after(kAcceptPause);
  pause.async_wait([self = shared_from_this()](error_code cancelled) {
    if (!cancelled) self->accept();
  });
}

void Endpoint::State::ended(Session& session) {
  sessions.erase(&session);
  accept();
}

void Endpoint::State::stop() {
  stopped = true;
  error_code ignored;  // closing is all that is wanted
  acceptor.close(ignored);
  pause.cancel();
  for (Session* session : sessions) session->close();
}

Result<std::unique_ptr<Endpoint>> Endpoint::listen(asio::io_context& loop,
                                                   const std::string& address, Routes routes,
                                                   EndpointLimits limits) {
  const auto parsed = parse_listen_address(address);
  if (!parsed) return parsed.error();
  auto state = std::make_shared<State>(loop, std::move(routes), limits);
  tcp::acceptor& acceptor = state->acceptor;
  const tcp::endpoint where(asio::ip::make_address(parsed->host), parsed->port);
  error_code code;
  if (acceptor.open(where.protocol(), code)) return cannot_listen(address, "socket", code);
  // A restarted daemon takes its port again although old connections linger in TIME_WAIT.
  acceptor.set_option(tcp::acceptor::reuse_address(true), code);
  if (acceptor.bind(where, code)) return cannot_listen(address, "bind", code);
  if (acceptor.listen(asio::socket_base::max_listen_connections, code)) {
    return cannot_listen(address, "listen", code);
  }
  if (!parsed->loopback) spdlog::warn("stats: {} can be reached from other machines", address);
  state->accept();
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(state)));
}

Endpoint::Endpoint(std::shared_ptr<State> state) : state_(std::move(state)) {}

Endpoint::~Endpoint() { state_->stop(); }

std::uint16_t Endpoint::port() const {
  error_code code;  // after stop() there is none: 0
  return state_->acceptor.local_endpoint(code).port();
}

void Endpoint::stop() { state_->stop(); }

}  // namespace batchwright
