// An HTTP server that may not harm the loop it runs on.
//
// Everything is asynchronous and bounded: a fixed number of connections, 8 KiB of header, no body,
// a time limit on each read and each write. A connection is a Session that keeps itself alive
// through the handler that is pending for it; State is shared by the listeners and all sessions, so
// that handlers which run after stop() find what they ask: that it has stopped.
//
// When there are too many connections the most silent one makes room, for a peer that means well
// sends its request at once: however many connect and say nothing, the next scrape is answered.

#include "daemon/http/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "daemon/http/address_file.h"
#include "daemon/http/answer_head.h"
#include "daemon/http/host_names.h"
#include "daemon/http/http_listener.h"
#include "daemon/http/live.h"
#include "daemon/http/refusals.h"

namespace batchwright {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Socket = HttpListener::Socket;
using Request = http::request<http::empty_body>;

constexpr std::uint32_t kHeaderBytes = 8 * 1024;
/// How long a connection that is being closed may still send.
constexpr std::chrono::milliseconds kLinger{1000};

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(Routes the_routes, const EndpointPlace& the_place)
      : routes(std::move(the_routes)),
        place(the_place),
        limits(place.limits),
        hosts(place.hosts),
        log(place.log != nullptr ? *place.log : own_log) {}

  void take(Socket socket);
  void stop();

  Routes routes;
  EndpointPlace place;
  EndpointLimits limits;
  HostNames hosts;
  std::vector<std::unique_ptr<AddressFile>> files;
  EventLog own_log;
  EventLog& log;
  EndpointFigures figures;
  std::vector<std::unique_ptr<HttpListener>> listeners;
  std::map<std::string, LiveStream, std::less<>> streams;
  std::set<Session*> sessions;    // they take themselves out
  std::list<Session*> exchanges;  // those that read or write, the one that is longest at it first
  bool stopped = false;
};

namespace {

std::string_view text_of(const beast::string_view& text) { return {text.data(), text.size()}; }

bool is_allowed(http::verb method) {
  return method == http::verb::get || method == http::verb::head;
}

/// The answer to a request that cannot be read; none when the peer is gone.
std::optional<Reply> answer_to_fault(error_code code, const Request& request) {
  if (code == http::error::header_limit || code == http::error::buffer_overflow) {
    return refuse(431, "a header takes at most 8 KiB");
  }
  // Beast says so before the method is looked at; to a POST its method is what is wrong.
  if (code == http::error::unexpected_body || code == http::error::body_limit) {
    if (!is_allowed(request.method())) return refuse_method();
    return refuse(413, "a request has no body");
  }
  // A reset, a time-out or an end between two requests: nothing is left to answer.
  const error_code example = http::error::bad_method;
  if (code.category() != example.category() || code == http::error::end_of_stream ||
      code == http::error::partial_message) {
    return std::nullopt;
  }
  return refuse(400, fmt::format("not HTTP: {}", code.message()));
}

}  // namespace

