#include "daemon/reload/reload_socket.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <optional>
#include <utility>

namespace batchwright {
namespace {

using Protocol = boost::asio::local::stream_protocol;
using boost::system::error_code;

constexpr std::string_view kApplied = "applied: ";
constexpr std::string_view kRefused = "refused: ";
/// More than any configuration has faults for; an answer is cut there.
constexpr std::size_t kMostAnswerBytes = 1 << 16;
constexpr std::chrono::seconds kRest{1};

/// A zero byte in front makes the name abstract: no file, and gone with the daemon.
Protocol::endpoint place_of(pid_t pid) {
  return {std::string(1, '\0') + "batchwrightd/reload/" + std::to_string(pid)};
}

std::optional<ucred> peer_of(Protocol::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  // The kernel's word: credentials at the time of connect() or listen().
  const int got = ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return got == 0 ? std::optional(peer) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ReloadSocket>> ReloadSocket::open(boost::asio::io_context& loop, pid_t pid,
                                                         Ask ask) {
  std::unique_ptr<ReloadSocket> door(new ReloadSocket(loop, std::move(ask)));
  error_code error;
  door->acceptor_.open(Protocol(), error);
  if (!error) door->acceptor_.bind(place_of(pid), error);
  if (!error) door->acceptor_.listen(8, error);
  if (error) {
    return Error{ErrorCode::io_error,
                 fmt::format("abstract socket for reloads: {}", error.message())};
  }
  door->accept();
  return door;
}

ReloadSocket::~ReloadSocket() {
  error_code ignored;
  acceptor_.close(ignored);
}

void ReloadSocket::accept() {
  acceptor_.async_accept([this](const error_code& error, Protocol::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) return rest();
    admit(std::move(socket));
    accept();
  });
}

/// Out of descriptors, most likely: who asks waits in the kernel's queue meanwhile, and accepting
/// at once would fail again and again.
void ReloadSocket::rest() {
  pause_.expires_after(kRest);
  pause_.async_wait([this](const error_code& error) {
    if (!error) accept();
  });
}

void ReloadSocket::admit(Protocol::socket socket) {
  const auto peer = peer_of(socket);
  // An abstract socket has no file, so no mode keeps others out.
  if (!peer || (peer->uid != 0 && peer->uid != ::geteuid())) return;
  // Kept by the answer, which may come after many turns of the loop, or after the door is gone.
  const auto asker = std::make_shared<Protocol::socket>(std::move(socket));
  ask_([asker](bool applied, const std::string& text) {
    const auto line = std::make_shared<std::string>(applied ? kApplied : kRefused);
    *line += text.substr(0, kMostAnswerBytes) + "\n";
    boost::asio::async_write(*asker, boost::asio::buffer(*line),
                             [asker, line](const error_code&, std::size_t) {});
  });
}

Result<std::string> ask_for_reload(pid_t pid) {
  const std::string asked = fmt::format("process {}", pid);
  boost::asio::io_context own;
  Protocol::socket socket(own);
  error_code error;
  socket.connect(place_of(pid), error);
  if (error) {
    return Error{ErrorCode::not_found,
                 fmt::format("{} is not a batchwrightd that reloads: {}", asked, error.message())};
  }
  // Any process can take the name; only the kernel says which one listens there.
  const auto peer = peer_of(socket);
  if (!peer || peer->pid != pid) {
    return Error{ErrorCode::not_found,
                 fmt::format("{} does not listen itself for requests to reload", asked)};
  }
  std::string line;
  // Until the daemon closes: the end of the stream is the end of the answer, and no error.
  boost::asio::read(socket, boost::asio::dynamic_buffer(line), error);
  if (!line.empty() && line.back() == '\n') line.pop_back();
  if (line.starts_with(kApplied)) return line.substr(kApplied.size());
  if (line.starts_with(kRefused)) {
    return Error{ErrorCode::bad_configuration, line.substr(kRefused.size())};
  }
  return Error{ErrorCode::disconnected,
               asked +
                   " ended before it answered, or this user may not ask it (allowed: root, and "
                   "the user that it runs as)"};
}

}  // namespace batchwright
