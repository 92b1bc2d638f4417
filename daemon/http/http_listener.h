#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/stats/stats.h"
#include "formats/formats.h"

namespace batchwright {

/// A listening socket of one address, TCP or Unix.
///
/// Lifetime: `loop` outlives it. When it is destroyed it accepts nothing more, and its socket's
/// file is removed.
/// Threads: the loop's, or before it runs.
class HttpListener {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  /// `log` outlives the listener. A socket that a killed daemon left is replaced. Errors:
  /// bad_configuration (no such address), io_error (address and reason), already_exists (a process
  /// answers there, or a file that is no socket is in the way).
  static Result<std::unique_ptr<HttpListener>> open(boost::asio::io_context& loop,
                                                    const std::string& address,
                                                    const SocketAccess& access, EventLog& log);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  /// Calls `take` for each connection from now on, a thousand times a second at most; more wait in
  /// the kernel's queue. When the process is out of descriptors, accepting rests for a second.
  void accept(std::function<void(Socket)> take);
  std::uint16_t port() const;  ///< The bound port; 0 for a Unix socket.
  void stop();                 ///< Once is enough.

 private:
  struct State;
  explicit HttpListener(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace batchwright
