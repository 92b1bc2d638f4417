#include "tests/client/fake/fake_daemon.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/client/fake/fake_sockets.h"

namespace batchwright::test {
namespace {

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  unlink(path.c_str());  // left by one that was killed
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  require(listen(fd, 8) == 0);
  return fd;
}

void use_curve(void* router, const std::string& secret) {
  const int server = 1;
  require(zmq_setsockopt(router, ZMQ_CURVE_SERVER, &server, sizeof server) == 0);
  require(zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, secret.c_str(), secret.size() + 1) == 0);
}

/// The port that "*" became.
std::string bound_endpoint(void* router) {
  std::array<char, 256> text{};
  std::size_t size = text.size();
  require(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, text.data(), &size) == 0);
  return text.data();
}

}  // namespace

FakeDaemon::FakeDaemon(ThreadPolicy manners)
    : manners_(std::move(manners)), alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  endpoint_ = manners_.endpoint.empty() ? "ipc://" + (folder_ / "s").string() : manners_.endpoint;
  start();
}

FakeDaemon::~FakeDaemon() {
  die();
  drop_arena();
  ::close(alarm_);
}

void FakeDaemon::start() {
  make_arena();
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return listening_; });
}

void FakeDaemon::die() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
}

void FakeDaemon::rise(ThreadPolicy manners) {
  die();
  drop_arena();
  manners_ = std::move(manners);
  outbox_.clear();
  served_.clear();
  releases_ = 0;
  ++session_;
  stop_ = listening_ = dead_ = false;
  flushed_ = true;
  start();
}

bool FakeDaemon::is_dead() {
  const std::lock_guard lock(mutex_);
  return dead_;
}

void FakeDaemon::make_arena() {
  const std::uint64_t bytes = std::max<std::uint64_t>(manners_.arena_bytes, kArenaBytes);
  arena_ = memfd_create("fake-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(arena_ >= 0 && ftruncate(arena_, static_cast<off_t>(bytes)) == 0);
  memory_ = static_cast<std::byte*>(
      mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena_, 0));
  require(memory_ != MAP_FAILED);
  const int all = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (manners_.seals) require(fcntl(arena_, F_ADD_SEALS, all) == 0);
  large_arena_ = memfd_create("too-large", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(large_arena_ >= 0 && ftruncate(large_arena_, off_t{1} << 47) == 0);
  require(fcntl(large_arena_, F_ADD_SEALS, all) == 0);
}

void FakeDaemon::drop_arena() {
  munmap(memory_, kArenaBytes);
  ::close(arena_);
  ::close(large_arena_);
}

void FakeDaemon::wake() const {
  const std::uint64_t one = 1;
  require(write(alarm_, &one, sizeof one) == sizeof one);
}

void FakeDaemon::send_bytes(const flatbuffers::DetachedBuffer& bytes,
                            std::vector<std::byte> batch) {
  {
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    const std::lock_guard lock(mutex_);
    outbox_.push_back({{data, data + bytes.size()}, std::move(batch)});
    flushed_ = false;
  }
  wake();
}

void FakeDaemon::flush() {
  std::unique_lock lock(mutex_);
  // Longer than any test waits, and shorter than a run of them: a fake that stands still is told
  // from a library that does.
  require(changed_.wait_for(lock, std::chrono::seconds(120), [this] { return flushed_ || dead_; }));
}

void FakeDaemon::spoil(std::uint64_t offset, std::uint64_t size) {
  std::memset(memory_ + offset, 0xA5, size);
}

bool FakeDaemon::hears(const std::function<bool(const Heard&)>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return holds(heard_); });
}

bool FakeDaemon::has_heard(const std::function<bool(const Heard&)>& holds) {
  const std::lock_guard lock(mutex_);
  return holds(heard_);
}

void FakeDaemon::run() {
  {
    Sockets sockets;
    sockets.part_bytes = manners_.part_bytes;
    if (!manners_.curve_secret.empty()) use_curve(sockets.router, manners_.curve_secret);
    require(zmq_bind(sockets.router, endpoint_.c_str()) == 0);
    endpoint_ = bound_endpoint(sockets.router);
    if (manners_.shares_arena) sockets.listener = listen_at((folder_ / "s.arena").string());
    {
      const std::lock_guard lock(mutex_);
      listening_ = true;
    }
    changed_.notify_all();
    serve_sockets(sockets);
  }
  const std::lock_guard lock(mutex_);
  dead_ = true;
  changed_.notify_all();
}

void FakeDaemon::serve_sockets(Sockets& sockets) {
  constexpr long kAliveMs = 200;
  while (true) {
    std::vector<zmq_pollitem_t> items = {{sockets.router, 0, ZMQ_POLLIN, 0},
                                         {nullptr, alarm_, ZMQ_POLLIN, 0},
                                         {nullptr, sockets.listener, ZMQ_POLLIN, 0}};
    if (sockets.listener < 0) items.back() = items[1];
    for (const int fd : sockets.connections) items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
    const bool tells = inline_ && manners_.alive && !sockets.peer.empty();
    const int count = zmq_poll(items.data(), static_cast<int>(items.size()), tells ? kAliveMs : -1);
    if (count == 0) sockets.say(wire::AliveT{});
    std::uint64_t calls = 0;
    static_cast<void>(!read(alarm_, &calls, sizeof calls));
    if ((items[0].revents & ZMQ_POLLIN) != 0) {
      std::vector<std::byte> frame(1 << 16);
      sockets.peer.resize(256);
      sockets.peer.resize(static_cast<std::size_t>(
          zmq_recv(sockets.router, sockets.peer.data(), sockets.peer.size(), 0)));
      frame.resize(
          static_cast<std::size_t>(zmq_recv(sockets.router, frame.data(), frame.size(), 0)));
      on_frame(sockets, frame);
    }
    // From the last to the first, since one that has ended is erased.
    for (std::size_t i = sockets.connections.size(); i-- > 0;) {
      if (items[3 + i].revents != 0) answer_arena(sockets, i);
    }
    if (sockets.listener >= 0 && items[2].revents != 0) {
      sockets.connections.push_back(accept4(sockets.listener, nullptr, nullptr, SOCK_CLOEXEC));
    }
    std::deque<Outgoing> outbox;
    {
      const std::lock_guard lock(mutex_);
      outbox.swap(outbox_);
    }
    for (const auto& out : outbox) sockets.say(std::span(out.bytes), std::span(out.batch));
    const std::lock_guard lock(mutex_);
    flushed_ = outbox_.empty();
    if (flushed_) changed_.notify_all();
    if (stop_) return;
  }
}

}  // namespace batchwright::test
