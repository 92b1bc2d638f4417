#include "tests/client/fake_daemon.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace batchwright::test {
namespace {

constexpr std::size_t kSlotBytes = 16384;
constexpr std::size_t kSlots = 64;
constexpr std::size_t kArenaBytes = kSlotBytes * kSlots;
constexpr std::uint64_t kSession = 0xFEED;

void require(bool holds) {
  if (!holds) std::abort();  // the machine cannot run this test
}

int make_arena(bool seals, std::byte*& memory) {
  const int fd = memfd_create("fake-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(fd >= 0 && ftruncate(fd, kArenaBytes) == 0);
  memory = static_cast<std::byte*>(
      mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  require(memory != MAP_FAILED);
  const int all = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (seals) require(fcntl(fd, F_ADD_SEALS, all) == 0);
  return fd;
}

int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  require(listen(fd, 8) == 0);
  return fd;
}

void send_reply(int socket, const ArenaReply& reply, int descriptor) {
  iovec bytes{const_cast<ArenaReply*>(&reply), sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

wire::WelcomeT welcome_of(const Manners& manners, const std::string& arena_socket) {
  wire::WelcomeT welcome;
  welcome.protocol = manners.protocol;
  welcome.version = "fake";
  welcome.session = kSession;
  welcome.arena_socket = arena_socket;
  auto feed = std::make_unique<wire::FeedInfoT>();
  feed->name = "train";
  feed->world = manners.world;
  feed->sequences = 7;
  auto features = std::make_unique<wire::FieldInfoT>();
  features->name = "features";
  features->dtype = DType::float32;
  features->shape = {2};
  auto label = std::make_unique<wire::FieldInfoT>();
  label->name = "label";
  label->kind = FieldKind::scalar;
  label->dtype = DType::int32;
  label->categories = {"yes", "no"};
  feed->fields.push_back(std::move(features));
  feed->fields.push_back(std::move(label));
  welcome.feeds.push_back(std::move(feed));
  return welcome;
}

}  // namespace

/// What the thread inside owns.
struct FakeDaemon::Sockets {
  void* context = zmq_ctx_new();
  void* router = zmq_socket(context, ZMQ_ROUTER);
  int listener = -1;
  std::vector<int> connections;
  std::vector<std::byte> peer;

  void say(std::span<const std::byte> bytes) const {
    zmq_send(router, peer.data(), peer.size(), ZMQ_SNDMORE);
    zmq_send(router, bytes.data(), bytes.size(), 0);
  }
  template <class Body>
  void say(Body body) const {
    const auto bytes = encode(std::move(body));
    say(std::span(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
  }
  void refuse(ErrorCode code, const std::string& text, std::uint32_t subscription) const {
    wire::RefusedT refused;
    refused.code = static_cast<std::uint16_t>(code);
    refused.message = text;
    refused.subscription = subscription;
    say(std::move(refused));
  }
  ~Sockets() {
    for (const int fd : connections) ::close(fd);
    ::close(listener);
    const int linger = 0;
    zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof linger);
    zmq_close(router);
    zmq_ctx_term(context);
  }
};

FakeDaemon::FakeDaemon(Manners manners)
    : manners_(manners),
      arena_(make_arena(manners.seals, memory_)),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return listening_; });
}

FakeDaemon::~FakeDaemon() {
  die();
  munmap(memory_, kArenaBytes);
  ::close(arena_);
  ::close(alarm_);
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

void FakeDaemon::wake() const {
  const std::uint64_t one = 1;
  require(write(alarm_, &one, sizeof one) == sizeof one);
}

wire::DeliveryT FakeDaemon::lay_out(std::uint64_t epoch, std::uint64_t step, std::uint64_t index) {
  const FieldSpec features{"features", FieldKind::primary, DType::float32, {2}, {}};
  const FieldSpec label{"label", FieldKind::scalar, DType::int32, {}, {"yes", "no"}};
  const std::vector<std::uint64_t> ordinals = {index * 2, index * 2 + 1};
  const std::vector<std::string_view> keys = {"one", "another"};
  const std::vector<std::uint32_t> lengths = {3, 2};
  BatchSpec spec;
  spec.feed = "train";
  spec.epoch = Epoch{epoch};
  spec.step = Step{step};
  spec.index = BatchIndex{index};
  spec.world = manners_.world;
  spec.fingerprint = {1, 2, 3};
  spec.batch_length = 3;
  spec.ordinals = ordinals;
  spec.keys = keys;
  spec.lengths = lengths;
  spec.batch_frames = 5;
  spec.step_sequences = 2 * manners_.world;
  spec.step_frames = std::uint64_t{5} * manners_.world;
  spec.tensors = {{&features, {2, 3, 2}, {}}, {&label, {2}, {}}};
  const std::size_t slot = slots_used_++ % kSlots;
  const auto laid = lay_out_batch(spec, {memory_ + slot * kSlotBytes, kSlotBytes});
  require(laid.has_value());
  auto* floats = reinterpret_cast<float*>(laid->payloads[0].data());
  for (std::size_t i = 0; i < 12; ++i) floats[i] = value(index, i / 6, i / 2 % 3, i % 2);
  const std::array<std::int32_t, 2> labels = {0, 1};
  std::memcpy(laid->payloads[1].data(), labels.data(), sizeof labels);
  wire::DeliveryT ticket;
  ticket.lease = 100 + slots_used_;
  ticket.arena = 1;
  ticket.slot = static_cast<std::uint32_t>(slot);
  ticket.offset = slot * kSlotBytes + laid->offset;
  ticket.size = laid->size;
  ticket.epoch = epoch;
  ticket.step = step;
  ticket.index = index;
  return ticket;
}

std::uint64_t FakeDaemon::deliver(std::uint32_t subscription, std::uint64_t epoch,
                                  std::uint64_t step, std::uint64_t index) {
  wire::DeliveryT ticket = lay_out(epoch, step, index);
  ticket.subscription = subscription;
  const std::uint64_t lease = ticket.lease;
  send(std::move(ticket));
  return lease;
}

void FakeDaemon::end_epoch(std::uint32_t subscription, std::uint64_t epoch, bool last) {
  wire::EpochEndT end;
  end.subscription = subscription;
  end.epoch = epoch;
  end.steps = manners_.steps;
  end.last = last;
  send(std::move(end));
}

void FakeDaemon::send_bytes(const flatbuffers::DetachedBuffer& bytes) {
  {
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    const std::lock_guard lock(mutex_);
    outbox_.emplace_back(data, data + bytes.size());
  }
  wake();
}

void FakeDaemon::spoil(std::uint64_t offset, std::uint64_t size) {
  std::memset(memory_ + offset, 0xA5, size);
}

bool FakeDaemon::hears(const std::function<bool(const Heard&)>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return holds(heard_); });
}

