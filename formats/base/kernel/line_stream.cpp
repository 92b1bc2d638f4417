#include "formats/base/kernel/line_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "formats/base/kernel/descriptor.h"
#include "formats/base/kernel/mutex.h"
#include "formats/base/kernel/start_thread.h"

// How a write does not wait, though O_NONBLOCK would hold for all who share the stream: a socket
// takes MSG_DONTWAIT; a pipe or a terminal is opened once more, which gives flags of its own. Where
// that may not be done, for a pipe of another user, poll() says whether there is room for a page:
// one that another writer takes at that very moment is waited for. A file has no reader.

namespace batchwright {
namespace {

constexpr std::chrono::milliseconds kLastWait{200};
constexpr std::chrono::milliseconds kLook{50};  // whether it is to end

enum class StreamKind : std::uint8_t { file, socket, pipe };

StreamKind kind_of(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return StreamKind::file;
  if (S_ISSOCK(status.st_mode)) return StreamKind::socket;
  const bool waits = S_ISFIFO(status.st_mode) || ::isatty(descriptor) == 1;
  return waits ? StreamKind::pipe : StreamKind::file;
}

Descriptor opened_anew(int descriptor) {
  return Descriptor(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                           O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

struct LineStream::State {
  explicit State(int descriptor)
      : kind(kind_of(descriptor)),
        own(kind == StreamKind::pipe ? opened_anew(descriptor) : Descriptor()),
        stream(own ? own.get() : descriptor) {}

  /// Bytes that were taken; -1 and errno: none, EAGAIN where that may change.
  ssize_t try_write(std::string_view text) const {
    if (kind == StreamKind::socket) {
      return ::send(stream, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (kind == StreamKind::pipe && !own) {
      pollfd room{stream, POLLOUT, 0};
      if (::poll(&room, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      text = text.substr(0, PIPE_BUF);
    }
    return ::write(stream, text.data(), text.size());
  }

  /// Writes what can be written, and tells of lines that were dropped before there was room.
  void empty_queue() REQUIRES(mutex) {
    while (!lines.empty()) {
      std::string& line = lines.front();
      const ssize_t taken = try_write(line);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && errno == EAGAIN) return;
      if (taken < 0) return drop_all();
      bytes -= static_cast<std::size_t>(taken);
      line.erase(0, static_cast<std::size_t>(taken));
      if (line.empty()) lines.pop_front();
    }
    if (untold != 0 && room_again) room_again(std::exchange(untold, 0));
  }

  /// No reader is left, or the disk is full.
  void drop_all() REQUIRES(mutex) {
    dropped += lines.size();
    untold += lines.size();
    lines.clear();
    bytes = 0;
  }

  void run(const std::stop_token& stop) {
    for (;;) {
      pollfd room{stream, POLLOUT, 0};
      const int found = ::poll(&room, 1, static_cast<int>(kLook.count()));
      MutexLock lock(mutex);
      const std::size_t before = bytes;
      empty_queue();
      if (lines.empty() || stop.stop_requested()) {
        running = false;
        emptied.notify_all();
        return;
      }
      // Room that is too little, or that another writer was faster to take.
      if (found > 0 && bytes == before) emptied.wait_for(lock, kLook / 5);
    }
  }

  const StreamKind kind;
  const Descriptor own;
  const int stream;
  mutable Mutex mutex;
  std::function<void(std::uint64_t)> room_again GUARDED_BY(mutex);
  Condition emptied;
  std::deque<std::string> lines GUARDED_BY(mutex);  // a part of the first may be written
  std::size_t bytes GUARDED_BY(mutex) = 0;
  std::uint64_t dropped GUARDED_BY(mutex) = 0;
  std::uint64_t untold GUARDED_BY(mutex) = 0;
  bool running GUARDED_BY(mutex) = false;
  std::optional<std::jthread> thread;
};

LineStream::LineStream(int descriptor) : state_(std::make_unique<State>(descriptor)) {}

LineStream::~LineStream() {
  MutexLock lock(state_->mutex);
  state_->emptied.wait_for(lock, kLastWait,
                           [this]() REQUIRES(state_->mutex) { return !state_->running; });
}

void LineStream::write(std::string_view line) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (state.bytes != 0 && state.bytes + line.size() > kMostBytes) {
    ++state.dropped;
    ++state.untold;
    return;
  }
  state.lines.emplace_back(line);
  state.bytes += line.size();
  if (state.running) return;
  state.empty_queue();
  if (state.lines.empty()) return;
  state.thread.reset();  // it has left run(), or is about to
  state.thread = start_thread("bw-log", [&state](const auto& stop) { state.run(stop); });
  state.running = state.thread.has_value();
}

std::uint64_t LineStream::dropped() const {
  const MutexLock lock(state_->mutex);
  return state_->dropped;
}

void LineStream::on_room(std::function<void(std::uint64_t)> callback) {
  const MutexLock lock(state_->mutex);
  state_->room_again = std::move(callback);
}

}  // namespace batchwright
