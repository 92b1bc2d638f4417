#include "client/library/memory/arena_link.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(sizeof(ArenaRequest) == 16 && sizeof(ArenaReply) == 24);

Error failed(const std::string& call) {
  const int code = errno;
  if (code == EAGAIN || code == EINPROGRESS) {
    return {ErrorCode::timed_out, fmt::format("the arena socket: {}: no answer in time", call)};
  }
  if (code == EPIPE || code == ECONNRESET) {
    return {ErrorCode::disconnected, "the arena socket: the daemon closed it"};
  }
  return {ErrorCode::io_error, fmt::format("the arena socket: {}: {}", call, std::strerror(code))};
}

/// Makes connect return EAGAIN when the time is over.
void limit_waits(int socket, const Deadline& deadline) {
  // A limit of 0 would mean none.
  const auto left = std::max(deadline.remaining(Clock::now()), std::chrono::milliseconds(1));
  timeval limit{};
  limit.tv_sec = static_cast<decltype(limit.tv_sec)>(left.count() / 1000);
  limit.tv_usec = static_cast<decltype(limit.tv_usec)>(left.count() % 1000 * 1000);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/// The first descriptor that came along; others are closed.
Descriptor take_descriptor(msghdr& header) {
  Descriptor taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      Descriptor received(fd);
      if (!taken) taken = std::move(received);
    }
  }
  return taken;
}

}  // namespace

Result<std::unique_ptr<ArenaLink>> ArenaLink::open(const std::string& path, SessionId session,
                                                   const Deadline& deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::malformed_message,
                 fmt::format("the arena socket's path has {} bytes; 1 to {} are allowed",
                             path.size(), sizeof address.sun_path - 1)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("socket");
  int connected = 0;
  do {  // a signal's handler may interrupt the wait for room in the listener's queue
    limit_waits(socket.get(), deadline);
    connected =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (connected != 0 && errno == EINTR && !deadline.passed(Clock::now()));
  if (connected != 0) return failed(fmt::format("connect to {}", path));
  auto link = std::make_unique<ArenaLink>(std::move(socket), session);
  if (const auto bound = link->ask(ArenaNumber{0}, deadline); !bound) return bound.error();
  return link;
}

Result<std::shared_ptr<const Mapping>> ArenaLink::fetch(ArenaNumber arena,
                                                        const Deadline& deadline) {
  auto answer = ask_for_descriptor(arena, deadline);
  if (!answer) return answer.error();
  return Mapping::map(answer->arena, answer->reply.bytes);
}

Result<std::shared_ptr<const Area>> ArenaLink::fetch_area(ArenaNumber area,
                                                          const Deadline& deadline) {
  const auto answer = ask_for_descriptor(area, deadline);
  if (!answer) return answer.error();
  return Area::map(answer->arena, answer->reply.bytes);
}

Result<ArenaLink::Answer> ArenaLink::ask_for_descriptor(ArenaNumber arena,
                                                        const Deadline& deadline) {
  auto answer = ask(arena, deadline);
  if (answer && !answer->arena) {
    return Error{ErrorCode::malformed_message, "the arena socket: a reply without descriptor"};
  }
  return answer;
}

bool ArenaLink::alive() const {
  char byte = 0;
  const ssize_t got = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/// A call that ended before its answer came leaves that to the next, which may be about another
/// arena: answers come in the order of the requests.
Result<ArenaLink::Answer> ArenaLink::ask(ArenaNumber arena, const Deadline& deadline) {
  while (true) {
    if (!asked_) {
      if (auto sent = send_request(arena, deadline); !sent) return sent.error();
    }
    if (auto came = receive(deadline); !came) return came.error();
    const ArenaNumber about = *std::exchange(asked_, std::nullopt);
    Answer answer = std::exchange(answer_, {});
    have_ = 0;
    const ArenaReply& reply = answer.reply;
    if (reply.magic != ArenaRequest::kMagic || reply.arena != about.value ||
        reply.code > UINT16_MAX) {
      return Error{ErrorCode::malformed_message, "the arena socket: bytes that are no reply"};
    }
    if (about != arena) continue;
    if (reply.code == 0) return answer;
    const auto code = static_cast<ErrorCode>(reply.code);
    return Error{code,
                 fmt::format("the daemon refuses arena {}: {}", arena.value, to_string(code))};
  }
}

Result<void> ArenaLink::send_request(ArenaNumber arena, const Deadline& deadline) {
  const ArenaRequest request{ArenaRequest::kMagic, arena.value, session_.value};
  while (true) {
    const ssize_t sent = send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == sizeof request) break;
    if (sent >= 0) return Error{ErrorCode::io_error, "the arena socket: a part was sent"};
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(POLLOUT, deadline)) return failed("send");
  }
  asked_ = arena;
  return {};
}

/// False, with errno, when it has not come by then.
bool ArenaLink::wait_for(short event, const Deadline& deadline) const {
  pollfd item{socket_.get(), event, 0};
  while (true) {
    const auto left = std::min<std::int64_t>(deadline.remaining(Clock::now()).count(), INT_MAX);
    const int found = poll(&item, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    if (found < 0 && !deadline.passed(Clock::now())) continue;
    errno = EAGAIN;
    return false;
  }
}

Result<void> ArenaLink::receive(const Deadline& deadline) {
  while (have_ < sizeof answer_.reply) {
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    iovec bytes{reinterpret_cast<char*>(&answer_.reply) + have_, sizeof answer_.reply - have_};
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN && wait_for(POLLIN, deadline)) continue;
    if (got < 0) return failed("receive");
    Descriptor received = take_descriptor(header);
    if (received) answer_.arena = std::move(received);
    if (got == 0) {
      return Error{ErrorCode::disconnected, "the arena socket: the daemon closed it"};
    }
    have_ += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace batchwright
