#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "formats/formats.h"

namespace batchwright {

// A reload with an answer. SIGHUP has none, so that `systemctl reload` could not fail. A daemon
// listens at the abstract Unix socket "batchwrightd/reload/PID"; to connect is to ask for a reload,
// and what comes of it is sent back as one line: "applied: ..." or "refused: ...".

/// The daemon's side.
///
/// Threads: the event loop, or before it runs. The answer may be given after the door is gone.
class ReloadSocket {
 public:
  /// The outcome of the reload, and whether it was applied.
  using Answer = std::function<void(bool applied, const std::string& text)>;
  /// Begins a reload, and has it answered.
  using Ask = std::function<void(Answer)>;

  /// Listens for process `pid`, which is this one. Processes of root and of this user may ask.
  /// Errors: io_error.
  static Result<std::unique_ptr<ReloadSocket>> open(boost::asio::io_context& loop, pid_t pid,
                                                    Ask ask);
  ~ReloadSocket();
  ReloadSocket(const ReloadSocket&) = delete;
  ReloadSocket& operator=(const ReloadSocket&) = delete;

 private:
  using Protocol = boost::asio::local::stream_protocol;

  ReloadSocket(boost::asio::io_context& loop, Ask ask)
      : acceptor_(loop), pause_(loop), ask_(std::move(ask)) {}
  void accept();
  void admit(Protocol::socket socket);
  void rest();

  Protocol::acceptor acceptor_;
  boost::asio::steady_timer pause_;  ///< Runs while accepting rests.
  Ask ask_;
};

/// The other side: asks the daemon with this process number for a reload, and waits for what comes
/// of it. What was applied. Errors: bad_configuration (it was refused, with the reason); not_found
/// (no such daemon, or not one that answers this user); disconnected (it ended meanwhile).
Result<std::string> ask_for_reload(pid_t pid);

}  // namespace batchwright