/// One connection: reads a request, writes the answer, and again; or, from a request for a stream
/// of events on, writes those until either side has had enough.
class HttpServer::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Socket socket, std::shared_ptr<State> state)
      : stream_(std::move(socket)), state_(std::move(state)) {
    state_->sessions.insert(this);
  }
  ~Session() {
    begin_pause();
    if (reader_) live_->leave(*reader_);
    state_->sessions.erase(this);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    begin_exchange();
    // Beast's parsers serve one message each.
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    // A body is refused by the length in the header, before any of it is taken in.
    parser_->body_limit(0);
    parser_->eager(true);
    parse();  // a peer that does not wait has sent it already
  }

  void close() { stream_.close(); }

 private:
  using Self = std::shared_ptr<Session>;
  using Then = void (Session::*)(error_code);

  /// Begins to wait for the peer.
  void begin_exchange() {
    begin_pause();
    place_ = state_->exchanges.insert(state_->exchanges.end(), this);
    stream_.expires_after(state_->limits.request_time);
  }
  void begin_pause() {
    if (place_) state_->exchanges.erase(*place_);
    place_.reset();
  }

  /// Reads some more into the buffer, up to `most` bytes, and goes on with `then`. Every read and
  /// every write is of one form: Asio makes much code of each.
  void read_some(std::size_t most, Then then) {
    stream_.async_read_some(buffer_.prepare(std::min(most, buffer_.max_size() - buffer_.size())),
                            [self = shared_from_this(), then](error_code code, std::size_t bytes) {
                              self->buffer_.commit(bytes);
                              (self.get()->*then)(code);
                            });
  }

  /// Writes what sending_ has; it keeps the bytes until `then` is called.
  void write_sending(Then then) {
    asio::async_write(stream_, asio::buffer(*sending_),
                      [self = shared_from_this(), then](error_code code, std::size_t) {
                        self->sending_.reset();
                        (self.get()->*then)(code);
                      });
  }

  /// Takes in what the buffer has of a request, and reads on until it has all of it.
  void parse() {
    error_code code;
    while (!parser_->is_done() && !code) {
      if (buffer_.size() == 0) return read_some(kHeaderBytes, &Session::has_more);
      buffer_.consume(parser_->put(buffer_.data(), code));
      if (code != http::error::need_more) continue;
      code = {};
      if (buffer_.size() < buffer_.max_size()) return read_some(kHeaderBytes, &Session::has_more);
      code = http::error::buffer_overflow;
    }
    has_read(code);
  }

  void has_more(error_code code) {
    if (state_->stopped || code) return has_read(code);
    parse();
  }

  void has_read(error_code code) {
    // Nothing is pending after this return, so the session goes with its handler.
    if (state_->stopped) return;
    const auto& request = parser_->get();
    if (code) {
      // What could not be read to its end leaves no way to tell where the next request begins.
      if (const auto answer = answer_to_fault(code, request)) write(*answer, false);
      return;
    }
    if (!is_allowed(request.method())) return write(refuse_method(), false);
    if (!is_for_us(request))
      return write(refuse_host(state_->hosts, text_of(request[http::field::host])), false);
    std::string_view target = text_of(request.target());
    if (!state_->place.secret.empty() && !is_local()) {
      const auto known = behind_secret(target, state_->place.secret);
      if (!known) return write(refuse_without_secret(), request.keep_alive());
      target = *known;
    }
    const auto answered = as_result(ErrorCode::internal, "", [&]() -> Result<void> {
      answer_to(target);
      return {};
    });
    if (!answered) write(cannot_make_page(state_->log, answered.error()), request.keep_alive());
  }

  bool is_local() const {
    error_code code;
    const auto local = stream_.socket().local_endpoint(code);
    return !code && local.protocol().family() == AF_UNIX;
  }

  /// A Unix socket's path is no name that an attacker could have given us.
  bool is_for_us(const Request& request) const {
    if (is_local()) return true;
    const auto host = request.find(http::field::host);
    // HTTP/1.0 needs no Host; a browser always sends one, and it is browsers that are misled.
    return host == request.end() || state_->hosts.includes(text_of(host->value()));
  }

  void answer_to(std::string_view target) {
    const Routes& routes = state_->routes;
    const bool keep_alive = parser_->get().keep_alive();
    // Plain pages take no query, so what follows is of no consequence to them.
    const std::string_view path = target.substr(0, target.find('?'));
    if (const auto page = routes.pages.find(path); page != routes.pages.end()) {
      const EventLog::Turn turn(state_->log, path);
      return write(page->second(), keep_alive);
    }
    if (const auto live = state_->streams.find(path); live != state_->streams.end()) {
      return begin_events(live->second);
    }
    const auto later = find_later(routes, target);
    if (!later) {
      return write(refuse(400, later.error().message), keep_alive);
    }
    if (later->first == nullptr) {
      const std::string known = fmt::format("no such page; available:{}", known_paths(routes));
      return write(refuse(404, known), keep_alive);
    }
    begin_pause();  // the peer waits for us
    (*later->first)(later->second, [self = shared_from_this(), keep_alive](const Reply& reply) {
      if (!self->state_->stopped) self->write(reply, keep_alive);
    });
  }

  void write(const Reply& reply, bool keep_alive) {
    ++(reply.status < 400 ? state_->figures.requests : state_->figures.refused);
    const auto& request = parser_->get();
    const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
    std::string text = head_of(reply, std::string_view(reason.data(), reason.size()),
                               request.version() == 10, keep_alive);
    // The length tells what GET would bring.
    if (request.method() != http::verb::head) text += reply.body;
    begin_exchange();
    sending_ = std::make_shared<const std::string>(std::move(text));
    write_sending(keep_alive ? &Session::answered : &Session::answered_last);
  }

  // In both, where the peer took too long or is gone, the session goes with the handler.
  void answered(error_code code) {
    if (!state_->stopped && !code) read();
  }
  void answered_last(error_code code) {
    if (state_->stopped || code) return;
    error_code ignored;  // the peer may be gone already
    stream_.socket().shutdown(Socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);
    drain({});
  }

  /// Reads until the peer closes: a close with bytes unread would reset the connection and could
  /// take the answer away from the peer.
  void drain(error_code code) {
    if (state_->stopped || code) return;
    buffer_.clear();
    read_some(kHeaderBytes, &Session::drain);
  }

  void begin_events(LiveStream& live) {
    // A stream has no length to tell, and a reader that wants its head alone is none.
    if (parser_->get().method() == http::verb::head) {
      return write({200, "text/event-stream", ""}, false);
    }
    live_ = &live;
    // Weak: the stream outlives its readers, and may not keep them.
    reader_ = live.join([weak = weak_from_this()](const LiveStream::Event& event) {
      if (const Self self = weak.lock()) self->send(event);
    });
    if (!reader_) {
      return write(refuse(503, "enough read this already"), parser_->get().keep_alive());
    }
    ++state_->figures.requests;
    begin_pause();
    // A reader that says something more, or goes, is done.
    stream_.expires_never();
    buffer_.clear();
    read_some(1, &Session::end_events);
    const LiveStream::Event first = live.make();
    send(std::make_shared<const std::string>(events_head() + (first ? *first : "")));
  }

  /// An event that comes while another is under way is skipped, and a reader that takes none for
  /// too long is disconnected: nothing piles up for slow readers.
  void send(const LiveStream::Event& event) {
    if (sending_) return;
    sending_ = event;
    stream_.expires_after(state_->limits.request_time);
    write_sending(&Session::event_sent);
  }
  void event_sent(error_code code) {
    if (code) close();
  }
  void end_events(error_code) { close(); }

  beast::basic_stream<asio::generic::stream_protocol> stream_;
  // Holds one header and what a peer that does not wait sends behind it.
  beast::flat_buffer buffer_{2 * kHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::shared_ptr<State> state_;
  std::optional<std::list<Session*>::iterator> place_;  ///< Place in State::exchanges.
  LiveStream* live_ = nullptr;  ///< The stream it reads, owned by the state.
  std::optional<std::uint64_t> reader_;
  LiveStream::Event sending_;  ///< What is being written; null: nothing is.
};

