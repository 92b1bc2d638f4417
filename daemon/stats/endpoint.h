#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "formats/formats.h"

namespace boost::asio {
class io_context;
}

namespace batchwright {

/// What a route answers.
struct Reply {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Path (without query) -> what makes the answer to GET. It is called on the loop's thread, so
/// it must not wait. An exception becomes 500.
using Routes = std::map<std::string, std::function<Reply()>, std::less<>>;

/// What a peer may take.
struct EndpointLimits {
  std::size_t connections = 64;                    ///< At once; more wait in the kernel's backlog.
  std::chrono::milliseconds request_time{10'000};  ///< To send a request; to take the answer.
};

/// A small HTTP/1.1 server for GET: 404 for other paths, 405 for other methods, 400 for what is
/// no HTTP, 413 for a body, 431 for a header above 8 KiB. Connections are kept alive.
///
/// Lifetime: `loop` outlives it. After stop(), or the destructor, no route is called any more;
///   what is pending in the loop touches nothing of ours.
/// Threads: all calls on the one thread that runs the loop, or before it runs.
class Endpoint {
 public:
  /// Listens on `address`, as parse_listen_address() reads it.
  /// Errors: bad_configuration (no such form); io_error (names address and reason, such as a port
  /// in use).
  static Result<std::unique_ptr<Endpoint>> listen(boost::asio::io_context& loop,
                                                  const std::string& address, Routes routes,
                                                  EndpointLimits limits = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::uint16_t port() const;  ///< As bound, also when port 0 was asked for.
  void stop();                 ///< Closes the listener and every connection. Once is enough.

 private:
  struct State;
  class Session;
  explicit Endpoint(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace batchwright
