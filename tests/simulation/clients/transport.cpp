#include "tests/simulation/clients/transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace batchwright::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What passes over one connection, lease by lease: a client that says that its program waits has
/// given back all that it got and does not hold. (It may hold more: of a feed that was replaced.)
/// Leases of a queue outlive a connection, and are left to RecordWitness.
class LeaseWitness {
 public:
  explicit LeaseWitness(World& world) : world_(world) {}

  void received(const ControlMessage& message) {
    if (const auto* ticket = message.as<wire::Delivery>()) {
      const auto found = out_.find(ticket->subscription());
      if (found != out_.end()) found->second.insert(ticket->lease());
    }
    if (const auto* refusal = message.as<wire::Refused>()) out_.erase(refusal->subscription());
  }
  void sent(const ControlMessage& message) {
    if (const auto* request = message.as<wire::Subscribe>()) {
      if (request->mode() != wire::Mode::queue) out_[request->subscription()] = {};
    }
    if (const auto* release = message.as<wire::Release>()) {
      const auto found = out_.find(release->subscription());
      if (found == out_.end()) return;
      for (const std::uint64_t lease : *release->leases()) found->second.erase(lease);
    }
    if (const auto* end = message.as<wire::Unsubscribe>()) out_.erase(end->subscription());
    if (const auto* question = message.as<wire::Ask>()) check(*question);
  }

 private:
  void check(const wire::Ask& question) const {
    const auto found = out_.find(question.subscription());
    if (found == out_.end() || found->second.size() <= question.holds()) return;
    world_.fail(fmt::format("a client holds {} batches, and {} of its leases are out",
                            question.holds(), found->second.size()));
  }

  World& world_;
  std::map<std::uint32_t, std::set<std::uint64_t>> out_;  ///< By subscription.
};

class VirtualSocket final : public DaemonSocket {
 public:
  VirtualSocket(Network& network, std::shared_ptr<Process> process)
      : network_(network),
        process_(std::move(process)),
        line_(network_.connect(process_)),
        leases_(process_->world()) {}
  ~VirtualSocket() override { network_.close(line_, flushed_); }

  Result<void> send(const flatbuffers::DetachedBuffer& message) override {
    if (process_->was_killed()) return {};
    const auto* bytes = reinterpret_cast<const std::byte*>(message.data());
    if (const auto sent = ControlMessage::decode({bytes, message.size()})) leases_.sent(*sent);
    network_.send(line_, {{bytes, bytes + message.size()}, {}, {}});
    return {};
  }
  Result<void> send_with(const flatbuffers::DetachedBuffer& message,
                         const Payload& frame) override {
    if (process_->was_killed()) return {};
    const auto* bytes = reinterpret_cast<const std::byte*>(message.data());
    const std::vector<std::byte> copy(frame.bytes.begin(), frame.bytes.end());
    network_.send(line_, {{bytes, bytes + message.size()}, [copy] { return copy; }, {}});
    return {};
  }
  Result<void> send_last(const flatbuffers::DetachedBuffer& message) override {
    flushed_ = !process_->was_killed();
    return send(message);
  }
  Result<std::optional<Incoming>> receive() override {
    if (line_->inbox.empty()) return std::optional<Incoming>();
    const Received first = std::move(line_->inbox.front());
    line_->inbox.pop_front();
    auto message = ControlMessage::decode(first.bytes);
    if (!message) return message.error();
    leases_.received(*message);
    Incoming incoming{std::move(*message), {}};
    if (first.batch) incoming.batch = {first.batch, *first.batch};
    return std::optional(std::move(incoming));
  }
  std::optional<std::uint64_t> bytes_received() override { return {}; }
  bool cut() override { return std::exchange(line_->cut, false); }
  bool has_news() const { return !line_->inbox.empty() || line_->cut; }

 private:
  Network& network_;
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<Line> line_;
  LeaseWitness leases_;
  bool flushed_ = false;
};

class VirtualArenas final : public ArenaSource {
 public:
  VirtualArenas(Network& network, Onlooker& onlooker, World& world, std::shared_ptr<ArenaLine> line)
      : network_(network), onlooker_(onlooker), world_(world), line_(std::move(line)) {}
  /// The daemon learns of the client's end.
  ~VirtualArenas() override {
    Listener* const daemon = network_.daemon();
    if (daemon == nullptr || daemon->number() != line_->daemon) return;
    daemon->post(world_.dice.time(microseconds(10), milliseconds(1)),
                 [daemon, session = line_->session] { daemon->on_lost(session); });
  }

  Result<std::shared_ptr<const Mapping>> fetch(ArenaNumber arena,
                                               const Deadline& /*deadline*/) override {
    Listener* const daemon = network_.daemon();
    if (!alive() || daemon == nullptr || daemon->number() != line_->daemon) {
      return Error{ErrorCode::disconnected, "the daemon closed the arenas' connection"};
    }
    const auto file = daemon->find_arena(line_->session, arena);
    if (!file) return Error{ErrorCode::not_found, "no such arena"};
    auto mapping = Mapping::map(Descriptor(::dup(file->descriptor)), file->bytes);
    if (mapping) onlooker_.mapped((*mapping)->bytes().data(), file->descriptor);
    return mapping;
  }
  /// As fetch(), of an area that the daemon made for this client.
  Result<std::shared_ptr<const Area>> fetch_area(ArenaNumber area,
                                                 const Deadline& /*deadline*/) override {
    Listener* const daemon = network_.daemon();
    if (!alive() || daemon == nullptr || daemon->number() != line_->daemon) {
      return Error{ErrorCode::disconnected, "the daemon closed the arenas' connection"};
    }
    const auto file = daemon->find_arena(line_->session, area);
    if (!file) return Error{ErrorCode::not_found, "no such area"};
    return Area::map(Descriptor(::dup(file->descriptor)), file->bytes);
  }
  bool alive() const override { return line_->open; }
  int descriptor() const override { return -1; }

 private:
  Network& network_;
  Onlooker& onlooker_;
  World& world_;
  const std::shared_ptr<ArenaLine> line_;
};

}  // namespace

Result<std::unique_ptr<DaemonSocket>> VirtualTransport::connect(const Address& /*address*/) {
  return std::unique_ptr<DaemonSocket>(std::make_unique<VirtualSocket>(network_, process_));
}

Result<std::shared_ptr<ArenaSource>> VirtualTransport::open_arenas(const std::string& /*path*/,
                                                                   SessionId session,
                                                                   const Deadline& /*deadline*/) {
  World& world = process_->world();
  process_->sleep(world.dice.time(microseconds(20), milliseconds(2)));
  Listener* const daemon = network_.daemon();
  if (daemon == nullptr) return Error{ErrorCode::disconnected, "no daemon is there"};
  auto line = std::make_shared<ArenaLine>();
  line->owner = process_;
  line->daemon = daemon->number();
  line->session = session;
  if (!daemon->bind(line)) return Error{ErrorCode::disconnected, "no such session"};
  return std::shared_ptr<ArenaSource>(
      std::make_shared<VirtualArenas>(network_, onlooker_, world, std::move(line)));
}

Result<void> VirtualTransport::wait(DaemonSocket* socket, const ArenaSource* arenas,
                                    milliseconds limit) {
  const Time end = now() + limit;
  const auto* const own = static_cast<VirtualSocket*>(socket);
  const bool had_arenas = arenas != nullptr && arenas->alive();
  if ((own != nullptr && own->has_news()) || now() >= end) return {};
  if (arenas != nullptr && !had_arenas) return {};
  process_->park(end - now());
  return {};
}

}  // namespace batchwright::simulation