void HttpServer::State::take(Socket socket) {
  if (exchanges.size() >= limits.connections) {
    ++figures.refused;
    Session& silent = *exchanges.front();
    exchanges.splice(exchanges.end(), exchanges, exchanges.begin());  // it ends in a moment
    silent.close();
  }
  // The handler of the read keeps it from here on.
  std::make_shared<Session>(std::move(socket), shared_from_this())->read();
}

void HttpServer::State::stop() {
  stopped = true;
  for (const auto& listener : listeners) listener->stop();
  files.clear();
  for (auto& [path, stream] : streams) stream.stop();
  // Their handlers run later, find `stopped`, and let go of them one by one.
  for (Session* session : sessions) session->close();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& loop,
                                                       const EndpointPlace& place, Routes routes) {
  auto state = std::make_shared<State>(std::move(routes), place);
  std::unique_ptr<HttpServer> endpoint(new HttpServer(state));  // stops what has begun on an error
  for (const auto& [path, page] : state->routes.live) {
    state->streams.try_emplace(path, loop, page, place.limits.live_readers, state->log);
  }
  for (const std::string& address : place.addresses) {
    auto listener = HttpListener::open(loop, address, place.access, state->log);
    if (!listener) return listener.error();
    (*listener)->accept([state](Socket socket) { state->take(std::move(socket)); });
    state->listeners.push_back(std::move(*listener));
  }
  return endpoint;
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { state_->stop(); }

std::vector<std::uint16_t> HttpServer::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& listener : state_->listeners) ports.push_back(listener->port());
  return ports;
}

std::vector<std::string> HttpServer::addresses() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < state_->listeners.size(); ++i) {
    all.push_back(address_here(state_->place.addresses[i], state_->listeners[i]->port(),
                               state_->place.secret));
  }
  return all;
}

Result<void> HttpServer::publish(const std::string& path) {
  auto file = AddressFile::write(path, addresses(), state_->place.access);
  if (!file) return file.error();
  state_->files.push_back(std::move(*file));
  return {};
}

EndpointFigures HttpServer::figures() const {
  EndpointFigures figures = state_->figures;
  figures.connections = static_cast<std::uint32_t>(state_->sessions.size());
  return figures;
}

void HttpServer::stop() { state_->stop(); }

}  // namespace batchwright
