#include "client/command/http_get.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <vector>

namespace batchwright {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = boost::asio::ip::tcp;
using unix_socket = boost::asio::local::stream_protocol;
using any_socket = boost::asio::generic::stream_protocol;
using beast::error_code;

/// The parts of an http:// address.
struct Place {
  std::string host;
  std::string port;
  std::string folder;  ///< Below which the pages are, with a slash before it; empty: the root.
};

/// Without http:// it has the form of `stats` in the daemon's configuration, HOST:PORT. Not by
/// Boost.URL, which knows neither the zone of an address, as in [fe80::1%eth0], nor a port's name:
/// the resolver does.
Result<Place> parse_place(const std::string& address) {
  constexpr std::string_view kScheme = "http://";
  const Error bad{
      ErrorCode::invalid_argument,
      fmt::format("\"{}\" is not an address such as http://127.0.0.1:9477 or unix:///PATH",
                  address)};
  const bool has_scheme = address.starts_with(kScheme);
  std::string rest = has_scheme ? address.substr(kScheme.size()) : address;
  while (rest.ends_with('/')) rest.pop_back();
  // As of a page that only its user may see.
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string folder = rest.substr(slash);
  rest.resize(slash);
  Place place{rest, has_scheme ? "80" : "", folder};
  // A colon within brackets belongs to an IPv6 address, and is followed by no port.
  const std::size_t colon = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    place = {rest.substr(0, colon), rest.substr(colon + 1), folder};
  }
  if (place.host.starts_with('[') && place.host.ends_with(']')) {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  if (place.host.empty() || place.port.empty()) return bad;
  return place;
}

/// One request and its answer. Each step begins the next; the stream's timer bounds them all.
struct Exchange {
  explicit Exchange(boost::asio::io_context& loop) : stream(loop) {}

  void start(const std::vector<any_socket::endpoint>& targets) {
    // Of several addresses of a name, the first one that answers.
    stream.async_connect(targets, [this](error_code code, const auto&...) {
      if (failed(code)) return;
      http::async_write(stream, request, [this](error_code written, std::size_t) {
        if (failed(written)) return;
        http::async_read(stream, buffer, response,
                         [this](error_code read, std::size_t) { failed(read); });
      });
    });
  }
  bool failed(error_code code) {
    error = code;
    return code.failed();
  }

  beast::basic_stream<any_socket, boost::asio::any_io_executor> stream;
  http::request<http::empty_body> request;
  http::response<http::string_body> response;
  beast::flat_buffer buffer;
  error_code error;
};

/// What is asked, and how long an answer may take.
struct Question {
  std::string address;
  std::string host;
  std::string folder;
  std::string path;
  std::chrono::milliseconds limit;
};

Result<std::string> ask(const Question& question,
                        const std::vector<any_socket::endpoint>& targets) {
  // A loop of its own, which ends with the answer: the caller waits.
  boost::asio::io_context loop;
  Exchange exchange(loop);
  exchange.request = {http::verb::get, question.folder + question.path, 11};
  // A daemon answers 421 to a name that it does not know as its own.
  exchange.request.set(http::field::host, question.host);
  exchange.stream.expires_after(question.limit);
  exchange.start(targets);
  loop.run();
  const std::string page = question.address + question.path;
  if (exchange.error == beast::error::timeout) {
    return Error{ErrorCode::timed_out,
                 fmt::format("no answer from {} within {} ms", page, question.limit.count())};
  }
  // The sockets lie side by side in /run/batchwright, and the other one is easily named. It answers
  // in its own protocol, or closes first what it does not take for that.
  const bool other =
      exchange.error.category() == make_error_code(http::error::bad_version).category();
  const bool closed = exchange.error == http::error::end_of_stream ||
                      exchange.error == boost::asio::error::connection_reset ||
                      exchange.error == boost::asio::error::broken_pipe;
  if (other || closed) {
    return Error{
        closed ? ErrorCode::disconnected : ErrorCode::malformed_message,
        fmt::format("{} {} ({}); is it the socket for clients? The pages have one of "
                    "their own, which `stats` in the daemon's configuration names",
                    question.address,
                    closed ? "closed the connection without an answer" : "answers, but not in HTTP",
                    exchange.error.message())};
  }
  if (exchange.error) {
    return Error{ErrorCode::disconnected, fmt::format("{}: {}", page, exchange.error.message())};
  }
  if (exchange.response.result() != http::status::ok) {
    return Error{ErrorCode::io_error,
                 fmt::format("{} answers {}", page, exchange.response.result_int())};
  }
  return std::move(exchange.response.body());
}

Result<std::string> ask_unix(const Question& question) {
  const std::string path = question.address.substr(kUnix.size());
  if (!path.starts_with('/') || path.size() > kMaxSocketPath) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is not an address such as unix:///run/stats.sock", question.address)};
  }
  return ask(question, {unix_socket::endpoint(path)});
}

}  // namespace

Result<std::string> http_get(const std::string& address, const std::string& path,
                             std::chrono::milliseconds limit) {
  if (address.starts_with(kUnix)) return ask_unix({address, "localhost", "", path, limit});
  const auto place = parse_place(address);
  if (!place) return place.error();
  boost::asio::io_context loop;
  // The limit does not cover this: it is the system's resolver that decides how long it looks.
  tcp::resolver resolver(loop);
  error_code error;
  const auto found = resolver.resolve(place->host, place->port, error);
  if (error) return Error{ErrorCode::io_error, fmt::format("{}: {}", address, error.message())};
  // What is printed is the address as it was given, and the path behind it.
  const std::string shown = address.substr(0, address.find_last_not_of('/') + 1);
  std::vector<any_socket::endpoint> targets;
  for (const auto& entry : found) targets.emplace_back(entry.endpoint());
  return ask({shown, place->host, place->folder, path, limit}, targets);
}

}  // namespace batchwright
