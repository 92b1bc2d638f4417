#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/http/listen_address.h"
#include "daemon/http/routes.h"
#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace boost::asio {
class io_context;
}

namespace batchwright {

/// The limits for peers.
struct EndpointLimits {
  /// Most open connections. For one more, the connection that has been silent longest makes room.
  std::size_t connections = 64;
  std::size_t live_readers = 16;  ///< Most readers of each stream; one more gets 503.
  std::chrono::milliseconds request_time{
      10'000};  ///< Limit for sending a request, and for taking the answer.
};

/// The endpoint's addresses.
struct EndpointPlace {
  std::vector<std::string> addresses;  ///< Addresses that parse_http_address() reads.
  SocketAccess access;                 ///< Access to Unix sockets.
  EndpointLimits limits = {};
  std::set<std::string> hosts = {};  ///< Names beside those of HostNames.
  EventLog* log = nullptr;           ///< Outlives the endpoint; null: it keeps its own.
  /// What the path of each request over TCP begins with, between slashes; empty: with nothing. Who
  /// does not know it gets 403.
  std::string secret = {};
};

struct EndpointFigures {
  std::uint32_t connections = 0;  ///< Open now.
  std::uint64_t requests = 0;     ///< Answered with a page, since the start.
  std::uint64_t refused = 0;      ///< Answered with 400 and up, or hung up on to make room.
};

/// A small HTTP/1.1 server for GET and HEAD: 404 for other paths, 405 for other methods, 400 for
/// what is no HTTP, 403 without the secret, 413 for a body, 421 for a name that is not this
/// machine's (over TCP), 431 for a header above 8 KiB. Connections are kept alive.
///
/// Lifetime: `loop` outlives it. After stop(), or the destructor, no route is called; what is
/// pending in the loop touches nothing of ours.
/// Threads: all calls on the one thread that runs the loop, or before it runs.
class HttpServer {
 public:
  /// Listens on every address. Errors: bad_configuration (no such address), io_error (names address
  /// and reason, such as a port in use), already_exists (a process answers on the Unix socket, or a
  /// file that is no socket is in the way).
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& loop,
                                                    const EndpointPlace& place, Routes routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The bound ports, actual ones where port 0 was requested: one per address, 0 for a Unix socket.
  std::vector<std::uint16_t> ports() const;
  /// The addresses as clients on this machine use them: "unix://" and a path, or "http://", a host
  /// and the actual port, and the secret.
  std::vector<std::string> addresses() const;
  /// Says in a file of this path where the pages are, until stop(); it has the access of the Unix
  /// sockets. Errors: io_error.
  Result<void> publish(const std::string& path);
  EndpointFigures figures() const;
  void stop();  ///< Closes the listeners and every connection. Once is enough.

 private:
  struct State;
  class Session;
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace batchwright
