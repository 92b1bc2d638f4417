#include "client/command/http_get.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace batchwright {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = boost::asio::ip::tcp;
using beast::error_code;

struct Place {
  std::string host;
  std::string port = "80";
};

Result<Place> parse_place(const std::string& address) {
  constexpr std::string_view kScheme = "http://";
  const Error bad{ErrorCode::invalid_argument,
                  "\"" + address + "\" is no address such as http://127.0.0.1:9477"};
  if (!address.starts_with(kScheme)) return bad;
  std::string rest = address.substr(kScheme.size());
  if (rest.ends_with('/')) rest.pop_back();
  Place place{rest};
  const std::size_t colon = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    place = {rest.substr(0, colon), rest.substr(colon + 1)};
  }
  if (place.host.starts_with('[') && place.host.ends_with(']')) {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  if (place.host.empty() || place.port.empty() || place.host.find('/') != std::string::npos) {
    return bad;
  }
  return place;
}

/// One request and its answer. Each step begins the next; the stream's timer bounds them all.
struct Exchange {
  explicit Exchange(boost::asio::io_context& loop) : stream(loop) {}

  void start(const tcp::resolver::results_type& targets) {
    stream.async_connect(targets, [this](error_code code, const tcp::endpoint&) {
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

  beast::tcp_stream stream;
  http::request<http::empty_body> request;
  http::response<http::string_body> response;
  beast::flat_buffer buffer;
  error_code error;
};

}  // namespace

Result<std::string> http_get(const std::string& address, const std::string& path,
                             std::chrono::milliseconds limit) {
  const auto place = parse_place(address);
  if (!place) return place.error();
  boost::asio::io_context loop;
  tcp::resolver resolver(loop);
  error_code error;
  const auto targets = resolver.resolve(place->host, place->port, error);
  if (error) return Error{ErrorCode::invalid_argument, address + ": " + error.message()};
  Exchange exchange(loop);
  exchange.request = {http::verb::get, path, 11};
  exchange.request.set(http::field::host, place->host);
  exchange.stream.expires_after(limit);
  exchange.start(targets);
  loop.run();
  if (exchange.error == beast::error::timeout) {
    return Error{ErrorCode::timed_out, "no answer from " + address + path + " within " +
                                           std::to_string(limit.count()) + " ms"};
  }
  if (exchange.error) {
    return Error{ErrorCode::disconnected, address + path + ": " + exchange.error.message()};
  }
  if (exchange.response.result() != http::status::ok) {
    return Error{ErrorCode::io_error,
                 address + path + " answers " + std::to_string(exchange.response.result_int())};
  }
  return std::move(exchange.response.body());
}

}  // namespace batchwright
