#include "tests/client/fake/fake_live.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace batchwright::test {
namespace {

constexpr long kLookMs = 20;

void need(bool holds) {
  if (!holds) std::abort();  // the machine cannot run this test
}

std::vector<std::byte> receive(void* socket) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  need(zmq_msg_recv(&message, socket, 0) >= 0);
  const auto* bytes = static_cast<const std::byte*>(zmq_msg_data(&message));
  std::vector<std::byte> copy(bytes, bytes + zmq_msg_size(&message));
  zmq_msg_close(&message);
  return copy;
}

template <class Number>
Number read(const std::byte* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

std::unique_ptr<wire::FieldInfoT> field(const char* name, FieldKind kind, DType dtype) {
  auto made = std::make_unique<wire::FieldInfoT>();
  made->name = name;
  made->kind = kind;
  made->dtype = dtype;
  return made;
}

}  // namespace

struct FakeLive::Sockets {
  explicit Sockets(const std::string& endpoint) {
    const int linger = 0;
    zmq_setsockopt(router, ZMQ_LINGER, &linger, sizeof linger);
    need(zmq_bind(router, endpoint.c_str()) == 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = endpoint.substr(6) + ".arena";
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ::unlink(path.c_str());
    listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    need(::listen(listener, 16) == 0);
  }
  ~Sockets() {
    for (const int fd : connections) ::close(fd);
    ::close(listener);
    zmq_close(router);
    zmq_ctx_term(context);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  template <class Body>
  void say(Body body) const {
    const auto bytes = encode(std::move(body));
    zmq_send(router, peer.data(), peer.size(), ZMQ_SNDMORE);
    zmq_send(router, bytes.data(), bytes.size(), 0);
  }

  void* context = zmq_ctx_new();
  void* router = zmq_socket(context, ZMQ_ROUTER);
  int listener = -1;
  std::vector<int> connections;
  std::string peer;
};

FakeLive::FakeLive(std::uint64_t area_bytes)
    : endpoint_("ipc://" + (folder_ / "s").string()), area_bytes_(area_bytes) {
  start();
}

FakeLive::~FakeLive() {
  die();
  drop_areas();
}

std::vector<FakeLive::Taken> FakeLive::taken() {
  const std::lock_guard lock(mutex_);
  return taken_;
}

void FakeLive::start() {
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  listening_.wait(lock, [this] { return is_listening_; });
}

void FakeLive::die() {
  if (!thread_.joinable()) return;
  stop_ = true;
  thread_.join();
  is_listening_ = false;
}

void FakeLive::rise() {
  stop_ = false;
  drop_areas();
  start();
}

void FakeLive::run() {
  Sockets sockets(endpoint_);
  {
    const std::lock_guard lock(mutex_);
    is_listening_ = true;
  }
  listening_.notify_all();
  while (!stop_) {
    std::vector<zmq_pollitem_t> items = {{sockets.router, 0, ZMQ_POLLIN, 0},
                                         {nullptr, sockets.listener, ZMQ_POLLIN, 0}};
    for (const int fd : sockets.connections) items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
    zmq_poll(items.data(), static_cast<int>(items.size()), kLookMs);
    for (std::size_t i = items.size(); i > 2; --i) {
      if (items[i - 1].revents != 0) answer_arena(sockets, i - 3);
    }
    if (items[1].revents != 0) {
      sockets.connections.push_back(::accept4(sockets.listener, nullptr, nullptr, SOCK_CLOEXEC));
    }
    if (items[0].revents == 0) continue;
    std::vector<std::vector<std::byte>> frames;
    int more = 1;
    for (std::size_t size = sizeof more; more != 0;) {
      frames.push_back(receive(sockets.router));
      zmq_getsockopt(sockets.router, ZMQ_RCVMORE, &more, &size);
    }
    sockets.peer.assign(reinterpret_cast<const char*>(frames[0].data()), frames[0].size());
    on_message(sockets, frames);
  }
}

void FakeLive::on_message(Sockets& sockets, const std::vector<std::vector<std::byte>>& frames) {
  const auto message = ControlMessage::decode(frames.at(1));
  need(message.has_value());
  if (message->as<wire::Hello>() != nullptr) {
    wire::WelcomeT welcome;
    welcome.protocol = kProtocolVersion;
    welcome.abilities = kAbilities.bits();
    welcome.session = 7;
    welcome.arena_socket = endpoint_.substr(6) + ".arena";
    auto feed = std::make_unique<wire::FeedInfoT>();
    feed->name = "rollouts";
    feed->world = 1;
    feed->fields.push_back(field("tokens", FieldKind::primary, DType::int32));
    feed->fields.push_back(field("text", FieldKind::independent, DType::uint8));
    feed->fields.push_back(field("reward", FieldKind::scalar, DType::float32));
    feed->live = std::make_unique<wire::LiveInfoT>();
    feed->live->max_length = 100'000;
    welcome.feeds.push_back(std::move(feed));
    auto stored = std::make_unique<wire::FeedInfoT>();
    stored->name = "train";
    stored->fields.push_back(field("tokens", FieldKind::primary, DType::int32));
    welcome.feeds.push_back(std::move(stored));
    sockets.say(std::move(welcome));
  } else if (const auto* wanted = message->as<wire::Produce>()) {
    on_produce(sockets, *wanted);
  } else if (const auto* push = message->as<wire::Push>()) {
    on_push(sockets, *push, frames.size() > 2 ? frames[2] : std::vector<std::byte>());
  } else if (const auto* claim = message->as<wire::Claim>()) {
    wire::ClaimedT claimed;
    claimed.producer = claim->producer();
    claimed.question = claim->question();
    claimed.version = version_;
    claimed.ended = ended_;
    sockets.say(std::move(claimed));
  } else if (const auto* list = message->as<wire::ListOutcomes>()) {
    wire::OutcomesT outcomes;
    outcomes.question = list->question();
    outcomes.first = list->first();
    outcomes.totals.assign(kOutcomes, 0);
    outcomes.totals[1] = next_[peers_[sockets.peer].name];
    outcomes.outcomes.assign(list->count(), wire::Outcome::waiting);
    sockets.say(std::move(outcomes));
  } else if (const auto* advance = message->as<wire::Advance>()) {
    version_ = std::max(version_, advance->version());
    wire::VersionT version;
    version.question = advance->question();
    version.version = version_;
    sockets.say(std::move(version));
  } else if (const auto* question = message->as<wire::AwaitVersion>()) {
    wire::VersionT version;
    version.question = question->question();
    version.version = version_;
    const bool there = version_ > question->above();
    version.code = there ? 0 : static_cast<std::uint16_t>(ErrorCode::timed_out);
    sockets.say(std::move(version));
  } else if (const auto* end = message->as<wire::EndFeed>()) {
    on_end(sockets, *end);
  }
}

void FakeLive::on_end(Sockets& sockets, const wire::EndFeed& end) {
  const bool there = end.feed()->string_view() == "rollouts";
  ended_ = ended_ || there;
  wire::VersionT version;
  version.question = end.question();
  version.code = there ? 0 : static_cast<std::uint16_t>(ErrorCode::not_found);
  version.text = there ? "" : "no such feed";
  sockets.say(std::move(version));
}

void FakeLive::on_produce(Sockets& sockets, const wire::Produce& wanted) {
  peers_[sockets.peer].name = wanted.name()->str();
  wire::ProducedT produced;
  produced.producer = wanted.producer();
  produced.incarnation = 1;
  produced.next = next_[wanted.name()->str()];
  produced.version = version_;
  if (wanted.area_bytes() != 0) produced.area = peers_[sockets.peer].area = make_area();
  produced.area_bytes = wanted.area_bytes() != 0 ? area_bytes_ : 0;
  sockets.say(std::move(produced));
}

/// What lies in an area is read at once, and free.
void FakeLive::on_push(Sockets& sockets, const wire::Push& push, std::span<const std::byte> frame) {
  std::uint64_t& next = next_[peers_[sockets.peer].name];
  const std::byte* const start =
      push.framed() ? frame.data() : areas_.at(peers_.at(sockets.peer).area).start;
  const auto* key = reinterpret_cast<const char*>(push.keys()->data());
  wire::FreedT freed;
  freed.producer = push.producer();
  for (flatbuffers::uoffset_t i = 0; i < push.sequences()->size(); ++i) {
    const wire::OfferedSequence& offered = *push.sequences()->Get(i);
    const std::byte* const bytes = start + offered.offset();
    const std::uint32_t length = push.lengths()->Get(i * 3);
    const std::uint64_t text = (length * 4 + 63) / 64 * 64;
    Taken one{push.first() + i,
              push.framed(),
              {key, offered.key_bytes()},
              offered.version(),
              offered.group(),
              offered.group_size(),
              offered.weight(),
              {},
              {},
              0};
    for (std::uint32_t t = 0; t < length; ++t) {
      one.tokens.push_back(read<std::int32_t>(bytes + t * 4));
    }
    const std::uint32_t characters = push.lengths()->Get(i * 3 + 1);
    one.text.assign(reinterpret_cast<const char*>(bytes + text), characters);
    one.reward = read<float>(bytes + (text + characters + 63) / 64 * 64);
    key += offered.key_bytes();
    if (!push.framed()) freed.numbers.push_back(one.number);
    const std::lock_guard lock(mutex_);
    taken_.push_back(std::move(one));
  }
  next = push.first() + push.sequences()->size();
  wire::AcceptedT accepted;
  accepted.producer = push.producer();
  accepted.question = push.question();
  accepted.next = next;
  sockets.say(std::move(accepted));
  if (!freed.numbers.empty()) sockets.say(std::move(freed));
}

void FakeLive::answer_arena(Sockets& sockets, std::size_t connection) {
  const int fd = sockets.connections[connection];
  ArenaRequest request;
  if (::recv(fd, &request, sizeof request, 0) != sizeof request) {
    ::close(fd);
    sockets.connections.erase(sockets.connections.begin() +
                              static_cast<std::ptrdiff_t>(connection));
    return;
  }
  ArenaReply reply;
  reply.arena = request.arena;
  reply.bytes = request.arena != 0 ? area_bytes_ : 0;
  const int file = request.arena != 0 ? areas_.at(request.arena).file.get() : -1;
  static_cast<void>(send_with_descriptor(fd, std::as_bytes(std::span(&reply, 1)), file));
}

std::uint32_t FakeLive::make_area() {
  Area area;
  area.file = Descriptor(::memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  need(::ftruncate(area.file.get(), static_cast<off_t>(area_bytes_)) == 0);
  need(::fcntl(area.file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  void* start = ::mmap(nullptr, area_bytes_, PROT_READ, MAP_SHARED, area.file.get(), 0);
  need(start != MAP_FAILED);
  area.start = static_cast<std::byte*>(start);
  areas_.emplace(++last_area_, std::move(area));
  return last_area_;
}

void FakeLive::drop_areas() {
  for (const auto& [number, area] : areas_) ::munmap(area.start, area_bytes_);
  areas_.clear();
}

}  // namespace batchwright::test