void FakeDaemon::run() {
  Sockets sockets;
  require(zmq_bind(sockets.router, endpoint().c_str()) == 0);
  sockets.listener = listen_at((folder_ / "s.arena").string());
  {
    const std::lock_guard lock(mutex_);
    listening_ = true;
  }
  changed_.notify_all();
  while (true) {
    std::vector<zmq_pollitem_t> items = {{sockets.router, 0, ZMQ_POLLIN, 0},
                                         {nullptr, alarm_, ZMQ_POLLIN, 0},
                                         {nullptr, sockets.listener, ZMQ_POLLIN, 0}};
    for (const int fd : sockets.connections) items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
    zmq_poll(items.data(), static_cast<int>(items.size()), -1);
    std::uint64_t calls = 0;
    static_cast<void>(!read(alarm_, &calls, sizeof calls));
    if ((items[0].revents & ZMQ_POLLIN) != 0) {
      std::vector<std::byte> frame(4096);
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
    if (items[2].revents != 0) {
      sockets.connections.push_back(accept4(sockets.listener, nullptr, nullptr, SOCK_CLOEXEC));
    }
    std::deque<std::vector<std::byte>> outbox;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      outbox.swap(outbox_);
    }
    for (const auto& bytes : outbox) sockets.say(std::span(bytes));
  }
}

void FakeDaemon::on_frame(Sockets& sockets, std::span<const std::byte> frame) {
  const auto message = ControlMessage::decode(frame);
  require(message.has_value());
  if (const auto* hello = message->as<wire::Hello>()) {
    {
      const std::lock_guard lock(mutex_);
      heard_.client = hello->client()->str();
    }
    if (manners_.protocol != kProtocolVersion) {
      sockets.refuse(ErrorCode::unsupported_version, "client 1, daemon 2", 0);
      sockets.say(wire::ByeT{});
    } else if (manners_.answers_hello) {
      sockets.say(welcome_of(manners_, (folder_ / "s.arena").string()));
    }
  } else if (const auto* request = message->as<wire::Subscribe>()) {
    on_subscribe(sockets, *request);
  }
  const std::lock_guard lock(mutex_);
  if (const auto* release = message->as<wire::Release>()) {
    heard_.released.insert(heard_.released.end(), release->leases()->begin(),
                           release->leases()->end());
  } else if (const auto* unsubscribe = message->as<wire::Unsubscribe>()) {
    heard_.unsubscribed.push_back(unsubscribe->subscription());
  } else if (message->as<wire::Bye>() != nullptr) {
    ++heard_.byes;
  }
  changed_.notify_all();
}

void FakeDaemon::on_subscribe(Sockets& sockets, const wire::Subscribe& request) {
  {
    const std::lock_guard lock(mutex_);
    request.UnPackTo(&heard_.subscribed.emplace_back());
  }
  if (!manners_.answers_subscribe) return;
  if (request.feed()->string_view() != "train") {
    return sockets.refuse(ErrorCode::not_found, "no such feed; there is: train",
                          request.subscription());
  }
  wire::SubscribedT answer;
  answer.subscription = request.subscription();
  answer.fingerprint = std::make_unique<wire::Fingerprint>(1, 2, 3);
  answer.epoch = request.epoch();
  answer.step = request.step();
  answer.steps = manners_.steps;
  answer.world = manners_.world;
  answer.batches_per_step = manners_.world / request.ranks();
  answer.window = request.window();
  answer.arena = 1;
  answer.arena_bytes = kArenaBytes;
  sockets.say(std::move(answer));
}

void FakeDaemon::answer_arena(Sockets& sockets, std::size_t connection) {
  const int fd = sockets.connections[connection];
  ArenaRequest request;
  if (recv(fd, &request, sizeof request, 0) != sizeof request) {
    ::close(fd);
    sockets.connections.erase(sockets.connections.begin() +
                              static_cast<std::ptrdiff_t>(connection));
    const std::lock_guard lock(mutex_);
    ++heard_.lost;
    return changed_.notify_all();
  }
  ArenaReply reply;
  reply.arena = request.arena;
  if (request.session != kSession) reply.code = static_cast<std::uint32_t>(ErrorCode::not_found);
  if (request.arena != 0) reply.bytes = kArenaBytes;
  send_reply(fd, reply, request.arena != 0 ? arena_ : -1);
}

}  // namespace batchwright::test
